//===- LibraryForms.h - ops that only libraries have ------------*- C++ -*-===//
//
// Contractions in the forms that a vendor's library computes in one call (Library.td). Few files need them, so NN.h
// does not bring them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/NN.h"

namespace lowtide {
class GradientBuilder;
}

namespace lowtide::nn {
class AttentionGradOp;
class DotEpilogueOp;
uint64_t attentionGradFlops(AttentionGradOp op);
uint64_t dotEpilogueFlops(DotEpilogueOp op);
/// Of the bits that a ReLU of matrix `y` keeps.
mlir::RankedTensorType getMaskType(mlir::RankedTensorType y);
/// Lets `nn.attention` answer LibraryCallInterface, as the dialect is loaded.
void registerAttentionCall(mlir::MLIRContext *context);
/// The same for `nn.kernel`, of which those of emitter "library" are calls.
void registerStridedCalls(mlir::MLIRContext *context);
} // namespace lowtide::nn

#define GET_OP_CLASSES
#include "lowtide/Dialect/NN/Library.h.inc"

namespace lowtide::nn {

/// Attributes of the call "gemm" for a product of `a` and `b` into `y` (docs/artifact.md).
mlir::NamedAttrList getGemmAttributes(mlir::RankedTensorType a, mlir::RankedTensorType b, mlir::RankedTensorType y,
                                      bool transposeA, bool transposeB);

/// Puts a matrix product and what follows it into one op with an epilogue: the longest form that `isTaken` accepts.
/// False, with nothing changed, where `op` is no product or nothing can go along. Erases `op` otherwise.
bool formEpilogue(mlir::Operation *op, llvm::function_ref<bool(LibraryCallInterface)> isTaken);

/// Lets the product with which a weight's gradient is made, xᵀ · dy or dyᵀ · x, bring the sums of dy's columns along:
/// the gradient of a bias. False, with nothing changed, where `op` is no such product, a kernel made dy or `isTaken`
/// declines. Erases `op` otherwise.
bool formOperandSums(mlir::Operation *op, llvm::function_ref<bool(LibraryCallInterface)> isTaken);

/// Gives an attention, or the derivative of one, a form that `isTaken` accepts: as it stands, or with its mask written
/// out for every row in the type of q (a mask is rounded then as scores are). False, with nothing changed, where
/// neither is taken or `op` is none.
bool formAttention(mlir::Operation *op, llvm::function_ref<bool(LibraryCallInterface)> isTaken);

/// Takes the slices, reshapes and transposes around an attention, or the derivative of one, along into a kernel op of
/// emitter "library": strides of the call stand for them. Zeros around the cotangents of q, k and v that are then added
/// up make parts of one result. False, with nothing changed, where `op` is none, nothing is around it or `isTaken`
/// declines. Erases `op` otherwise.
bool formStrides(mlir::Operation *op, llvm::function_ref<bool(LibraryCallInterface)> isTaken);

/// Sets the derivative of an attention as one op. False, with nothing set, where it has to be written out: the
/// cotangent of the mask is needed, or lse has one.
bool differentiateAsOne(GradientBuilder &gradient);

} // namespace lowtide::nn
