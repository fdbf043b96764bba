//===- StepProblem.cpp - a step as a scheduling problem -------------------===//
//
// The rules of StepStorage as a graph: roots are values, instructions are
// operations, an update in place forbids later reads of what it overwrites.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Solve/Ordering.h"

using namespace mlir;
using namespace lowtide;

static bool isView(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts && facts.getFacts().aliasing == Aliasing::View;
}

void StepProblem::addValues(const FactsTable &facts) {
  auto add = [&](Value value, int32_t producer, bool placed) {
    numberOf[value] = values.size();
    values.push_back(value);
    graph.values.push_back({getTensorBytes(value.getType()).value_or(0), producer, placed, false});
  };
  for (BlockArgument arg : step.getArguments())
    add(arg, -1, true);
  for (Operation &op : step.getBody().front().without_terminator()) {
    if (isView(&op))
      continue;
    operationOf[&op] = operations.size();
    solve::StepOperation operation;
    DenseMap<uint32_t, unsigned> uses;
    for (Value operand : op.getOperands()) {
      uint32_t value = numberOf.lookup(StepStorage::getRoot(operand));
      if (uses[value]++ == 0)
        operation.reads.push_back(value);
    }
    const InstructionFacts &known = facts.at(&op);
    operation.workspaceBytes = known.workspaceBytes;
    for (OpResult result : op.getResults()) {
      operation.writes.push_back(values.size());
      add(result, operations.size(), false);
      auto &overwrites = operation.overwrites.emplace_back();
      for (OpOperand &operand : op.getOpOperands()) {
        Value root = StepStorage::getRoot(operand.get());
        uint32_t value = numberOf.lookup(root);
        if (isa<OpResult>(root) && uses[value] == 1 && graph.values[value].bytes == graph.values.back().bytes &&
            known.mayOverwrite(result.getResultNumber(), operand.getOperandNumber()))
          overwrites.push_back(value);
      }
    }
    operations.push_back(&op);
    graph.operations.push_back(std::move(operation));
  }
}

void StepProblem::addRerun(Operation *op, const RerunForm &form, const CostModel &costs) {
  solve::StepOperation &whole = graph.operations[operationOf.lookup(op)];
  solve::StepOperation operation;
  DenseMap<uint32_t, unsigned> uses;
  SmallVector<Value> roots;
  for (unsigned number : form.operands) {
    roots.push_back(StepStorage::getRoot(op->getOperand(number)));
    uint32_t value = numberOf.lookup(roots.back());
    if (uses[value]++ == 0)
      operation.reads.push_back(value);
  }
  for (auto [i, number] : llvm::enumerate(form.results)) {
    uint32_t result = numberOf.lookup(op->getResult(number));
    operation.writes.push_back(result);
    auto &overwrites = operation.overwrites.emplace_back();
    for (auto [k, root] : llvm::enumerate(roots))
      if (uint32_t value = numberOf.lookup(root); isa<OpResult>(root) && uses[value] == 1 &&
                                                  graph.values[value].bytes == graph.values[result].bytes &&
                                                  form.facts.mayOverwrite(i, k))
        overwrites.push_back(value);
  }
  operation.workspaceBytes = form.facts.workspaceBytes;
  operation.seconds = costs.getSeconds(form.op);
  operation.flops = getFlops(form.op);
  operation.isForward = whole.isForward;
  whole.rerun = graph.reruns.size();
  graph.reruns.push_back(std::move(operation));
}

bool StepProblem::reaches(uint32_t from, uint32_t to) const {
  SmallVector<uint32_t> worklist{to};
  llvm::SmallDenseSet<uint32_t> seen;
  auto predecessors = solve::listPredecessors(graph);
  while (!worklist.empty()) {
    uint32_t op = worklist.pop_back_val();
    if (op == from)
      return true;
    for (uint32_t before : predecessors[op])
      if (seen.insert(before).second)
        worklist.push_back(before);
  }
  return false;
}

