//===- ScanGradient.cpp - the derivative of a loop over steps -------------===//
//
// A scan that walks the other way. Its round computes the step again, from its slices and from the state that the step
// started with, and goes back through it: it is handed the cotangents of the state after the step and hands on those
// before it.
//
//   1. States before each step are rows: either the forward scan's own rows moved by one step, or rows that it gets.
//   2. The cotangent of a slice is a row.
//   3. The cotangent of what every round reads is a sum over the rounds. Where a round's term is a product, or a
//      reduction of what is laid in rows anyway, the sum is made of the rows of all rounds at once; any other is
//      carried.
//   4. What a step makes its state of is not computed again where the forward scan's rows hold that state, and the way
//      back reads no more of the step for it: the tanh of a plain recurrence.
//   5. Within a segment, products of states with what every step reads are one product of all of its steps.
//   6. A round that is itself a loop (a segment of steps) is not recomputed: the forward scan lays down what the
//      way back reads, and sums are carried, so that nothing of all segments is there at once but that. Which of it is
//      recomputed after all is chosen later (train-recompute-scans).
//
//===----------------------------------------------------------------------===//

#include "PrefixedShapes.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/Scan.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }
static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static uint64_t bytesOf(Value value) {
  return llvm::divideCeil(uint64_t(typeOf(value).getNumElements()) * typeOf(value).getElementTypeBitWidth(), 8);
}

namespace {
class ScanGradient {
public:
  ScanGradient(ScanOp scan, GradientBuilder &g)
      : scan(scan), forward(scan), g(g), builder(g.builder), loc(scan.getLoc()), rounds(scan.getRounds()),
        next(scan.getNext()), sliced(scan.getNumSliced()), carried(scan.getNumCarried()),
        isOfSegments(!scan.getBlock()->getOps<ScanOp>().empty()), inner(builder.getContext()) {}

  LogicalResult run();

private:
  /// A sum over all rounds, once their rows are there.
  using Total = std::function<Expr()>;

  void findActive();
  void keepStates();
  void mapSegment();
  void keepSegment();
  Value findRows(unsigned i);
  Value findState(unsigned i);
  void writeStep();
  uint64_t countRead(ArrayRef<Value> ends, Value given);
  void readLaidDown(ArrayRef<Value> ends);
  void multiplyAhead();
  unsigned collect(Value root);
  std::function<Expr()> stack(Value value);
  bool isKept(Value value);
  Total sumUp(Value term);
  Total sumOfProducts(DotOp dot);
  Total carrySum(Value term);
  void finish(ArrayRef<Value> carriedOn);

  Expr at(OpBuilder &where, Value value) { return Expr(where, loc, value); }
  BlockArgument argument(unsigned i) { return scan.getBlock()->getArgument(i); }
  bool isActive(unsigned i) { return active.contains(argument(i)); }
  BlockArgument addSlice(Value whole) {
    slices.push_back(whole);
    return body->insertArgument(unsigned(slices.size()) - 1, partOf(whole), loc);
  }
  BlockArgument addCarry(Value first) {
    carries.push_back(first);
    return body->insertArgument(unsigned(slices.size() + carries.size()) - 1, first.getType(), loc);
  }
  RankedTensorType partOf(Value whole) {
    SmallVector<int64_t> shape(typeOf(whole).getShape());
    shape[0] /= rounds;
    return typeOf(whole).clone(shape);
  }

  /// As it is, and what has taken its place, with more rows.
  ScanOp scan, forward;
  GradientBuilder &g;
  OpBuilder &builder;
  Location loc;
  const int64_t rounds;
  NextOp next;
  const unsigned sliced, carried;
  /// A round is a loop, too.
  const bool isOfSegments;

  /// Values of the forward body that lead to a parameter.
  llvm::DenseSet<Value> active;
  /// Per state, its values before all steps; null where no step reads it.
  SmallVector<Value> states;
  /// Of a scan of segments, the end of the forward round in `body`: what the round hands on.
  NextOp forwardEnd;

  Region region;
  Block *body = &region.emplaceBlock();
  OpBuilder inner;
  IRMapping mapping;
  SmallVector<Value> slices, carries, reads;
  llvm::MapVector<Value, unsigned> rowOf;
  SmallVector<Value> rows, sums;
  ScanOp backward;
};
} // namespace

