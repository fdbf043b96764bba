//===- BatchRules.h - how nn ops treat the samples of a batch ---*- C++ -*-===//
//
// One function for each kind of record (`split` in the records). Nearly all are a table: each dimension of operands and
// results has a label, and equal labels are the same index.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/BatchSplit.h"
#include "mlir/IR/BuiltinTypes.h"

namespace lowtide::nn {

/// Where a tensor of type `to` counts samples that another of type `from`, of the same elements in row-major order,
/// counts at `position`; nothing if they are divided among several dimensions.
std::optional<BatchPosition> reshapePosition(mlir::RankedTensorType from, BatchPosition position,
                                             mlir::RankedTensorType to, int64_t samples);

/// Samples must not reach the op's operands.
llvm::LogicalResult splitUnknown(mlir::Operation *op, BatchSplit &split);
/// No operand matters: constants.
llvm::LogicalResult splitConstant(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitElementwise(mlir::Operation *op, BatchSplit &split);
/// Elementwise and linear in all operands together.
llvm::LogicalResult splitAdditive(mlir::Operation *op, BatchSplit &split);
/// Of numbers of rows: those of the rows that hold a number of them each.
llvm::LogicalResult splitDiv(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitRem(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitSelect(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitCast(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitBroadcast(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitReshape(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitTranspose(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitSlice(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitPad(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitReverse(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitConcat(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitSelectRows(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitGather(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitGatherElements(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitScatterAdd(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitScatterElementsAdd(mlir::Operation *op, BatchSplit &split);
/// A reduction that may go over the samples: a sum.
llvm::LogicalResult splitReduceSum(mlir::Operation *op, BatchSplit &split);
/// A reduction that may not.
llvm::LogicalResult splitReduce(mlir::Operation *op, BatchSplit &split);
/// Attribute `dim` is looked at as a whole; it stays in results of the operand's rank and vanishes from others.
llvm::LogicalResult splitAlong(mlir::Operation *op, BatchSplit &split);
/// Attribute `axis`: the dimensions from there on are looked at as a whole.
llvm::LogicalResult splitNormalization(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitBatchNorm(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitBatchNormGrad(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitUnbiasedVariance(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitCrossEntropy(mlir::Operation *op, BatchSplit &split);
/// Samples are the rows of x; what has the shape of weight or bias is a sum.
llvm::LogicalResult splitLossHead(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitAttention(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitDot(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitConvolution(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitFilterGrad(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitPooling(mlir::Operation *op, BatchSplit &split);
llvm::LogicalResult splitRandom(mlir::Operation *op, BatchSplit &split);

} // namespace lowtide::nn
