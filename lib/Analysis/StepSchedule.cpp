//===- StepSchedule.cpp - a schedule becomes the step's order -------------===//
//
// One walk over the schedule: the first time an instruction moves, then it is
// cloned. Every operand becomes the last result that was made of it; views are
// placed, or cloned, where they are first read.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/BudgetFlips.h"
#include "lowtide/Analysis/StepProblem.h"

using namespace mlir;
using namespace lowtide;

namespace {

class ScheduleWriter {
public:
  ScheduleWriter(Block &block, ArrayRef<Operation *> operations, FactsTable &facts, StepProblem::Anchor anchor,
                 StepProblem::Move move)
      : terminator(block.getTerminator()), builder(terminator), operations(operations), facts(facts), anchor(anchor),
        move(move) {}

  void write(const solve::Schedule &schedule);
  /// What stands for an operation when it runs again: its number, and the part of it or the result that is loaded from
  /// a memory.
  struct Rerun {
    uint32_t operation = 0;
    std::shared_ptr<RerunForm> form;
    OpResult loaded;
    uint32_t memory = 0;
  };
  llvm::SmallVector<Rerun> reruns;

private:
  void writeAgain(Operation *op, const RerunForm *part, Value cotangent);
  void load(OpResult value, uint32_t memory, Value cotangent);
  /// The value to read for `value`: the last instance of its root, through the same views.
  Value read(Value value);
  /// What wakes the recomputation at `position`: of what the next instruction that runs for the first time reads, the
  /// latest that is there already.
  Value findCotangent(const solve::Schedule &schedule, size_t position, const std::vector<char> &again);

  Operation *terminator;
  OpBuilder builder;
  ArrayRef<Operation *> operations;
  FactsTable &facts;
  StepProblem::Anchor anchor;
  StepProblem::Move move;
  /// What was stored of a value.
  llvm::DenseMap<Value, Value> stored;
  /// Last instance of each root that has more than one.
  llvm::DenseMap<Value, Value> last;
  /// Instructions that have their place, counted from 0. A block asked for an order after a change numbers all of its
  /// instructions.
  llvm::DenseMap<Operation *, unsigned> placed;
  bool place(Operation *op) { return placed.try_emplace(op, placed.size()).second; }
  /// What an instruction read in the program: once it is placed, it reads the instances of its own time.
  llvm::DenseMap<Operation *, SmallVector<Value>> programOperands;
  llvm::DenseMap<std::pair<Operation *, Value>, Value> clonedViews;
};

} // namespace

Value ScheduleWriter::read(Value value) {
  Operation *view = value.getDefiningOp();
  if (!StepStorage::isView(view) || view->getBlock() != terminator->getBlock())
    return last.contains(value) ? last[value] : value;
  Value source = read(view->getOperand(0));
  if (source == view->getOperand(0)) {
    if (place(view))
      view->moveBefore(terminator);
    return value;
  }
  Value &clone = clonedViews[{view, source}];
  if (!clone) {
    Operation *copy = builder.clone(*view);
    copy->setOperand(0, source);
    clone = copy->getResult(cast<OpResult>(value).getResultNumber());
  }
  return clone;
}

Value ScheduleWriter::findCotangent(const solve::Schedule &schedule, size_t position, const std::vector<char> &again) {
  for (; position < schedule.size() && again[position]; ++position)
    ;
  // Instructions that run for the first time stand in the order in which they were placed.
  Value latest;
  if (position == schedule.size())
    return latest;
  if (!operations[schedule[position]])
    return latest;
  for (Value operand : operations[schedule[position]]->getOperands()) {
    Value root = StepStorage::getRoot(operand);
    root = last.contains(root) ? last[root] : root;
    Operation *maker = root.getDefiningOp();
    if (!maker || !placed.contains(maker) || maker->hasAttr(recomputedAttrName) || StepStorage::isMove(maker))
      continue;
    if (!latest || placed.at(latest.getDefiningOp()) < placed.at(maker))
      latest = root;
  }
  return latest;
}