void ScanGradient::findActive() {
  for (unsigned i = 0; i < scan->getNumOperands(); ++i)
    if (g.needs(i))
      active.insert(argument(i));
  for (bool changes = true; changes;) {
    for (Operation &op : scan.getBlock()->without_terminator())
      if (llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); }))
        for (Value result : op.getResults())
          if (isFloat(result))
            active.insert(result);
    changes = false;
    for (unsigned i = 0; i < carried; ++i)
      changes |= active.contains(next.getCarried()[i]) && active.insert(argument(sliced + i)).second;
  }
}

/// Rows of the forward scan that hold what state `i` is after each step; null if there are none.
Value ScanGradient::findRows(unsigned i) {
  const SmallVector<int64_t> row = prefixed(1, typeOf(scan.getCarried()[i]).getShape());
  for (auto [j, made] : llvm::enumerate(next.getRows()))
    if (auto shown = made.getDefiningOp<ReshapeOp>();
        shown && shown.getX() == next.getCarried()[i] && typeOf(made).getShape() == ArrayRef(row))
      return forward->getResult(carried + unsigned(j));
  return {};
}

/// The same moved by one step: what it is before each.
Value ScanGradient::findState(unsigned i) {
  Value after = findRows(i);
  if (!after)
    return {};
  Expr first = at(builder, scan.getCarried()[i]), start = reshape(first, prefixed(1, first.shape()));
  if (rounds == 1)
    return start;
  Expr all = at(builder, after);
  SmallVector<int64_t> starts(all.rank(), 0), sizes(all.shape());
  starts[0] = scan.getReversed() ? 1 : 0;
  sizes[0] = rounds - 1;
  Expr others = slice(all, starts, sizes);
  return scan.getReversed() ? concat({others, start}, 0) : concat({start, others}, 0);
}

/// Finds what each state is before each step; the forward scan is replaced by one that lays down what is missing.
void ScanGradient::keepStates() {
  states.resize(carried);
  SmallVector<unsigned> missing;
  SmallVector<Type> rowTypes(next.getRows().getTypes());
  for (unsigned i = 0; i < carried; ++i)
    if (!argument(sliced + i).use_empty() && !(states[i] = findState(i))) {
      missing.push_back(i);
      RankedTensorType type = typeOf(argument(sliced + i));
      rowTypes.push_back(type.clone(prefixed(1, type.getShape())));
    }
  if (missing.empty())
    return;
  OpBuilder before(scan);
  auto longer = ScanOp::create(before, loc, rounds, scan.getReversed(), scan.getSliced(), scan.getCarried(),
                               scan.getCaptured(), rowTypes);
  IRMapping clones;
  clones.map(scan.getBlock()->getArguments(), longer.getBlock()->getArguments());
  OpBuilder inside = OpBuilder::atBlockEnd(longer.getBlock());
  for (Operation &op : scan.getBlock()->without_terminator())
    inside.clone(op, clones);
  auto cloned = [&](Value value) { return clones.lookup(value); };
  SmallVector<Value> kept = llvm::map_to_vector(next.getRows(), cloned);
  for (unsigned i : missing) {
    Expr state = at(inside, longer.getBlock()->getArgument(sliced + i));
    kept.push_back(reshape(state, prefixed(1, state.shape())));
  }
  NextOp::create(inside, next.getLoc(), llvm::map_to_vector(next.getCarried(), cloned), kept);
  scan->replaceAllUsesWith(longer->getResults().take_front(scan->getNumResults()));
  forward = longer;
  for (auto [j, i] : llvm::enumerate(missing))
    states[i] = longer->getResult(scan->getNumResults() + j);
}

/// The step again, on its slices and the state before it.
void ScanGradient::writeStep() {
  inner.setInsertionPointToEnd(body);
  for (unsigned i = 0; i < sliced; ++i)
    mapping.map(argument(i), addSlice(scan.getSliced()[i]));
  for (unsigned i = 0; i < carried; ++i)
    if (states[i])
      mapping.map(argument(sliced + i),
                  reshape(at(inner, addSlice(states[i])), typeOf(argument(sliced + i)).getShape()).get());
  for (auto [i, value] : llvm::enumerate(scan.getCaptured())) {
    reads.push_back(value);
    mapping.map(argument(sliced + carried + i), body->addArgument(value.getType(), loc));
  }
  for (Operation &op : scan.getBlock()->without_terminator())
    inner.clone(op, mapping);
}

