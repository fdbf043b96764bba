//===- CentralDifferences.h - checks derivatives of one op ------*- C++ -*-===//
//
// Builds an op on constants, lets it write its derivative, evaluates both with the constant folder in f64, and compares
// with (L(x + h) - L(x - h)) / 2h, where L is a fixed random combination of the op's results.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/MLIRContext.h"
#include <functional>
#include <random>
#include <string>

namespace lowtide {
class GradientBuilder;
}

namespace lowtide::test {

using Shape = llvm::SmallVector<int64_t>;

/// Where the random elements of the inputs lie.
struct Range {
  double low = -1.5, high = 1.5;
};

/// A place to build in and the numbers to build with.
class Workbench {
public:
  explicit Workbench(unsigned seed = 1);

  /// An f64 constant of random elements.
  nn::Expr input(llvm::ArrayRef<int64_t> shape, Range range = {});
  /// Integer constants.
  nn::Expr indices(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> values);

  /// Elements of a value, by folding what defines it; empty when that fails.
  std::vector<double> evaluate(mlir::Value value);

  /// Differentiates the op that defines `y` with respect to those of its operands that are `inputs` and compares.
  /// Every f64 result of the op takes part. Returns the worst |derivative - difference| / max(1, |difference|), or
  /// says what went wrong in `error`. With `form`, only the first result takes part, and `form` sets the derivative.
  double worstError(nn::Expr y, llvm::ArrayRef<nn::Expr> inputs, std::string &error,
                    llvm::function_ref<bool(GradientBuilder &)> form = nullptr);

  mlir::MLIRContext context;
  mlir::Block block;
  mlir::OpBuilder builder;

private:
  mlir::Attribute attribute(mlir::Value value);
  double combination(mlir::Operation *op, llvm::ArrayRef<std::vector<double>> factors);

  std::mt19937 random;
  llvm::DenseMap<mlir::Value, mlir::Attribute> known;
  /// Scans written out: what stands for their results.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> rounds;
};

} // namespace lowtide::test
