//===- WeightReads.h - products that read a weight, and pairs for them -*- C++ -*-===//
//
// A low-rank pair changes a weight by B · A without the matrix ever being made: each product that reads the weight gets
// two thin ones added. Exporters transpose, join, cut and reshape weights on the way to a product; the pair goes the
// same way, factor by factor.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace lowtide::nn {

/// What a weight is to the op that reads it.
enum class WeightKind { Matrix, Filter, Table };

/// A product that reads a weight.
struct WeightRead {
  /// Operands from the weight to the product, each of the op that the one before belongs to.
  using Path = llvm::SmallVector<mlir::OpOperand *>;

  WeightKind kind = WeightKind::Matrix;
  mlir::Operation *product = nullptr;
  /// Several where the product reads parts of the weight, joined in another order. The last of each is `getOperand()`.
  llvm::SmallVector<Path, 1> paths;
  /// Matrix, Table: the weight's dimension that inputs are multiplied with (of a table: its rows).
  int64_t inputDim = 0;

  /// The product's operand that is the weight, or was moved out of it.
  mlir::OpOperand &getOperand() const { return *paths.front().back(); }
  /// Matrix, Filter: what it is multiplied with.
  mlir::Value getInput() const { return product->getOperand(1 - getOperand().getOperandNumber()); }
};

/// All that reads a weight.
struct WeightReads {
  llvm::SmallVector<WeightRead> products;
  /// Ops that read it, or what was moved out of it, and take no pair.
  llvm::SmallVector<mlir::Operation *> others;
};

/// Follows a weight through ops that move its elements.
WeightReads findWeightReads(mlir::Value weight);

/// What a product's operand was moved out of: the values before ops that move elements, arguments among them.
llvm::SmallVector<mlir::Value> findMoved(mlir::Value operand);

/// What ops below `root` read in the place of a weight and compute, each once, in the order of the ops.
llvm::SmallVector<mlir::Value> findComputedWeights(mlir::Operation *root);

/// Shapes of a pair of rank `rank` for such a read, in PyTorch's order. Matrix: [rank, in] and [out, rank]; Filter:
/// [rank, in, k…] and [out, rank, 1…]; Table: [rank, rows] and [width, rank].
struct PairShapes {
  llvm::SmallVector<int64_t> a, b;
};
PairShapes getPairShapes(const WeightRead &read, mlir::RankedTensorType weight, int64_t rank);
/// The largest rank at which the pair is not larger than the weight's own: min(in · k…, out).
int64_t getLargestRank(const WeightRead &read, mlir::RankedTensorType weight);

/// Why a read takes no pair, or none with magnitudes; empty if it takes one.
std::string refusePair(const WeightRead &read, bool hasMagnitudes);

/// A pair as products get it. `a` and `b` have the shapes above and are f32 or f64.
struct LowRankPair {
  mlir::Value a, b;
  double scale = 1.0;
  mlir::Value ratio = {}; ///< [out], of the same type: what each output is multiplied with (DoRA); null: with 1
};

/// Shape of the magnitudes of a weight's outputs, as PEFT has it: [out], of a filter [1, out, 1…].
llvm::SmallVector<int64_t> getMagnitudeShape(const WeightRead &read, mlir::RankedTensorType weight);
/// magnitude / ‖W + scale · B · A‖ of each output, [out], the norm being a constant to the backward pass (Liu et al.,
/// "DoRA: Weight-Decomposed Low-Rank Adaptation", section 4.3). `norm`: ‖W‖ of each output, [out]. The sum is never
/// made: its square is ‖W‖² + scale · ⟨2 W Aᵀ + scale · B A Aᵀ, B⟩, in which W is multiplied with `rank` columns.
mlir::Value computeRatio(mlir::OpBuilder &builder, const WeightRead &read, mlir::Value weight, const LowRankPair &pair,
                         mlir::Value magnitude, mlir::Value norm);

/// Replaces the product's result for all its readers by ratio · (product(input) + scale · B(A(input))), in the pair's
/// type; without a ratio it is 1. Where `drop` sets numbers of an input to zero, what is added to the product's result
/// is of them, as in PEFT: (ratio − 1) · product(drop(input)) + ratio · scale · B(A(drop(input))).
void addPair(mlir::OpBuilder &builder, const WeightRead &read, const LowRankPair &pair,
             llvm::function_ref<Expr(Expr input)> drop);

/// The number of the next draw of a step: one more than that of any in `block`.
int64_t getNextDraw(mlir::Block &block);

} // namespace lowtide::nn