/// What is read through views.
static Value throughViews(Value value) {
  while (auto view = value.getDefiningOp<ReshapeOp>())
    value = view.getX();
  return value;
}

/// Bytes of the slices that lead to the ends of a round where `given` is there.
uint64_t ScanGradient::countRead(ArrayRef<Value> ends, Value given) {
  llvm::SetVector<Value> reached(ends.begin(), ends.end());
  uint64_t bytes = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    Value value = reached[i];
    if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getArgNumber() < slices.size())
      bytes += bytesOf(slices[argument.getArgNumber()]);
    if (Operation *op = value.getDefiningOp(); op && value != given)
      reached.insert(op->operand_begin(), op->operand_end());
  }
  return bytes;
}

/// Reads states after a step from the forward scan's rows where fewer bytes are read so.
void ScanGradient::readLaidDown(ArrayRef<Value> ends) {
  for (unsigned i = 0; i < carried; ++i) {
    Value after = findRows(i), again = mapping.lookupOrNull(next.getCarried()[i]);
    if (!after || !again || !again.getDefiningOp() || countRead(ends, again) + bytesOf(after) >= countRead(ends, {}))
      continue;
    inner.setInsertionPointToStart(body);
    again.replaceAllUsesWith(reshape(at(inner, addSlice(after)), typeOf(again).getShape()));
    inner.setInsertionPointToEnd(body);
  }
}

/// What the step's products of slices and states with what every step reads come to is known for all steps of a
/// segment: one product of many rows takes less time than many of few. Of a whole sequence it would take room.
void ScanGradient::multiplyAhead() {
  // What stands in a function walks a whole sequence; the round of a segment is in no op while its way back is written.
  if (isa_and_nonnull<FunctionOpInterface>(scan->getParentOp()))
    return;
  inner.setInsertionPointToStart(body);
  for (auto dot : scan.getBlock()->getOps<DotOp>()) {
    auto given = dyn_cast<BlockArgument>(throughViews(dot.getA())), read = dyn_cast<BlockArgument>(dot.getB());
    Value made = mapping.lookup(dot.getY());
    if (!given || !read || given.getArgNumber() >= sliced + carried || read.getArgNumber() < sliced + carried ||
        dot.getTransposeA() || typeOf(made).getRank() != 2 || made.use_empty())
      continue;
    const unsigned number = given.getArgNumber();
    Value all = number < sliced ? scan.getSliced()[number] : states[number - sliced];
    const int64_t count = rounds * typeOf(dot.getA()).getDimSize(0);
    Expr rows = reshape(at(builder, all), {count, typeOf(dot.getA()).getDimSize(1)});
    auto product = DotOp::create(builder, dot.getLoc(), typeOf(made).clone({count, typeOf(made).getDimSize(1)}), rows,
                                 scan->getOperand(read.getArgNumber()), false, dot.getTransposeB());
    Expr parts = reshape(at(builder, product), prefixed(rounds, typeOf(made).getShape()));
    made.replaceAllUsesWith(reshape(at(inner, addSlice(parts)), typeOf(made).getShape()));
    made.getDefiningOp()->erase();
  }
  inner.setInsertionPointToEnd(body);
}

/// The forward round of a scan of segments, with its states as arguments for the time being.
void ScanGradient::mapSegment() {
  inner.setInsertionPointToEnd(body);
  for (unsigned i = 0; i < sliced; ++i)
    mapping.map(argument(i), addSlice(scan.getSliced()[i]));
  for (auto [i, value] : llvm::enumerate(scan.getCaptured())) {
    reads.push_back(value);
    mapping.map(argument(sliced + carried + i), body->addArgument(value.getType(), loc));
  }
  for (unsigned i = 0; i < carried; ++i) {
    mapping.map(argument(sliced + i), body->addArgument(argument(sliced + i).getType(), loc));
    states.push_back(scan.getCarried()[i]);
  }
  for (Operation &op : *scan.getBlock())
    inner.clone(op, mapping);
  forwardEnd = cast<NextOp>(body->back());
}

