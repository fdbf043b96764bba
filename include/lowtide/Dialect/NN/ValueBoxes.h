//===- ValueBoxes.h - a part of a value, computed alone ---------*- C++ -*-===//
//
// What a value of elementwise ops and movements holds in a box of its elements, made of the same box of what it is
// computed from, down to arguments: nothing outside of the box is computed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace lowtide::nn {

/// A box of a value's elements, under a shape whose dimensions are those of the value or parts of these; without
/// dimensions of one.
struct ValueBox {
  llvm::SmallVector<int64_t> shape, starts, sizes;

  /// The box of `size` indices of dimension `dim` of a tensor, from `start` on.
  static ValueBox along(llvm::ArrayRef<int64_t> shape, int64_t dim, int64_t start, int64_t size);
};

/// Computes `value` in `box` with ops at the builder's place; the result has the box's sizes. Null where an op on the
/// way is none that can be cut, or would be cut across. Then some ops may have been made that nothing reads.
Expr buildBox(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, const ValueBox &box);

/// The arguments that a value is computed from by elementwise ops and movements alone; nothing where another op is on
/// the way.
std::optional<llvm::SmallVector<mlir::BlockArgument>> findBoxSources(mlir::Value value);

} // namespace lowtide::nn
