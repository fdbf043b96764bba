//===- BatchTracking.h - where a step counts samples ------------*- C++ -*-===//
//
// Follows the samples of a batch through a training step, asking op after op (BatchInterface): what has one row for
// each sample, what is a sum over all of them, and what is the same for every part of the batch.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace lowtide {

/// What each value of a step is to a part of its batch.
class BatchTracking {
public:
  enum class Kind : uint8_t {
    Outside,     ///< needs all samples at once, or none
    Rows,        ///< counts samples at a position: a part of the batch has part of it
    Sum,         ///< sum over the parts; each part has a term
    Statistic,   ///< each part has its own; of an argument: a state that each part updates
    FirstSample, ///< the scalar `row`
  };
  struct State {
    Kind kind = Kind::Outside;
    BatchPosition position;
  };

  /// Samples are what `#train.batch` arguments count. Fails, with a diagnostic at the op, where an op combines samples
  /// or does not say what it does with them, and where arguments disagree about the number of samples.
  static mlir::FailureOr<BatchTracking> compute(mlir::func::FuncOp step);

  /// Samples in a batch; 0 if no argument counts any.
  int64_t getSamples() const { return samples; }
  State get(mlir::Value value) const { return states.lookup(value); }
  Kind getKind(mlir::Value value) const { return get(value).kind; }
  /// Whether an op is computed part by part.
  bool isInside(mlir::Operation *op) const { return required.contains(op); }
  /// Of an op inside: where each operand has to count samples; nothing where it is needed as it is.
  llvm::ArrayRef<std::optional<BatchPosition>> getRequired(mlir::Operation *op) const {
    return required.find(op)->second;
  }
  /// Whether an op inside adds up terms of sums (its operands are terms, not whole sums).
  bool isLinear(mlir::Operation *op) const { return linear.contains(op); }
  /// Ops that take statistics over each part, in order.
  llvm::ArrayRef<mlir::Operation *> getStatistics() const { return statistics; }

  /// The state that each part updates: what the step returns for it is a statistic. Null for any other value.
  mlir::Value getUpdate(mlir::Value state) const { return updates.lookup(state); }

private:
  friend class RowRegion; // the same of a product's rows

  mlir::LogicalResult run(mlir::func::FuncOp step);
  mlir::LogicalResult start(mlir::func::FuncOp step);
  mlir::LogicalResult visit(mlir::Operation *op);
  bool findUpdates(mlir::func::FuncOp step, BatchTracking &next) const;
  bool findDraws(mlir::Operation *op);

  int64_t samples = 0;
  llvm::DenseMap<mlir::Value, State> states;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<std::optional<BatchPosition>>> required;
  llvm::DenseSet<mlir::Operation *> linear;
  llvm::SmallVector<mlir::Operation *> statistics;
  llvm::DenseMap<mlir::Value, mlir::Value> updates;
  /// What has rows that were drawn for each sample, and nothing of the batch's data.
  llvm::DenseSet<mlir::Value> drawn;
  /// Draws of the whole batch, of which parts are cut: they number samples where what reads them does not.
  llvm::DenseSet<mlir::Operation *> wholeDraws;
};

} // namespace lowtide