/// What the way back reads of the forward round becomes rows of the forward scan and slices of this one; the forward
/// round goes. It is taken from here, since the derivatives of its loops have made them lay down what they need.
void ScanGradient::keepSegment() {
  auto listBackward = [&] { return llvm::make_range(std::next(Block::iterator(forwardEnd)), body->end()); };
  auto isForward = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return op ? op == forwardEnd || op->isBeforeInBlock(forwardEnd)
              : cast<BlockArgument>(value).getArgNumber() >= body->getNumArguments() - carried;
  };
  // Constants, what repeats a smaller value, and views of that or of what this scan is given are written once more.
  auto costsNothing = [&](Value value) {
    Value root = throughViews(value);
    Operation *op = root.getDefiningOp();
    return (op && (op->hasTrait<OpTrait::ConstantLike>() || isa<BroadcastOp>(op))) ||
           (root != value && !isForward(root));
  };
  std::function<void(Operation &)> bringAlong = [&](Operation &reader) {
    for (OpOperand &operand : reader.getOpOperands()) {
      Operation *op = operand.get().getDefiningOp();
      if (!op || !isForward(operand.get()) || !costsNothing(operand.get()))
        continue;
      OpBuilder before(&reader);
      Operation *clone = before.clone(*op);
      operand.set(clone->getResult(0));
      bringAlong(*clone);
    }
  };
  for (Operation *op : llvm::to_vector(llvm::make_pointer_range(listBackward())))
    bringAlong(*op);
  // Of a value and its views the one of the most dimensions is laid down: samples had better not be in its first.
  llvm::SetVector<Value> read;
  llvm::MapVector<Value, Value> kept;
  for (Operation &op : listBackward())
    for (Value operand : op.getOperands())
      if (isForward(operand) && read.insert(operand)) {
        Value root = throughViews(operand);
        Value &form = kept.insert({root, root}).first->second;
        if (typeOf(operand).getRank() > typeOf(form).getRank())
          form = operand;
      }

  // The forward scan, which lays them down.
  auto hasRows = [](Value value) { return isa<OpResult>(value) && typeOf(value).getRank() > 0; };
  auto rowType = [&](Value value) -> Type {
    return hasRows(value) ? typeOf(value) : typeOf(value).clone(prefixed(1, typeOf(value).getShape()));
  };
  SmallVector<Type> rowTypes(next.getRows().getTypes());
  for (auto [root, value] : kept)
    rowTypes.push_back(rowType(value));
  OpBuilder before(scan);
  auto longer = ScanOp::create(before, loc, rounds, scan.getReversed(), scan.getSliced(), scan.getCarried(),
                               scan.getCaptured(), rowTypes);
  IRMapping clones;
  for (auto [from, to] : llvm::zip_equal(scan.getBlock()->getArguments(), longer.getBlock()->getArguments()))
    clones.map(mapping.lookup(from), to);
  OpBuilder inside = OpBuilder::atBlockEnd(longer.getBlock());
  for (Operation &op : llvm::make_range(body->begin(), Block::iterator(forwardEnd)))
    inside.clone(op, clones);
  auto cloned = [&](Value value) { return clones.lookup(value); };
  SmallVector<Value> laid = llvm::map_to_vector(forwardEnd.getRows(), cloned);
  for (auto [root, value] : kept)
    laid.push_back(reshape(at(inside, cloned(value)), cast<RankedTensorType>(rowType(value)).getShape()));
  NextOp::create(inside, next.getLoc(), llvm::map_to_vector(forwardEnd.getCarried(), cloned), laid);
  scan->replaceAllUsesWith(longer->getResults().take_front(scan->getNumResults()));

  OpBuilder start(builder.getContext()); // the block is not part of anything yet
  start.setInsertionPointAfter(forwardEnd);
  llvm::DenseMap<Value, Value> parts;
  for (auto [j, entry] : llvm::enumerate(kept))
    parts[entry.first] = addSlice(longer->getResult(scan->getNumResults() + unsigned(j)));
  for (Value value : read) {
    Value shown = reshape(at(start, parts.lookup(throughViews(value))), typeOf(value).getShape());
    value.replaceUsesWithIf(shown, [&](OpOperand &use) { return forwardEnd->isBeforeInBlock(use.getOwner()); });
  }
  const auto afterForward = std::next(Block::iterator(forwardEnd));
  SmallVector<Operation *> forward =
      llvm::to_vector(llvm::make_pointer_range(llvm::make_range(body->begin(), afterForward)));
  for (Operation *op : llvm::reverse(forward)) // readers first
    op->erase();
  body->eraseArguments(body->getNumArguments() - carried, carried);
}

