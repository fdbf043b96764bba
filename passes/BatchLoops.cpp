//===- BatchLoops.cpp - a step on parts of its batch ------------*- C++ -*-===//
//
// Finds what loops are for and in which order they come; BatchLoopBody writes each one's body.
//
//===----------------------------------------------------------------------===//

#include "BatchLoops.h"
#include "BatchLoopBody.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;
using Kind = BatchTracking::Kind;

namespace {

class BatchLoops {
public:
  /// `step`: null where no op takes statistics.
  BatchLoops(func::FuncOp step, Block &block, Location loc, const BatchTracking &tracking, int64_t parts, int64_t tiles)
      : step(step), block(block), loc(loc), tracking(tracking), parts(parts), tiles(tiles),
        builder(block.getTerminator()) {
    if (step)
      index.emplace(step);
  }

  FailureOr<BatchLoopFacts> run();

private:
  LogicalResult findNeeded();
  LogicalResult noteState(Operation *op, OpOperand &use);
  DenseSet<Operation *> slice(ArrayRef<Value> values);
  FailureOr<DenseSet<Operation *>> sliceWithStates(ArrayRef<Value> values,
                                                   llvm::MapVector<BlockArgument, Value> &updates);
  void orderLoops();
  LogicalResult buildLoop(ArrayRef<Value> values);
  void placeOutside(ArrayRef<Value> captured);

  /// Whether `user`, an op inside, wants the whole of `value` rather than a term.
  bool wantsWhole(Operation *user, Value value) const {
    return tracking.getKind(value) == Kind::Sum && !tracking.isLinear(user);
  }

  func::FuncOp step;
  std::optional<train::BindingIndex> index;
  Block &block;
  Location loc;
  const BatchTracking &tracking;
  int64_t parts, tiles;
  OpBuilder builder;
  BatchLoopFacts facts;

  /// What is needed whole, in the order of the text, and how many loops need it before they start, one after the other.
  llvm::SetVector<Value> needed;
  DenseMap<Value, unsigned> depth;
  /// The state that a value updates in every round.
  DenseMap<Value, BlockArgument> stateOf;
  /// What stands for needed values after their loops.
  DenseMap<Value, Value> wholes;
  /// Place of the step's own ops in the text.
  DenseMap<Operation *, unsigned> position;
  /// The new order of what is outside.
  SmallVector<Operation *> order;
  DenseSet<Operation *> placed, computed;
};

} // namespace

/// What the op reads, in its regions as well: a loop that was made before reads a matrix there.
static void visitReads(Operation *op, llvm::function_ref<void(Value)> visit) {
  op->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), visit); });
}

LogicalResult BatchLoops::noteState(Operation *op, OpOperand &use) {
  Attribute binding = train::getResultBinding(step, use.getOperandNumber());
  std::optional<unsigned> state;
  if (auto bound = dyn_cast_or_null<train::StateAttr>(binding))
    state = index->findArg<train::StateAttr>(bound.getName());
  if (!state) {
    InFlightDiagnostic error = op->emitError("result ")
                               << use.getOperandNumber() << " of @" << step.getSymName()
                               << " has one value for each part of the batch and none for all of it";
    error.attachNote() << "only state can follow the parts; leave out --micro-batches";
    return error;
  }
  stateOf[use.get()] = step.getArgument(*state);
  return success();
}

LogicalResult BatchLoops::findNeeded() {
  for (Operation &op : block.without_terminator())
    for (Value value : op.getResults()) {
      Kind kind = tracking.getKind(value);
      if (kind == Kind::Outside)
        continue;
      for (OpOperand &use : value.getUses()) {
        Operation *user = use.getOwner();
        if (user != block.getTerminator() && tracking.isInside(user) && !wantsWhole(user, value))
          continue;
        needed.insert(value);
        if (tracking.get(value).position.selection) {
          InFlightDiagnostic error =
              op.emitError("rows that data select are needed of all parts of the batch together");
          error.attachNote() << "leave out --micro-batches";
          return error;
        }
        if (kind == Kind::Statistic && failed(noteState(&op, use)))
          return failure();
      }
    }
  return success();
}

/// The ops inside that `values` need, without what makes whole sums.
DenseSet<Operation *> BatchLoops::slice(ArrayRef<Value> values) {
  DenseSet<Operation *> ops;
  SmallVector<Operation *> worklist;
  for (Value value : values)
    worklist.push_back(value.getDefiningOp());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!ops.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && tracking.isInside(producer) && !wantsWhole(op, operand))
        worklist.push_back(producer);
  }
  return ops;
}

/// The ops that `values` need, and those that update the states which they read or are: each round of a loop starts
/// from what the round before left, whether or not this loop is the one that hands it out.
FailureOr<DenseSet<Operation *>> BatchLoops::sliceWithStates(ArrayRef<Value> values,
                                                             llvm::MapVector<BlockArgument, Value> &updates) {
  SmallVector<Value> wanted(values);
  for (Value value : values)
    if (auto state = stateOf.find(value); state != stateOf.end())
      updates[state->second] = value;
  while (true) {
    DenseSet<Operation *> ops = slice(wanted);
    size_t before = wanted.size();
    for (Operation &op : block) {
      if (!ops.contains(&op))
        continue;
      for (Value operand : op.getOperands()) {
        if (wantsWhole(&op, operand) && !wholes.contains(operand)) {
          InFlightDiagnostic error =
              op.emitError("a state is updated for each part of the batch, and from a sum over all parts");
          error.attachNote() << "leave out --micro-batches";
          return error;
        }
        Value update = tracking.getUpdate(operand);
        if (update && updates.insert({cast<BlockArgument>(operand), update}).second)
          wanted.push_back(update);
      }
    }
    if (wanted.size() == before)
      return ops;
  }
}