/// What the step returns stays, or has an address of its own.
void StepProblem::addResults(const FactsTable &facts) {
  Operation *terminator = step.getBody().front().getTerminator();
  DenseMap<Value, SmallVector<uint32_t>> readers;
  for (auto [i, op] : llvm::enumerate(operations))
    for (Value operand : op->getOperands())
      if (Value root = StepStorage::getRoot(operand); isa<BlockArgument>(root))
        if (readers[root].empty() || readers[root].back() != i)
          readers[root].push_back(i);

  struct EarlyUpdate {
    uint32_t operation, argument, result;
  };
  SmallVector<EarlyUpdate> early;
  llvm::SmallDenseSet<Value> claimed;
  for (auto [i, returned] : llvm::enumerate(terminator->getOperands())) {
    Value root = StepStorage::getRoot(returned);
    if (isa<BlockArgument>(root))
      continue;
    solve::StepValue &value = graph.values[numberOf.lookup(root)];
    auto binding = dyn_cast_or_null<BindingInterface>(step.getResultAttr(i, "train.binding"));
    bool fresh = claimed.insert(root).second;
    if (!fresh || !binding) {
      value.kept = !value.placed;
      continue;
    }
    if (binding.getBindingKind() == BindingKind::Metric) {
      value.placed = true;
      continue;
    }
    Value updated;
    if (isUpdated(binding.getBindingKind()))
      for (BlockArgument arg : step.getArguments()) {
        auto other = dyn_cast_or_null<BindingInterface>(step.getArgAttr(arg.getArgNumber(), "train.binding"));
        if (other && other.getName() == binding.getName() && other.getBindingKind() == binding.getBindingKind())
          updated = arg;
      }
    if (!updated) {
      value.kept = true;
      continue;
    }
    // In place, if all readers may come first and the update itself reads what it overwrites position by position.
    Operation *update = root.getDefiningOp();
    uint32_t op = operationOf.lookup(update);
    unsigned own =
        llvm::count_if(update->getOperands(), [&](Value operand) { return StepStorage::getRoot(operand) == updated; });
    bool inPlace = own == 0;
    if (own == 1)
      for (OpOperand &operand : update->getOpOperands())
        if (StepStorage::getRoot(operand.get()) == updated)
          inPlace = facts.at(update).mayOverwrite(cast<OpResult>(root).getResultNumber(), operand.getOperandNumber());
    if (!inPlace) {
      value.kept = true;
      continue;
    }
    value.placed = true;
    // What agrees with the order as it stands agrees with itself.
    if (llvm::all_of(readers[updated], [&](uint32_t reader) { return reader <= op; }))
      graph.operations[op].updates.push_back(numberOf.lookup(updated));
    else
      early.push_back({op, numberOf.lookup(updated), numberOf.lookup(root)});
  }
  // An update that comes before a reader: the reader moves up, unless it depends on the update.
  for (const EarlyUpdate &update : early) {
    if (llvm::any_of(readers[values[update.argument]], [&](uint32_t reader) {
          return reader != update.operation && reaches(update.operation, reader);
        })) {
      graph.values[update.result].placed = false;
      graph.values[update.result].kept = true;
    } else {
      graph.operations[update.operation].updates.push_back(update.argument);
    }
  }
}

/// Forward: what the loss is made from.
void StepProblem::markForward() {
  Operation *terminator = step.getBody().front().getTerminator();
  SmallVector<Value> worklist;
  for (auto [i, returned] : llvm::enumerate(terminator->getOperands())) {
    auto binding = dyn_cast_or_null<BindingInterface>(step.getResultAttr(i, "train.binding"));
    if (binding && binding.getBindingKind() == BindingKind::Metric)
      worklist.push_back(StepStorage::getRoot(returned));
  }
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || std::exchange(graph.operations[operationOf.lookup(op)].isForward, true))
      continue;
    for (Value operand : op->getOperands())
      worklist.push_back(StepStorage::getRoot(operand));
  }
}

FailureOr<StepProblem> StepProblem::pose(func::FuncOp step, const FactsTable &facts, const CostModel &costs) {
  if (!step.getBody().hasOneBlock())
    return step.emitError("is not one block of instructions");
  for (Operation &op : step.getBody().front().without_terminator())
    for (Value value : op.getResults())
      if (!getTensorBytes(value.getType()))
        return op.emitError("result is no static tensor of numbers: ") << value.getType();
  StepProblem problem(step);
  problem.addValues(facts);
  for (auto [op, operation] : llvm::zip_equal(problem.operations, problem.graph.operations)) {
    operation.seconds = costs.getSeconds(op);
    operation.flops = getFlops(op);
  }
  problem.addResults(facts);
  problem.markForward();
  for (Operation *op : problem.operations)
    if (const std::shared_ptr<RerunForm> &form = facts.at(op).rerun)
      problem.addRerun(op, *form, costs);
  return problem;
}