/// Whether the values of all rounds lie somewhere, or will.
bool ScanGradient::isKept(Value value) {
  Value root = throughViews(value);
  auto given = dyn_cast<BlockArgument>(root);
  return rowOf.contains(root) || (given && given.getArgNumber() < slices.size());
}

unsigned ScanGradient::collect(Value root) {
  auto [entry, isNew] = rowOf.insert({root, unsigned(rows.size())});
  if (isNew)
    rows.push_back(reshape(at(inner, root), prefixed(1, typeOf(root).getShape())));
  return entry->second;
}

/// The values of all rounds one after another along a new dimension 0.
std::function<Expr()> ScanGradient::stack(Value value) {
  Value root = throughViews(value);
  const SmallVector<int64_t> shape = prefixed(rounds, typeOf(value).getShape());
  if (auto given = dyn_cast<BlockArgument>(root); given && given.getArgNumber() < slices.size()) {
    Value whole = slices[given.getArgNumber()];
    return [=, this] { return reshape(at(builder, whole), shape); };
  }
  const unsigned row = collect(root);
  return [=, this] { return reshape(at(builder, backward->getResult(unsigned(carries.size()) + row)), shape); };
}

/// Σ aᵀ·b over the rounds is one product over what all rounds sum over.
ScanGradient::Total ScanGradient::sumOfProducts(DotOp dot) {
  if (typeOf(dot.getY()).getRank() != 2)
    return {};
  auto summedFirst = [this](Value operand, bool isFirst) -> Total {
    std::function<Expr()> all = stack(operand);
    return [=] {
      Expr x = isFirst ? all() : transpose(all(), {0, 2, 1});
      return reshape(x, {x.dim(0) * x.dim(1), x.dim(2)});
    };
  };
  Total a = summedFirst(dot.getA(), dot.getTransposeA()), b = summedFirst(dot.getB(), !dot.getTransposeB());
  // Its result may be wider than its operands.
  const auto type = cast<RankedTensorType>(dot.getY().getType());
  return [=] {
    Expr rows = a();
    return rows.with(DotOp::create(rows.getBuilder(), dot->getLoc(), type, rows, b(), true, false));
  };
}

/// The sum of `term` over all rounds from their rows; null where that is not what they are for.
ScanGradient::Total ScanGradient::sumUp(Value term) {
  Operation *op = term.getDefiningOp();
  if (!op)
    return {};
  if (auto dot = dyn_cast<DotOp>(op))
    return sumOfProducts(dot);
  if (auto add = dyn_cast<AddOp>(op)) {
    Total a = sumUp(add.getA()), b = a ? sumUp(add.getB_()) : Total();
    return b ? Total([=] { return a() + b(); }) : Total();
  }
  if (auto reduce = dyn_cast<ReduceSumOp>(op); reduce && isKept(reduce.getX())) {
    std::function<Expr()> all = stack(reduce.getX());
    SmallVector<int64_t> dims{0};
    for (int64_t dim : reduce.getDims())
      dims.push_back(dim + 1);
    return [=] { return sum(all(), dims); };
  }
  auto view = [&](Value x, auto form) -> Total {
    Total total = sumUp(x);
    return total ? Total([=] { return form(total()); }) : Total();
  };
  if (auto shown = dyn_cast<ReshapeOp>(op))
    return view(shown.getX(), [shape = llvm::to_vector(typeOf(term).getShape())](Expr x) { return reshape(x, shape); });
  if (auto turned = dyn_cast<TransposeOp>(op))
    return view(turned.getX(),
                [order = llvm::to_vector(turned.getPermutation())](Expr x) { return transpose(x, order); });
  return {};
}