void BatchLoops::orderLoops() {
  for (Value value : llvm::reverse(needed)) {
    unsigned before = depth[value] + 1;
    DenseSet<Operation *> outside;
    SmallVector<Operation *> worklist;
    // What an op takes from outside may in turn be made of sums.
    auto take = [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      if (producer && tracking.isInside(producer))
        depth[operand] = std::max(depth[operand], before);
      else if (producer)
        worklist.push_back(producer);
    };
    for (Operation *op : slice(value))
      for (Value operand : op->getOperands())
        if (tracking.getKind(operand) == Kind::Outside || wantsWhole(op, operand))
          take(operand);
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      if (outside.insert(op).second)
        visitReads(op, take);
    }
  }
}

/// Puts what the loop reads from outside before it, in the order of the text.
void BatchLoops::placeOutside(ArrayRef<Value> captured) {
  SmallVector<Operation *> worklist, before;
  auto visit = [&](Value value) {
    if (Operation *producer = value.getDefiningOp())
      worklist.push_back(producer);
  };
  llvm::for_each(captured, visit);
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!position.contains(op) || !placed.insert(op).second)
      continue;
    before.push_back(op);
    visitReads(op, visit);
  }
  llvm::sort(before, [&](Operation *a, Operation *b) { return position[a] < position[b]; });
  order.append(before);
}

LogicalResult BatchLoops::buildLoop(ArrayRef<Value> values) {
  Operation *lastBefore = block.getTerminator()->getPrevNode();
  BatchLoopBody body(builder, tracking, parts, tiles, wholes);
  llvm::MapVector<BlockArgument, Value> updates;
  FailureOr<DenseSet<Operation *>> ops = sliceWithStates(values, updates);
  if (failed(ops))
    return failure();
  for (auto [state, update] : updates)
    body.carryState(state);
  for (Operation &op : block) {
    if (!ops->contains(&op))
      continue;
    facts.repeatedOps += !computed.insert(&op).second;
    if (failed(body.compute(&op)))
      return failure();
    for (Value result : op.getResults())
      if (tracking.getKind(result) == Kind::Sum && llvm::is_contained(values, result))
        body.addUp(result);
  }
  for (Value value : values) {
    uint64_t bytes = getTensorBytes(value.getType()).value_or(0);
    Kind kind = tracking.getKind(value);
    if (kind == Kind::Sum)
      ++facts.sums, facts.sumBytes += bytes;
    if (kind == Kind::Rows) {
      ++facts.rows, facts.rowBytes += bytes;
      body.collect(value);
    }
  }
  for (auto [state, update] : updates)
    body.updateState(state, update, llvm::is_contained(values, update));
  for (auto [value, whole] : body.finish(loc)) {
    wholes[value] = whole;
    value.replaceUsesWithIf(whole, [&](OpOperand &use) { return !tracking.isInside(use.getOwner()); });
  }
  placeOutside(body.getCaptured());
  for (Operation *made = lastBefore->getNextNode(); made != block.getTerminator(); made = made->getNextNode())
    order.push_back(made);
  ++facts.loops;
  return success();
}

FailureOr<BatchLoopFacts> BatchLoops::run() {
  if (failed(findNeeded()))
    return failure();
  if (needed.empty())
    return facts;
  SmallVector<Operation *> original;
  for (Operation &op : block.without_terminator()) {
    position[&op] = original.size();
    original.push_back(&op);
  }
  orderLoops();
  unsigned loops = 0;
  for (Value value : needed)
    loops = std::max(loops, depth[value] + 1);
  for (unsigned left = loops; left-- > 0;) {
    SmallVector<Value> values;
    for (Value value : needed)
      if (depth[value] == left)
        values.push_back(value);
    if (failed(buildLoop(values)))
      return failure();
  }
  for (Operation *op : original)
    if (!tracking.isInside(op) && placed.insert(op).second)
      order.push_back(op);
  for (Operation *op : order)
    op->moveBefore(block.getTerminator());
  for (Operation *op : llvm::reverse(original))
    if (tracking.isInside(op))
      op->erase();
  return facts;
}

FailureOr<BatchLoopFacts> lowtide::buildBatchLoops(func::FuncOp step, const BatchTracking &tracking, int64_t parts) {
  return BatchLoops(step, step.getBody().front(), step.getLoc(), tracking, parts, /*tiles=*/0).run();
}

FailureOr<BatchLoopFacts> lowtide::buildRowLoops(Block &block, Location loc, const BatchTracking &tracking,
                                                 int64_t parts, int64_t tiles) {
  return BatchLoops({}, block, loc, tracking, parts, tiles).run();
}
