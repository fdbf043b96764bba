//===- Scatter.h - values that meet at computed places ----------*- C++ -*-===//
//
// The ops of Scatter.td and the functions that build them. Few files need them, so NN.h leaves them out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Interfaces/MeetingInterface.h"

#include "lowtide/Dialect/NN/ScatterEnums.h.inc"

#define GET_OP_CLASSES
#include "lowtide/Dialect/NN/Scatter.h.inc"

namespace lowtide::nn {

/// `x` with `updates` meeting it at `indices`, which are in [0, extent): one index for all positions of the dimensions
/// other than `axis`, or (elements) one for each element.
Expr scatter(ScatterKind kind, Expr x, Expr indices, Expr updates, int64_t axis);
Expr scatterElements(ScatterKind kind, Expr x, Expr indices, Expr updates, int64_t axis);

// Called by the records.

/// Whether what meets becomes a number that is none of those that met: it rounds.
inline bool isArithmetic(ScatterKind kind) { return kind == ScatterKind::mul || kind == ScatterKind::add; }
/// What is at a place after `update` has met `there`.
mlir::Value emitMeeting(ScalarBuilder &b, ScatterKind kind, mlir::Value there, mlir::Value update, bool isUnsigned);
llvm::LogicalResult splitScatter(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitScatterElements(mlir::Operation *op, BatchSplit &split);

} // namespace lowtide::nn