/// The sum of `term`, handed from round to round.
ScanGradient::Total ScanGradient::carrySum(Value term) {
  // Adding up is more exact than what is added up.
  Expr added = at(inner, term);
  if (added.elementType().getIntOrFloatBitWidth() < 32)
    added = cast(added, inner.getF32Type());
  const unsigned number = carries.size();
  BlockArgument sum = addCarry(splat(builder, loc, added.type(), 0.0));
  sums.push_back(at(inner, sum) + added);
  return [=, this] { return at(builder, backward->getResult(number)); };
}

void ScanGradient::finish(ArrayRef<Value> carriedOn) {
  SmallVector<Value> handedOn(carriedOn);
  llvm::append_range(handedOn, sums);
  auto end = NextOp::create(inner, loc, handedOn, rows);
  if (isOfSegments)
    keepSegment();
  backward = ScanOp::create(builder, loc, rounds, !scan.getReversed(), slices, carries, reads,
                            TypeRange(end.getRows().getTypes()));
  backward.getBody().takeBody(region);
}

LogicalResult ScanGradient::run() {
  findActive();
  if (isOfSegments) {
    mapSegment();
  } else {
    keepStates();
    writeStep();
  }

  SmallVector<std::pair<Value, Value>> seeds;
  SmallVector<unsigned> carriedFor;
  auto mapped = [&](Value value) { return mapping.lookup(value); };
  // Slices first: they are the first arguments.
  for (auto [j, made] : llvm::enumerate(next.getRows()))
    if (Expr dy = g.cotangent(carried + j); dy && active.contains(made))
      seeds.push_back({mapped(made), addSlice(dy)});
  for (unsigned i = 0; i < carried; ++i) {
    if (!isActive(sliced + i))
      continue;
    Expr last = g.cotangent(i);
    if (!last)
      last = splat(builder, loc, typeOf(argument(sliced + i)), 0.0);
    carriedFor.push_back(i);
    BlockArgument after = addCarry(last);
    // A state that no step reads is another step's state as it is, or nothing.
    if (Value handed = mapping.lookupOrNull(next.getCarried()[i]))
      seeds.push_back({handed, after});
  }
  SmallVector<Value> leaves;
  for (unsigned i = 0; i < scan->getNumOperands(); ++i)
    if (Value leaf = mapping.lookupOrNull(argument(i)); leaf && isActive(i))
      leaves.push_back(leaf);
  FailureOr<llvm::DenseMap<Value, Value>> found = g.sweepBlock(*body, leaves, seeds);
  if (failed(found))
    return failure();
  inner.setInsertionPointToEnd(body);
  auto cotangent = [&](unsigned i) { return found->lookup(mapping.lookupOrNull(argument(i))); };

  SmallVector<Value> handedOn;
  for (unsigned i : carriedFor) {
    Value before = states[i] ? cotangent(sliced + i) : Value();
    handedOn.push_back(before ? before : splat(inner, loc, typeOf(argument(sliced + i)), 0.0).get());
  }
  SmallVector<std::pair<unsigned, Total>> results;
  for (unsigned i = 0; i < sliced; ++i)
    if (Value term = isActive(i) ? cotangent(i) : Value()) {
      std::function<Expr()> all = stack(term);
      ArrayRef<int64_t> shape = typeOf(scan->getOperand(i)).getShape();
      results.push_back({i, [=] { return reshape(all(), shape); }});
    }
  for (auto [number, i] : llvm::enumerate(carriedFor))
    if (g.needs(sliced + i))
      results.push_back({sliced + i, [=, this, number = number] { return at(builder, backward->getResult(number)); }});
  for (unsigned i = sliced + carried; i < scan->getNumOperands(); ++i)
    if (Value term = isActive(i) ? cotangent(i) : Value()) {
      Total total = isOfSegments ? Total() : sumUp(term);
      results.push_back({i, total ? total : carrySum(term)});
    }
  if (!isOfSegments) {
    SmallVector<Value> ends(handedOn);
    llvm::append_range(ends, rows);
    llvm::append_range(ends, sums);
    readLaidDown(ends);
    multiplyAhead();
  }
  finish(handedOn);
  for (auto &[i, total] : results)
    g.set(i, total());
  return success();
}

LogicalResult ScanOp::differentiate(GradientBuilder &g) { return ScanGradient(*this, g).run(); }
