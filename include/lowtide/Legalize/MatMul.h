//===- MatMul.h - matrix products of any rank -------------------*- C++ -*-===//
//
// numpy's matmul in terms of nn.dot.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Legalize/NodeView.h"

namespace lowtide {

/// numpy.matmul: vectors get a dimension that vanishes again, leading dimensions broadcast. A matrix on the right makes
/// one product of the rows of all samples. Fails when the shapes do not fit.
mlir::FailureOr<nn::Expr> matmul(nn::Expr a, nn::Expr b);

} // namespace lowtide
