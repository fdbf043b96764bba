//===- StepProblem.cpp - a step as a scheduling problem -------------------===//
//
// The rules of StepStorage as a graph: roots are values, instructions are
// operations, an update in place forbids later reads of what it overwrites. What
// a loop carries is updated in place by its rounds.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Solve/Portfolio/Offload.h"
#include "lowtide/Solve/Searches/Ordering.h"

using namespace mlir;
using namespace lowtide;

void lowtide::forEachRead(Operation &op, llvm::function_ref<void(OpOperand &, Value)> visit) {
  for (OpOperand &operand : op.getOpOperands())
    visit(operand, StepStorage::getRoot(operand.get()));
  if (!isa<RepeatInterface>(op))
    return;
  op.getRegion(0).walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands())
      if (Value root = StepStorage::getRoot(operand.get()); !op.isAncestor(root.getParentBlock()->getParentOp()))
        visit(operand, root);
  });
}

/// Whether the bytes of `operand`, which dies there, may become those of the result.
static bool canHandOn(const FactsTable &facts, OpResult result, OpOperand &operand) {
  const unsigned number = result.getResultNumber();
  if (auto loop = dyn_cast<RepeatInterface>(result.getOwner()))
    return number < loop.getNumCarried() && operand.getOperandNumber() == loop.getNumSliced() + number;
  return facts.at(result.getOwner()).mayOverwrite(number, operand.getOperandNumber());
}

/// Whether the result may be written over an argument that nothing reads later.
bool StepProblem::mayOverwrite(const FactsTable &facts, OpResult result, Value root) {
  unsigned uses = 0;
  bool canBe = true;
  forEachRead(*result.getOwner(), [&](OpOperand &operand, Value read) {
    if (read != root)
      return;
    ++uses;
    canBe = operand.getOwner() == result.getOwner() && canHandOn(facts, result, operand);
  });
  return uses == 0 || (uses == 1 && canBe);
}

uint32_t StepProblem::addValue(Value value, int32_t producer, bool placed) {
  const uint32_t number = values.size();
  if (value)
    numberOf[value] = number;
  values.push_back(value);
  const bool hasBytes = value && getSpace(value.getType()) == Space::Device;
  graph.values.push_back({hasBytes ? getTensorBytes(value.getType()).value_or(0) : 0, producer, placed, false});
  return number;
}

uint32_t StepProblem::getNumber(Value root) {
  auto known = numberOf.find(root);
  return known != numberOf.end() ? known->second : addValue(root, -1, true);
}

void StepProblem::addArguments() {
  auto loop = dyn_cast<RepeatInterface>(block->getParentOp());
  if (!loop) {
    for (BlockArgument argument : block->getArguments())
      addValue(argument, -1, true);
    return;
  }
  // A round begins with its parts of the slices; that nothing comes before them, a value without bytes says.
  solve::StepOperation round;
  round.isForward = round.runsOnce = true;
  auto add = [&](Value value) {
    round.writes.push_back(addValue(value, 0, false));
    round.overwrites.emplace_back();
  };
  add(Value());
  graph.values.back().kept = true;
  for (BlockArgument argument : block->getArguments().take_front(loop.getNumSliced()))
    add(argument);
  for (BlockArgument argument : block->getArguments().drop_front(loop.getNumSliced()))
    addValue(argument, -1, true);
  operations.push_back(nullptr);
  graph.operations.push_back(std::move(round));
}