void ScheduleWriter::writeAgain(Operation *op, const RerunForm *part, Value cotangent) {
  SmallVector<Value> operands;
  SmallVector<unsigned> operandNumbers = llvm::to_vector(llvm::seq(op->getNumOperands()));
  SmallVector<unsigned> resultNumbers = llvm::to_vector(llvm::seq(op->getNumResults()));
  InstructionFacts known = facts.at(op);
  Operation *form = op;
  if (part) {
    form = part->op;
    operandNumbers = part->operands;
    resultNumbers = part->results;
    known = part->facts;
  }
  bool anchored = false;
  for (unsigned number : operandNumbers) {
    operands.push_back(read(number < op->getNumOperands() ? programOperands.at(op)[number]
                                                          : Value(op->getResult(number - op->getNumOperands()))));
    Operation *maker = StepStorage::getRoot(operands.back()).getDefiningOp();
    anchored |= maker && (maker->hasAttr(recomputedAttrName) || StepStorage::isMove(maker));
  }
  if (!anchored && cotangent && !operands.empty())
    operands[0] = anchor(builder, op->getLoc(), operands[0], cotangent);
  Operation *clone = builder.clone(*form);
  clone->setOperands(operands);
  if (!StepStorage::isMove(clone))
    clone->setAttr(recomputedAttrName, builder.getUnitAttr());
  if (Attribute flips = op->getAttr(flipsAttrName))
    clone->setAttr(flipsAttrName, flips);
  place(clone);
  facts[clone] = std::move(known);
  for (auto [number, copy] : llvm::zip_equal(resultNumbers, clone->getResults()))
    last[op->getResult(number)] = copy;
}

void ScheduleWriter::load(OpResult value, uint32_t memory, Value cotangent) {
  Value &kept = stored[value];
  if (!kept) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(value.getOwner());
    Operation *store = move(builder, value.getLoc(), value, memory);
    place(store);
    facts[store] = {};
    kept = store->getResult(0);
  }
  Value source = cotangent ? anchor(builder, value.getLoc(), kept, cotangent) : kept;
  Operation *back = move(builder, value.getLoc(), source, memory);
  place(back);
  facts[back] = {};
  last[value] = back->getResult(0);
}

void ScheduleWriter::write(const solve::Schedule &schedule) {
  std::vector<char> again(schedule.size(), false), seen(operations.size(), false);
  for (auto [position, number] : llvm::enumerate(schedule))
    again[position] = number >= operations.size() || std::exchange(seen[number], true);

  Value cotangent;
  Operation *previous = nullptr;
  for (auto [position, number] : llvm::enumerate(schedule)) {
    const Rerun *part = number >= operations.size() ? &reruns[number - operations.size()] : nullptr;
    Operation *op = operations[part ? part->operation : number];
    if (!op)
      continue; // the beginning of a round
    if (!again[position]) {
      programOperands[op] = llvm::to_vector(op->getOperands());
      forEachRead(*op, [&](OpOperand &operand, Value) { operand.set(read(operand.get())); });
      op->moveBefore(terminator);
      place(op);
      if (op->getNumResults())
        previous = op;
      continue;
    }
    if (!position || !again[position - 1]) {
      cotangent = findCotangent(schedule, position, again);
      if (!cotangent && previous)
        cotangent = previous->getResult(0);
    }
    if (part && part->loaded)
      load(part->loaded, part->memory, cotangent);
    else
      writeAgain(op, part ? part->form.get() : nullptr, cotangent);
  }
  // What is returned is what was made first.
  SmallVector<Operation *> views;
  for (Value returned : terminator->getOperands())
    for (Operation *view = returned.getDefiningOp();
         StepStorage::isView(view) && view->getBlock() == terminator->getBlock();
         view = view->getOperand(0).getDefiningOp())
      views.push_back(view);
  for (Operation *view : llvm::reverse(views))
    if (place(view))
      view->moveBefore(terminator);
  // A view that nothing reads any more may stand before what it shows.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*terminator->getBlock())))
    if (StepStorage::isView(&op) && op.use_empty())
      op.erase();
}

void StepProblem::apply(const solve::FittedSchedule &plan, FactsTable &facts, Anchor anchor, Move move) {
  for (auto [body, inner] : llvm::zip(bodies, plan.bodies))
    body.apply(inner, facts, anchor);
  ScheduleWriter writer(*block, operations, facts, anchor, move);
  writer.reruns.resize(graph.reruns.size());
  for (auto [number, operation] : llvm::enumerate(graph.operations)) {
    for (auto [i, part] : llvm::enumerate(operation.reruns))
      writer.reruns[part] = {uint32_t(number), facts.at(operations[number]).reruns[i], nullptr};
    for (uint32_t part : operation.loads)
      writer.reruns[part] = {uint32_t(number), nullptr, cast<OpResult>(values[graph.reruns[part].writes.front()]),
                             graph.reruns[part].memory};
  }
  writer.write(plan.schedule);
}
