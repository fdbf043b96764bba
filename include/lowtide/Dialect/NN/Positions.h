//===- Positions.h - where an op's elements come from -----------*- C++ -*-===//
//
// What code generation asks of movements: which dimensions pass through unchanged, and which values are put together of
// pieces that lie one after the other.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace lowtide::nn {

/// The dimension of an operand that passes through as dimension `dim` of the result: same extent, same position. -1
/// where no position in the operand depends on `dim`; nothing where it depends in another way, or is not known.
std::optional<int64_t> getPassedDim(mlir::Operation *op, unsigned operand, int64_t dim);

/// A tensor that is put together along one dimension.
struct Pieces {
  int64_t dim = 0;
  /// Tensors that have all of the other dimensions, and the position where each begins; ascending, none overlap.
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<int64_t> starts;
  /// What the text has is a sum of pieces in zeros, which are between and around them: +0 was added to each element.
  bool isSum = false;
  /// Of a sum: one more term, over the whole shape; or null.
  mlir::Value rest;
};

/// A concatenation, or a sum of at least two tensors with zeros around, in one dimension, that nowhere meet: what the
/// derivatives of slices add up to.
std::optional<Pieces> getPieces(mlir::Value value);

} // namespace lowtide::nn
