//===- HiddenMatrices.h - which parameters are hidden matrices --*- C++ -*-===//
//
// What an optimizer of matrices is for: the weights of products between an
// embedding and a head.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"

namespace lowtide {

/// The arguments of `step` that are parameters of two dimensions, are read by products alone on the way to the loss,
/// and feed another product of a parameter there, also in the rounds of loops. Embeddings (rows are looked up), heads
/// (no further product of a parameter), norms, biases and tables that are added are not among them.
llvm::BitVector findHiddenMatrices(mlir::func::FuncOp step);

} // namespace lowtide
