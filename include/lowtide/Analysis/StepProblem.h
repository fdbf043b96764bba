//===- StepProblem.h - a step as a scheduling problem -----------*- C++ -*-===//
//
// Turns a fitted step into plain operations on tensors (Solve/Timeline), and an
// answer, a schedule, back into the step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/CostModel.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Solve/Timeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide {

/// Attribute of an instruction that runs again what ran before.
inline constexpr llvm::StringLiteral recomputedAttrName = "train.recomputed";

/// Attribute of a module: bytes of device memory that its plan may take, an i64.
inline constexpr llvm::StringLiteral deviceBudgetAttrName = "train.device_budget";

struct RerunForm;

/// What code generation and libraries say of an instruction.
struct InstructionFacts {
  /// Scratch of all threads, or a library's workspace.
  uint64_t workspaceBytes = 0;
  /// Per result: the operands over which it may be written.
  llvm::SmallVector<llvm::SmallVector<int, 4>> inPlace;
  /// How it runs again, where that is not as it stands; null: as it stands.
  std::shared_ptr<RerunForm> rerun;

  bool mayOverwrite(unsigned result, unsigned operand) const {
    return result < inPlace.size() && llvm::is_contained(inPlace[result], int(operand));
  }
};

/// An instruction without the results that the step returns: updates and outputs are made once.
struct RerunForm {
  /// Holds the instruction; its arguments stand for operands.
  std::unique_ptr<mlir::Block> block;
  mlir::Operation *op;
  /// Numbers of the whole instruction's operands and results that it has.
  llvm::SmallVector<unsigned> operands, results;
  InstructionFacts facts;
};

/// Facts by instruction.
using FactsTable = llvm::DenseMap<mlir::Operation *, InstructionFacts>;

/// One step function, posed. Operation and value numbers index `getOperations`
/// and `getValues`.
class StepProblem {
public:
  /// Makes the value that a recomputation reads in place of `value`, not before `cotangent` is there.
  using Anchor =
      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::Value value, mlir::Value cotangent)>;

  /// `facts` holds every instruction. Fails, with a diagnostic, as StepStorage
  /// does.
  static mlir::FailureOr<StepProblem> pose(mlir::func::FuncOp step, const FactsTable &facts, const CostModel &costs);

  const solve::StepGraph &getGraph() const { return graph; }
  llvm::ArrayRef<mlir::Operation *> getOperations() const { return operations; }
  llvm::ArrayRef<mlir::Value> getValues() const { return values; }

  /// Puts the step's instructions into the order of `schedule`, which must be
  /// valid, once: an instruction that occurs again is cloned with the attribute
  /// `train.recomputed`, and `anchor` ties its first operand to what wakes it
  /// (null: nothing occurs again). Facts of clones are added to `facts`.
  void apply(const solve::Schedule &schedule, FactsTable &facts, Anchor anchor = nullptr);

private:
  explicit StepProblem(mlir::func::FuncOp step) : step(step) {}
  void addValues(const FactsTable &facts);
  void addResults(const FactsTable &facts);
  void markForward();
  bool reaches(uint32_t from, uint32_t to) const;
  void addRerun(mlir::Operation *op, const RerunForm &form, const CostModel &costs);

  mlir::func::FuncOp step;
  solve::StepGraph graph;
  llvm::SmallVector<mlir::Operation *> operations;
  llvm::SmallVector<mlir::Value> values;
  llvm::DenseMap<mlir::Value, uint32_t> numberOf;
  llvm::DenseMap<mlir::Operation *, uint32_t> operationOf;
};

} // namespace lowtide
