//===- Product.h - products as constant, factors and divisors --*- C++ -*-===//
//
// Exporters write one product in many orders; matched as sets of factors, the order does not matter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace lowtide::nn {

/// coefficient · Π factors / Π divisors.
struct Product {
  double coefficient = 1.0;
  llvm::SmallVector<mlir::Value> factors, divisors;
};

/// The number that all elements of a float constant are; repeated scalars count.
std::optional<double> getSplat(mlir::Value value);
/// Whether a is b up to the rounding of f32.
bool isNearly(double a, double b);
/// Takes a value apart into its factors; `stop` stays whole (null: nothing does).
Product takeApart(mlir::Value value, mlir::Value stop = {});
/// The value without its constant factors; the coefficient is multiplied by them.
mlir::Value peelConstants(mlir::Value value, double &coefficient);
/// value = c + rest, c constant: the rest; null if it is no such sum.
mlir::Value peelAddend(mlir::Value value, double &constant);

} // namespace lowtide::nn
