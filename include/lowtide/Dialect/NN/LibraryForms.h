//===- LibraryForms.h - ops that only libraries have ------------*- C++ -*-===//
//
// Contractions in the forms that a vendor's library computes in one call (Library.td). Few files need them, so NN.h
// does not bring them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/NN.h"

namespace lowtide::nn {
class DotEpilogueOp;
uint64_t dotEpilogueFlops(DotEpilogueOp op);
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

} // namespace lowtide::nn
