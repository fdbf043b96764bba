//===- OrderRules.h - nn ops on tensors in another order --------*- C++ -*-===//
//
// One function for each kind of record (`order` in the records): how orders of storage pass through the op, and the op
// on operands that are stored so.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/DimensionOrder.h"

namespace lowtide::nn {

/// Attribute of a reduction that is a part of a longer one, divided on purpose: the two do not become one again.
inline constexpr llvm::StringLiteral dividedAttrName = "nn.divided";

/// On the first of two reductions that make one number of a tensor, over all dimensions but the first: a CPU shares
/// its rows among threads. Canonicalization keeps the two apart; for a GPU, nn-decompose makes one of them.
inline constexpr llvm::StringLiteral byRowsAttrName = "nn.by_rows";

/// Takes its operands as their dimensions are listed, and gives its results so.
llvm::LogicalResult orderNatural(mlir::Operation *op, OrderFlow &flow);
llvm::LogicalResult orderConstant(mlir::Operation *op, OrderFlow &flow);
llvm::LogicalResult orderElementwise(mlir::Operation *op, OrderFlow &flow);
llvm::LogicalResult orderBroadcast(mlir::Operation *op, OrderFlow &flow);
llvm::LogicalResult orderReshape(mlir::Operation *op, OrderFlow &flow);
llvm::LogicalResult orderTranspose(mlir::Operation *op, OrderFlow &flow);
llvm::LogicalResult orderReduce(mlir::Operation *op, OrderFlow &flow);
llvm::LogicalResult orderSlice(mlir::Operation *op, OrderFlow &flow);
llvm::LogicalResult orderPad(mlir::Operation *op, OrderFlow &flow);
llvm::LogicalResult orderConcat(mlir::Operation *op, OrderFlow &flow);
/// All tensors have their channels last: images, filters and what pooling reads.
llvm::LogicalResult orderWindowed(mlir::Operation *op, OrderFlow &flow);

/// `value` under another shape of as many elements.
mlir::Value reshapeTo(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> shape);
/// Stores `value`, which is stored naturally, in `order`, under its stored shape.
mlir::Value storeInOrder(mlir::OpBuilder &builder, mlir::Value value, const DimensionOrder &order);
/// Stores `value`, which is stored in `order` of a tensor of `shape`, naturally.
mlir::Value storeNaturally(mlir::OpBuilder &builder, mlir::Value value, const DimensionOrder &order,
                           llvm::ArrayRef<int64_t> shape);

} // namespace lowtide::nn
