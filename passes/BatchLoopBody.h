//===- BatchLoopBody.h - one round of a loop over a batch -------*- C++ -*-===//
//
// Writes the body of one `train.accumulate`, op by op, and then the loop around it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/BatchTracking.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "llvm/ADT/SetVector.h"

namespace lowtide {

/// `parts` rounds, each on the rows of its part of the samples, of which sums add up `tiles` terms; 0: one each, in
/// its own type. `wholes`: sums that loops before this one have made. Everything outside the body is made at the
/// insertion point of `outer`.
class BatchLoopBody {
public:
  BatchLoopBody(mlir::OpBuilder &outer, const BatchTracking &tracking, int64_t parts, int64_t tiles,
                const llvm::DenseMap<mlir::Value, mlir::Value> &wholes);

  /// Each round sees the state that the round before has left.
  void carryState(mlir::BlockArgument state);
  /// Writes `op` for one part; its operands have been computed. Fails, with a diagnostic, if rows of an operand cannot
  /// be cut out.
  llvm::LogicalResult compute(mlir::Operation *op);
  /// What has been computed of a sum is a term: adds it to those of the rounds before.
  void addUp(mlir::Value sum);
  /// The rows of all rounds are wanted outside.
  void collect(mlir::Value rows);
  /// The next round sees `value` as `state`; `isWanted`: so does what comes after the loop.
  void updateState(mlir::BlockArgument state, mlir::Value value, bool isWanted);

  /// Builds the loop; returns what stands for the added-up, collected and updated values after it.
  llvm::DenseMap<mlir::Value, mlir::Value> finish(mlir::Location loc);
  /// Values from outside that the body reads or is handed.
  llvm::ArrayRef<mlir::Value> getCaptured() const { return captured.getArrayRef(); }

private:
  /// What stands in the body for an operand, as the op needs it.
  mlir::Value getOperand(mlir::Operation *op, unsigned number);
  /// The same at `position`, before its elements are numbered anew.
  mlir::Value getRows(mlir::Operation *op, unsigned number, std::optional<BatchPosition> position);
  mlir::Value capture(mlir::Value value);
  /// Rows of a value that is there as a whole.
  mlir::Value cut(mlir::Value value, BatchPosition position);
  bool isRepeated(mlir::Value value, BatchPosition position);
  bool isSpread(mlir::Value value, BatchPosition position);
  llvm::LogicalResult computeTerms(mlir::Operation *op);
  mlir::Value buildRepeated(mlir::Value value, BatchPosition position);
  mlir::Value sliceOf(mlir::Value value, BatchPosition position);
  mlir::Value getFirstSample(mlir::Value row);
  mlir::Value countFromPart(mlir::Value numbers, BatchPosition position);
  mlir::BlockArgument carry(mlir::Value first);
  mlir::RankedTensorType partOf(mlir::Type whole, BatchPosition position) const;
  nn::Expr at(mlir::OpBuilder &builder, mlir::Value value) { return nn::Expr(builder, value.getLoc(), value); }

  mlir::OpBuilder &outer;
  const BatchTracking &tracking;
  int64_t parts, tiles;
  const llvm::DenseMap<mlir::Value, mlir::Value> &wholes;
  mlir::Region region;
  mlir::Block *body;
  mlir::OpBuilder inner;

  /// What stands in the body for a value of the step.
  llvm::DenseMap<mlir::Value, mlir::Value> own;
  /// Of a sum over several tiles, the term of each.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> terms;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, llvm::SmallVector<std::pair<BatchPosition, mlir::Value>>> cuts;
  llvm::SetVector<mlir::Value> captured;
  llvm::SmallVector<mlir::Value> sliced, carried, handedOn, rows;
  /// The value of the step that each carried or collected one stands for; null for the row counter.
  llvm::SmallVector<mlir::Value> carriedFor, rowsFor;
  llvm::DenseMap<mlir::Value, unsigned> stateNumber;
  /// The number of the batch's first sample, 0, once something counts from it.
  mlir::Value noSample;
};

} // namespace lowtide
