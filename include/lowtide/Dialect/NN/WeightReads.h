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
  WeightKind kind = WeightKind::Matrix;
  mlir::Operation *product = nullptr;
  /// Operands from the weight to the product, each of the op that the one before belongs to.
  llvm::SmallVector<mlir::OpOperand *> path;
  /// Matrix, Table: the weight's dimension that inputs are multiplied with (of a table: its rows).
  int64_t inputDim = 0;
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

/// Shapes of a pair of rank `rank` for such a read, in PyTorch's order. Matrix: [rank, in] and [out, rank]; Filter:
/// [rank, in, k…] and [out, rank, 1…]; Table: [rank, rows] and [width, rank].
struct PairShapes {
  llvm::SmallVector<int64_t> a, b;
};
PairShapes getPairShapes(const WeightRead &read, mlir::RankedTensorType weight, int64_t rank);
/// The largest rank at which the pair is not larger than the weight's own: min(in · k…, out).
int64_t getLargestRank(const WeightRead &read, mlir::RankedTensorType weight);

/// Why a read takes no pair; empty if it takes one.
std::string refusePair(const WeightRead &read);

/// Adds scale · B(A(drop(input))) to the product's result, for all its readers. `a` and `b` have the shapes above and
/// are f32 or f64; the sum is in their type.
void addPair(mlir::OpBuilder &builder, const WeightRead &read, mlir::Value a, mlir::Value b, double scale,
             llvm::function_ref<Expr(Expr input)> drop);

/// The number of the next draw of a step: one more than that of any in `block`.
int64_t getNextDraw(mlir::Block &block);

} // namespace lowtide::nn
