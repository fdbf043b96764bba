//===- Differentiate.h - reverse-mode differentiation -----------*- C++ -*-===//
//
// Cotangents of chosen values with respect to one, by asking each op on the way for its derivative.
//
//   1. Active values: those that a leaf leads to through floating-point results.
//   2. Reverse sweep from the target, whose cotangent is given: each op that has the cotangent of a result and an
//   active
//      operand writes the cotangents of its active operands (DifferentiableInterface).
//   3. A value that several ops use gets the sum, added up as the contributions arrive: reverse program order, which is
//      the order of the sweep, so that at most one partial sum is alive.
//   4. The cotangent of a leaf, complete when its first use has been visited, is its gradient.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"
#include <functional>

namespace lowtide {
class GradientBuilder;
}

namespace lowtide::train {

/// One differentiation of the ops that `block` holds when it begins; what it builds goes where `builder` stands, after
/// them.
class ReverseSweep {
public:
  ReverseSweep(mlir::Block &block, mlir::OpBuilder builder, llvm::ArrayRef<mlir::Value> leaves);

  /// What is asked for each op first: true where it has set the derivative itself, in a form that the target has.
  using SpecialForm = std::function<bool(GradientBuilder &)>;
  void setSpecialForm(SpecialForm form) { specialForm = std::move(form); }

  bool isActive(mlir::Value value) const { return active.contains(value); }
  /// Null if none has arrived.
  mlir::Value getCotangent(mlir::Value value) const { return cotangents.lookup(value); }
  /// Sweeps back from `target`, whose cotangent `seed` builds (of its type). Fails with a diagnostic at an op without a
  /// derivative, which says how the target depends on it.
  llvm::LogicalResult run(mlir::Value target, llvm::function_ref<mlir::Value(mlir::OpBuilder &)> seed);
  /// The same from several values, each with its cotangent; those of one value are added up.
  llvm::LogicalResult run(llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> seeds);

private:
  llvm::SmallVector<mlir::Operation *> listForward();
  llvm::LogicalResult sweep(llvm::ArrayRef<mlir::Operation *> forward);
  mlir::FailureOr<llvm::DenseMap<mlir::Value, mlir::Value>>
  sweepBlock(mlir::Block &inner, llvm::ArrayRef<mlir::Value> leaves,
             llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> seeds) const;
  llvm::LogicalResult visit(mlir::Operation *op);
  llvm::LogicalResult accumulate(mlir::Operation *op, unsigned operandNumber, mlir::Value contribution);
  llvm::LogicalResult refuse(mlir::Operation *op);

  mlir::Block &block;
  mlir::OpBuilder builder;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, mlir::Value> cotangents;
  /// The op through which a value's first contribution came: the next one on the way to the target.
  llvm::DenseMap<mlir::Value, mlir::Operation *> consumers;
  SpecialForm specialForm;
};

} // namespace lowtide::train
