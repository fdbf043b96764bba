//===- ElementwiseGradients.h - derivatives too long for a record -*- C++ -*-===//
//
// Functions that the derivative expressions of the elementwise and reduction records call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"

namespace lowtide::nn {

Expr geluGradient(Expr x, Expr dy);
Expr geluTanhGradient(Expr x, Expr dy);
Expr siluGradient(Expr x, Expr dy);
Expr eluGradient(Expr x, Expr dy, double alpha);

/// Cotangent of `x` in max(x, other), or min when `smaller`; ties share equally.
Expr extremumGradient(Expr x, Expr other, Expr dy, bool smaller = false);

/// Cotangents of y = a^b. A constant exponent of few known values needs no power at all; at a = 0 the exponent's is 0,
/// and for b = 0 the base's is 0, as in PyTorch.
Expr powBaseGradient(Expr a, Expr b, Expr y, Expr dy);
Expr powExponentGradient(Expr a, Expr b, Expr y, Expr dy);

/// Cotangent of x in y = product of x over `dims`; right where elements are zero.
Expr productGradient(Expr x, Expr y, Expr dy, llvm::ArrayRef<int64_t> dims);

} // namespace lowtide::nn
