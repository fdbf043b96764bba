//===- GradientBuilder.h - the reverse rule's view of one op ----*- C++ -*-===//
//
// What an op's `differentiate` reads and writes: operands, results, cotangents.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <functional>

namespace lowtide {

/// Differentiates a block, for ops that have one: builds, at its end, the cotangents of `leaves` that come of `seeds`,
/// values of the block with their cotangents. Leaves that no seed depends on are left out. Fails with a diagnostic.
using BlockSweep = std::function<mlir::FailureOr<llvm::DenseMap<mlir::Value, mlir::Value>>(
    mlir::Block &block, llvm::ArrayRef<mlir::Value> leaves, llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> seeds)>;

/// Built by the differentiation pass for each op on the path from loss to parameters.
class GradientBuilder {
public:
  /// `cotangents`: one per result, null where no cotangent arrives; `needed`: one per operand.
  GradientBuilder(mlir::OpBuilder &builder, mlir::Operation *op, llvm::ArrayRef<mlir::Value> cotangents,
                  llvm::ArrayRef<bool> needed)
      : builder(builder), op(op), cotangents(cotangents), needed(needed), gradients(op->getNumOperands()) {}

  nn::Expr operand(unsigned i) { return {builder, op->getLoc(), op->getOperand(i)}; }
  /// Operand `i` in the type of the first cotangent: a product may be wider than what it is made of.
  nn::Expr wideOperand(unsigned i) { return nn::cast(operand(i), cotangent(0).elementType()); }
  nn::Expr result(unsigned i) { return {builder, op->getLoc(), op->getResult(i)}; }
  /// Cotangent of result `i`; null if the loss does not depend on it.
  nn::Expr cotangent(unsigned i) { return cotangents[i] ? nn::Expr(builder, op->getLoc(), cotangents[i]) : nn::Expr(); }
  /// Whether operand `i` leads to a parameter.
  bool needs(unsigned i) const { return needed[i]; }
  void set(unsigned i, nn::Expr gradient) { gradients[i] = gradient; }
  /// How the block of a region is differentiated; empty where the op has none.
  BlockSweep sweepBlock;
  /// The cotangent of operand `i` as set by the rule; null means zero.
  mlir::Value get(unsigned i) const { return gradients[i].get(); }

  mlir::OpBuilder &builder;
  mlir::Operation *op;

private:
  llvm::ArrayRef<mlir::Value> cotangents;
  llvm::ArrayRef<bool> needed;
  llvm::SmallVector<nn::Expr> gradients;
};

} // namespace lowtide
