//===- FullReductions.h - what a GPU adds up over everything ---------*- C++ -*-===//
//
// Reductions that leave one number, prepared so that those of one tensor read it once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace lowtide {

/// A reduction of a reduction to one number becomes one: of integers or flags, whose bits are the same in any order,
/// and of what is two for a CPU's sake alone (`nn.by_rows`).
void mergeWholeReductions(mlir::Operation *root);
/// What few elementwise ops make of one tensor for a whole sum, and others read too, such as an unscaled gradient, the
/// sum makes itself. So does a sum over long columns with what cheap ops make in f32: a normalized activation is read
/// in 16 bits by everyone who needs it.
void prepareSums(mlir::Block &block, llvm::function_ref<bool(mlir::Operation *)> isGenerated);

} // namespace lowtide
