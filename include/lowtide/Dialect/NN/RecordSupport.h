//===- RecordSupport.h - functions that op records call ---------*- C++ -*-===//
//
// The few functions that the bodies in the TableGen records rely on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/ScalarBuilder.h"
#include "lowtide/Dialect/NN/NN.h"

namespace lowtide::nn {

/// Elements of a static shape; -1 never occurs (verified).
uint64_t countElements(mlir::Type type);
uint64_t countResultElements(mlir::Operation *op);
uint64_t dotFlops(DotOp op);
/// Sum over the ops of a region that state their cost.
uint64_t countFlops(mlir::Region &region);

/// The type that scalar code uses for the elements of a tensor: unsigned integers become signless.
mlir::Type scalarType(mlir::Value tensor);
bool isUnsignedElement(mlir::Value tensor);

/// −∞, or the smallest integer.
mlir::Value lowestValue(ScalarBuilder &b, mlir::Type type);
/// +∞, or the largest integer.
mlir::Value highestValue(ScalarBuilder &b, mlir::Type type);

/// One element of a reduction: a loop over the reduced box, in row-major order.
mlir::Value emitReductionElement(mlir::Operation *op, ElementBuilder &b, mlir::ValueRange index);
llvm::LogicalResult verifyReduction(mlir::Operation *op, mlir::Value x, mlir::Value y, llvm::ArrayRef<int64_t> dims);

} // namespace lowtide::nn