void StepProblem::addOperation(Operation &op, const Knowledge &known) {
  operationOf[&op] = operations.size();
  solve::StepOperation operation;
  DenseMap<uint32_t, unsigned> uses;
  forEachRead(op, [&](OpOperand &, Value root) {
    uint32_t value = getNumber(root);
    if (uses[value]++ == 0)
      operation.reads.push_back(value);
  });
  if (!operations.empty() && !operations.front())
    operation.reads.push_back(graph.operations.front().writes.front());
  for (OpResult result : op.getResults()) {
    operation.writes.push_back(addValue(result, operations.size(), false));
    graph.values.back().isForward = known.forward.makes(result);
    auto &overwrites = operation.overwrites.emplace_back();
    for (OpOperand &operand : op.getOpOperands()) {
      Value root = StepStorage::getRoot(operand.get());
      uint32_t value = numberOf.lookup(root);
      if (isa<OpResult>(root) && uses[value] == 1 && graph.values[value].bytes == graph.values.back().bytes &&
          canHandOn(known.facts, result, operand))
        overwrites.push_back(value);
    }
  }
  operation.isForward = known.forward.ops.contains(&op);
  if (!isa<RepeatInterface>(op)) {
    operation.workspaceBytes = known.facts.at(&op).workspaceBytes;
    operation.seconds = known.costs.getSeconds(&op);
    operation.flops = getFlops(&op);
  }
  if (StepStorage::isMove(&op)) {
    const bool isStore = getSpace(op.getOperand(0).getType()) == Space::Device;
    operation.kind = isStore ? solve::StepOperation::Kind::Stores : solve::StepOperation::Kind::Loads;
    // What lies in the other memory from step to step comes from there as often as it is asked for: as the step found
    // it, or as an instruction or the last round of a loop has left it.
    const Value source = StepStorage::getRoot(op.getOperand(0));
    const bool isLasting =
        isa<BlockArgument>(source) || isa<RepeatInterface>(source.getDefiningOp()) ||
        llvm::any_of(source.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
    const Space space = getSpace((isStore ? op.getResult(0) : op.getOperand(0)).getType());
    operation.memory = getMemory(space, known.costs);
    operation.runsOnce = isStore || operation.memory >= known.costs.memories.size() || !isLasting;
    // A loop's instructions run one after the other: what its rounds store is waited for.
    if (!operation.runsOnce || (isStore && block->getParentOp() != step))
      operation.seconds = graph.getCopySeconds(operation);
  }
  operations.push_back(&op);
  graph.operations.push_back(std::move(operation));
  if (isa<RepeatInterface>(op))
    addLoop(op, known);
}

/// The loop's body is posed; what it takes as it stands is what the loop takes.
void StepProblem::addLoop(Operation &op, const Knowledge &known) {
  StepProblem body(step, op.getRegion(0).front());
  body.poseBlock(known);
  const uint64_t rounds = cast<RepeatInterface>(op).getRounds();
  solve::Timeline round = evaluate(body.graph, solve::originalSchedule(body.graph)).value_or(solve::Timeline());
  solve::StepOperation &loop = graph.operations.back();
  loop.runsOnce = true;
  loop.workspaceBytes = round.peakBytes;
  loop.seconds = double(rounds) * round.seconds;
  loop.flops = rounds * round.flops;
  graph.loops.push_back({uint32_t(operations.size()) - 1, rounds, body.graph});
  bodies.push_back(std::move(body));
}

void StepProblem::addRerun(Operation *op, const RerunForm &form, const CostModel &costs) {
  solve::StepOperation &whole = graph.operations[operationOf.lookup(op)];
  solve::StepOperation operation;
  DenseMap<uint32_t, unsigned> uses;
  SmallVector<Value> roots;
  for (unsigned number : form.operands) {
    roots.push_back(number < op->getNumOperands() ? StepStorage::getRoot(op->getOperand(number))
                                                  : Value(op->getResult(number - op->getNumOperands())));
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
  whole.reruns.push_back(graph.reruns.size());
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
  Operation *terminator = block->getTerminator();
  DenseMap<Value, SmallVector<uint32_t>> readers;
  for (auto [i, op] : llvm::enumerate(operations))
    forEachRead(*op, [&, i = i](OpOperand &, Value root) {
      if (isa<BlockArgument>(root) && (readers[root].empty() || readers[root].back() != i))
        readers[root].push_back(i);
    });

  struct EarlyUpdate {
    uint32_t operation, argument, result, first;
  };
  SmallVector<EarlyUpdate> early;
  const BoundArguments arguments(step);
  llvm::SmallDenseSet<Value> claimed;
  for (auto [i, returned] : llvm::enumerate(terminator->getOperands())) {
    Value root = StepStorage::getRoot(returned);
    if (isa<BlockArgument>(root))
      continue;
    solve::StepValue &value = graph.values[numberOf.lookup(root)];
    auto binding = dyn_cast_or_null<BindingInterface>(step.getResultAttr(i, bindingAttrName));
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
      updated = arguments.lookup(binding);
    if (!updated) {
      value.kept = true;
      continue;
    }
    // In place, if all readers may come first and the update itself reads what it overwrites position by position.
    OpResult first = StepStorage::getFirstValue(cast<OpResult>(root));
    uint32_t op = operationOf.lookup(first.getOwner());
    if (!mayOverwrite(facts, cast<OpResult>(root), updated)) {
      value.kept = true;
      continue;
    }
    value.placed = true;
    // What a move stores has no bytes here.
    if (solve::StepValue &begun = graph.values[numberOf.lookup(first)]; begun.bytes)
      begun.placed = true;
    // What agrees with the order as it stands agrees with itself.
    if (llvm::all_of(readers[updated], [&](uint32_t reader) { return reader <= op; }))
      graph.operations[op].updates.push_back(numberOf.lookup(updated));
    else
      early.push_back({op, numberOf.lookup(updated), numberOf.lookup(root), numberOf.lookup(first)});
  }
  // An update that comes before a reader: the reader moves up, unless it depends on the update.
  for (const EarlyUpdate &update : early) {
    if (llvm::any_of(readers[values[update.argument]], [&](uint32_t reader) {
          return reader != update.operation && reaches(update.operation, reader);
        })) {
      graph.values[update.result].placed = graph.values[update.first].placed = false;
      graph.values[update.result].kept = true;
    } else {
      graph.operations[update.operation].updates.push_back(update.argument);
    }
  }
}

void StepProblem::keep(Value root) {
  if (auto known = numberOf.find(root); known != numberOf.end() && graph.values[known->second].producer >= 0)
    graph.values[known->second].kept = !graph.values[known->second].placed;
}

/// What a round hands on is written at once where the round was handed it, if it is in the order that it has and
/// nothing reads that later; what is copied at the end of the round stays until then.
void StepProblem::addHandedOn(const FactsTable &facts) {
  auto loop = cast<RepeatInterface>(block->getParentOp());
  const unsigned sliced = loop.getNumSliced(), carried = loop.getNumCarried();
  Operation *next = block->getTerminator();
  llvm::DenseMap<Value, uint32_t> lastRead;
  for (auto [i, op] : llvm::enumerate(operations))
    if (op)
      forEachRead(*op, [&, i = i](OpOperand &, Value root) { lastRead[root] = uint32_t(i); });
  for (Value operand : next->getOperands())
    lastRead[StepStorage::getRoot(operand)] = uint32_t(operations.size());
  for (auto [i, operand] : llvm::enumerate(next->getOperands())) {
    Value root = StepStorage::getRoot(operand);
    Value handed = i < carried ? block->getArgument(sliced + i) : Value();
    if (root == handed)
      continue;
    auto result = dyn_cast<OpResult>(root);
    const bool isOwn = result && result.getParentBlock() == block;
    const uint32_t op = isOwn ? operationOf.lookup(result.getOwner()) : 0;
    if (handed && isOwn && !graph.values[numberOf.lookup(root)].placed && lastRead.lookup(handed) <= op &&
        mayOverwrite(facts, result, handed)) {
      graph.values[numberOf.lookup(root)].placed = true;
      graph.values[numberOf.lookup(root)].kept = false;
      graph.operations[op].updates.push_back(getNumber(handed));
    } else {
      keep(root);
    }
  }
}

/// The number of a memory in the graph. Copies to one without costs take no time.
uint32_t StepProblem::getMemory(Space space, const CostModel &costs) {
  const auto *known = llvm::find_if(costs.memories, [&](const OtherMemory &other) { return other.space == space; });
  const auto number = uint32_t(known - costs.memories.begin());
  if (number == graph.memories.size()) {
    const solve::Lane free{0, std::numeric_limits<double>::infinity()};
    graph.memories.push_back({free, free});
  }
  return number;
}

void StepProblem::poseBlock(const Knowledge &known) {
  for (const OtherMemory &memory : known.costs.memories)
    graph.memories.push_back(memory.lanes);
  addArguments();
  for (Operation &op : block->without_terminator())
    if (!StepStorage::isView(&op))
      addOperation(op, known);
  if (block->getParentOp() == step)
    addResults(known.facts);
  else
    addHandedOn(known.facts);
  for (Operation *op : operations)
    if (op && !isa<RepeatInterface>(op))
      for (const std::shared_ptr<RerunForm> &form : known.facts.at(op).reruns)
        addRerun(op, *form, known.costs);
  if (block->getParentOp() == step)
    solve::addLoads(graph, uint32_t(known.costs.memories.size()));
  // In a round, whatever runs comes after its beginning.
  if (!operations.empty() && !operations.front())
    for (solve::StepOperation &rerun : graph.reruns)
      rerun.reads.push_back(graph.operations.front().writes.front());
}

/// Every value must be a static tensor of numbers.
static LogicalResult checkTypes(Block &block) {
  for (Operation &op : block.without_terminator()) {
    for (Value value : op.getResults())
      if (!getTensorBytes(value.getType()))
        return op.emitError("result is no static tensor of numbers: ") << value.getType();
    if (isa<RepeatInterface>(op) && failed(checkTypes(op.getRegion(0).front())))
      return failure();
  }
  return success();
}

FailureOr<StepProblem> StepProblem::pose(func::FuncOp step, const FactsTable &facts, const CostModel &costs) {
  if (!step.getBody().hasOneBlock())
    return step.emitError("is not one block of instructions");
  if (failed(checkTypes(step.getBody().front())))
    return failure();
  StepProblem problem(step, step.getBody().front());
  const ForwardPart forward(step);
  problem.poseBlock({facts, costs, forward});
  return problem;
}
