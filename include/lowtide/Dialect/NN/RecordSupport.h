//===- RecordSupport.h - functions that op records call ---------*- C++ -*-===//
//
// The few functions that the bodies in the TableGen records rely on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/BatchRules.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/OrderRules.h"
#include "lowtide/Interfaces/ScalarBuilder.h"

namespace lowtide::nn {

/// Elements of a static shape; -1 never occurs (verified).
uint64_t countElements(mlir::Type type);
uint64_t countResultElements(mlir::Operation *op);
uint64_t dotFlops(DotOp op);
uint64_t attentionFlops(AttentionOp op);
/// `products`: matrix products of the logits' cost.
uint64_t lossHeadFlops(mlir::Operation *op, uint64_t products);
uint64_t convolutionFlops(mlir::Operation *op);
uint64_t poolingFlops(mlir::Operation *op);
/// Sum over the ops of a region that state their cost.
uint64_t countFlops(mlir::Region &region);

/// The type that scalar code uses for the elements of a tensor: unsigned integers become signless.
mlir::Type scalarType(mlir::Value tensor);
bool isUnsignedElement(mlir::Value tensor);

/// −∞, or the smallest integer.
mlir::Value lowestValue(ScalarBuilder &b, mlir::Type type, bool isUnsigned = false);
/// +∞, or the largest integer.
mlir::Value highestValue(ScalarBuilder &b, mlir::Type type, bool isUnsigned = false);

/// The splat `constant` (or null) under another shape; null when it is none.
mlir::OpFoldResult foldSplat(mlir::Attribute constant, mlir::ShapedType type);

/// f32 for 16-bit floats, else the scalar type.
mlir::Type accumulatorType(mlir::Value tensor);
/// The type in which `op` sees operand elements of type `element`: an elementwise op computes 16-bit floats in f32, and
/// its result is rounded once.
mlir::Type computeType(mlir::Operation *op, mlir::Type element);

/// Whether a library call computes a contraction of operands of type `from` into `to`: f32 and f64 into their own type,
/// 16-bit floats into their own type or f32.
bool isCallType(mlir::Type from, mlir::Type to);
/// The attributes `dtype` (of operands and result) and `result_dtype` (where it differs) of such a call; f32 is not
/// stated.
void appendCallTypes(mlir::Builder &builder, mlir::Type from, mlir::Type to,
                     llvm::SmallVectorImpl<mlir::NamedAttribute> &attributes);

/// 1 / (1 + exp(-x)).
mlir::Value emitSigmoid(ScalarBuilder &b, mlir::Value x);

/// One element of a reduction: a loop over the reduced box, in row-major order.
mlir::Value emitReductionElement(mlir::Operation *op, ElementBuilder &b, mlir::ValueRange index);
llvm::LogicalResult verifyReduction(mlir::Operation *op, mlir::Value x, mlir::Value y, llvm::ArrayRef<int64_t> dims);

/// What conv, conv_input_grad and conv_filter_grad share.
llvm::LogicalResult verifyConvolution(mlir::Operation *op);
llvm::StringRef convolutionCallee(mlir::Operation *op, llvm::StringRef name);
mlir::DictionaryAttr convolutionAttributes(mlir::Operation *op);

} // namespace lowtide::nn
