//===- Roots.h - lengths and deviations -------------------------*- C++ -*-===//
//
// The root of a sum of powers has, where all of it is zero, the derivative 0 in every framework; that of the root alone
// is infinite, and 0 · ∞ is NaN.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"

namespace lowtide {

/// The root of `x` of order `order`, computed by `root`. Where `x` is a sum of powers of that order (scaled, as a mean
/// and a variance are), zero has the derivative 0.
nn::Expr rootOf(nn::Expr x, double order, llvm::function_ref<nn::Expr(nn::Expr)> root);

} // namespace lowtide
