//===- RowNumbers.h - integers that number rows of samples ------*- C++ -*-===//
//
// Programs read rows of each sample through one table of the rows of all samples (`x[arange(B), index]` is row
// s · rows + index of sample s). Which integers count so is what a part of the batch asks, whose table has the rows of
// its own samples alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/BatchSplit.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace lowtide::nn {

/// The k of integers that are k · s + r at each sample s, where r is of the sample's own and not looked at; `numbers`
/// count samples, of which there are `samples`, at `position`. 0 where nothing counts samples; nothing where the
/// number of a sample enters in another way.
std::optional<int64_t> getRowsOfSample(mlir::Value numbers, const BatchPosition &position, int64_t samples);

/// Whether constant `numbers` of rows, of which each sample has `position.renumbered` in each of `position.rowBlocks`
/// blocks of all samples, are those of the sample that each of them is counted for.
bool areOwnRows(mlir::DenseElementsAttr numbers, const BatchPosition &position, int64_t samples);

} // namespace lowtide::nn
