//===- Broadcast.h - numpy broadcasting made explicit -----------*- C++ -*-===//
//
// Rules see equal shapes; this makes them so.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Legalize/NodeView.h"

namespace lowtide {

/// Brings all of `list` to their common shape. Rejects when there is none.
mlir::LogicalResult unifyShapes(NodeView &node, llvm::MutableArrayRef<nn::Expr> list);

/// All operands of the node, broadcast to their common shape.
mlir::FailureOr<llvm::SmallVector<nn::Expr>> unifiedOperands(NodeView &node, unsigned atLeast);

/// Reads ONNX's number of an element type; null for types that have no tensors here (strings, 8-bit floats …).
mlir::Type elementTypeOf(mlir::MLIRContext *context, int64_t onnxType);

/// x with a dimension of size one inserted at `dim`.
nn::Expr unsqueeze(nn::Expr x, int64_t dim);
/// Reduced value back in place, with size-one dimensions.
nn::Expr keepDims(nn::Expr reduced, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims);
/// All dimensions of x but `dim`.
Shape dimsBut(nn::Expr x, int64_t dim);
bool isFloat(nn::Expr x);
bool isBool(nn::Expr x);

/// 16-bit floats as f32, in which sums of many are finite; anything else as it is.
nn::Expr widened(nn::Expr x);
/// The mean over `dims`: a sum and one division, rounded to x's type. `count`: how many elements there are, a scalar,
/// where the extents do not say it (Legalize/SelectedRows.h).
nn::Expr meanOf(nn::Expr x, llvm::ArrayRef<int64_t> dims, nn::Expr count = {});

} // namespace lowtide
