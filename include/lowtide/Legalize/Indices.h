//===- Indices.h - positions as ONNX states them ----------------*- C++ -*-===//
//
// Negative indices count from the end in ONNX; nn counts from zero.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Legalize/NodeView.h"

namespace lowtide {

/// Indices below zero get `extent` added; i64 in any case.
nn::Expr fromFront(nn::Expr indices, int64_t extent);
/// The same for dimension `dim` of x, of which data may decide the extent (Legalize/SelectedRows.h).
nn::Expr fromFront(NodeView &node, nn::Expr indices, nn::Expr x, int64_t dim);
/// Indices along `dim` as i64, in a tensor of `shape`.
nn::Expr positions(nn::Expr where, llvm::ArrayRef<int64_t> shape, int64_t dim);
/// Where what lies at a row-major `position` of a tensor of `shape` is in it, a value for each dimension.
llvm::SmallVector<nn::Expr> coordinates(nn::Expr position, llvm::ArrayRef<int64_t> shape);
/// `size` elements of x along `dim`, from `start`.
nn::Expr sliceDim(nn::Expr x, int64_t dim, int64_t start, int64_t size);

} // namespace lowtide
