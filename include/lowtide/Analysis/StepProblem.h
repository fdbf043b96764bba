//===- StepProblem.h - a step as a scheduling problem -----------*- C++ -*-===//
//
// Turns a fitted step into plain operations on tensors (Solve/Timeline), and an
// answer, a schedule, back into the step. The body of a loop is a problem of its
// own: what it reads from outside is an argument of it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/CostModel.h"
#include "lowtide/Analysis/ForwardPart.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Solve/Model/Timeline.h"
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
  /// What runs when it runs again, in an order in which each may read what those before it make; none: itself.
  llvm::SmallVector<std::shared_ptr<RerunForm>, 1> reruns;

  bool mayOverwrite(unsigned result, unsigned operand) const {
    return result < inPlace.size() && llvm::is_contained(inPlace[result], int(operand));
  }
};

/// A part of an instruction that makes some of its results again. Those that the step returns are in none: updates and
/// outputs are made once.
struct RerunForm {
  /// Holds the instruction; its arguments stand for operands.
  std::unique_ptr<mlir::Block> block;
  mlir::Operation *op;
  /// What its operands are: numbers of the whole instruction's operands and, after them, of its results.
  llvm::SmallVector<unsigned> operands;
  /// Numbers of the whole instruction's results that it has.
  llvm::SmallVector<unsigned> results;
  InstructionFacts facts;
};

/// Facts by instruction.
using FactsTable = llvm::DenseMap<mlir::Operation *, InstructionFacts>;

/// One block, posed: a step function or one round of a loop in it. Operation and
/// value numbers index `getOperations` and `getValues`.
class StepProblem {
public:
  /// Makes the value that a recomputation reads in place of `value`, not before `cotangent` is there.
  using Anchor =
      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::Value value, mlir::Value cotangent)>;

  /// Makes the instruction that moves a value of the device to the memory with that number in the graph, or another one
  /// back to the device.
  using Move =
      llvm::function_ref<mlir::Operation *(mlir::OpBuilder &, mlir::Location, mlir::Value value, uint32_t memory)>;

  /// `facts` holds every instruction but loops. Fails, with a diagnostic, as
  /// StepStorage does.
  static mlir::FailureOr<StepProblem> pose(mlir::func::FuncOp step, const FactsTable &facts, const CostModel &costs);

  const solve::StepGraph &getGraph() const { return graph; }
  /// Null for what begins a round.
  llvm::ArrayRef<mlir::Operation *> getOperations() const { return operations; }
  llvm::ArrayRef<mlir::Value> getValues() const { return values; }
  /// The problems of the loops' bodies, in the order of the graph's loops.
  const std::vector<StepProblem> &getBodies() const { return bodies; }

  /// Puts the block's instructions into the order of the plan, which must be
  /// valid, once: an instruction that occurs again is cloned with the attribute
  /// `train.recomputed`, and `anchor` ties its first operand to what wakes it
  /// (null: nothing occurs again). What is loaded is stored right after it is made; `move` makes both (null: nothing is
  /// loaded). Facts of clones and moves are added to `facts`.
  void apply(const solve::FittedSchedule &plan, FactsTable &facts, Anchor anchor = nullptr, Move move = nullptr);

private:
  /// What posing asks: facts, prices, and what the loss is made from.
  struct Knowledge {
    const FactsTable &facts;
    const CostModel &costs;
    const ForwardPart &forward;
  };

  StepProblem(mlir::func::FuncOp step, mlir::Block &block) : step(step), block(&block) {}
  void poseBlock(const Knowledge &known);
  /// The number of a root; one from outside becomes an argument.
  uint32_t getNumber(mlir::Value root);
  uint32_t addValue(mlir::Value value, int32_t producer, bool placed);
  uint32_t getMemory(Space space, const CostModel &costs);
  void addArguments();
  void addOperation(mlir::Operation &op, const Knowledge &known);
  void addLoop(mlir::Operation &op, const Knowledge &known);
  void addResults(const FactsTable &facts);
  void addHandedOn(const FactsTable &facts);
  bool mayOverwrite(const FactsTable &facts, mlir::OpResult result, mlir::Value root);
  void keep(mlir::Value root);
  bool reaches(uint32_t from, uint32_t to) const;
  void addRerun(mlir::Operation *op, const RerunForm &form, const CostModel &costs);

  mlir::func::FuncOp step;
  mlir::Block *block;
  solve::StepGraph graph;
  std::vector<StepProblem> bodies;
  llvm::SmallVector<mlir::Operation *> operations;
  llvm::SmallVector<mlir::Value> values;
  llvm::DenseMap<mlir::Value, uint32_t> numberOf;
  llvm::DenseMap<mlir::Operation *, uint32_t> operationOf;
};

/// Calls `visit` with every operand of an op that shows bytes of a value made
/// outside of it; those of what is inside a loop follow the loop's own.
void forEachRead(mlir::Operation &op, llvm::function_ref<void(mlir::OpOperand &operand, mlir::Value root)> visit);

} // namespace lowtide
