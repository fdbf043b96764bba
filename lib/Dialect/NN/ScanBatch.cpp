//===- ScanBatch.cpp - a loop over steps, for a part of the samples -------===//
//
// Follows the samples through the body as BatchTracking does through a step. What a round is handed counts samples
// where what it hands on does, so the walk is taken until nothing new is found; what counts samples only because
// something else needs it to (a constant, a bias that is spread) is made for fewer of them, too.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/BatchRules.h"
#include "lowtide/Dialect/NN/Scan.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;
using Kind = BatchSplit::Kind;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
class SampleWalk {
public:
  SampleWalk(ScanOp scan, int64_t samples) : scan(scan), samples(samples), body(*scan.getBlock()) {}

  /// `operands`: where the scan's operands count samples. Fails, with `reason`, where an answer is unknown.
  LogicalResult run(ArrayRef<std::optional<BatchPosition>> operands);
  /// After a walk: rewrites the body for `1 / parts` of the samples.
  void takePart(int64_t parts);

  std::string reason;
  /// Of values of the body that depend on samples, block arguments included.
  llvm::DenseMap<Value, BatchSplit::Result> states;

private:
  LogicalResult refuse(const Twine &why) {
    reason = why.str();
    return failure();
  }
  BatchSplit::Result get(Value value) const { return states.lookup(value); }
  bool isCarried(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getArgNumber() >= scan.getNumSliced() &&
           argument.getArgNumber() < scan.getNumSliced() + scan.getNumCarried();
  }
  LogicalResult visit(Operation *op);
  LogicalResult note(Value value, BatchSplit::Result result);
  LogicalResult need(Value value, BatchPosition position);
  LogicalResult handOn();

  ScanOp scan;
  int64_t samples;
  Block &body;
  /// Of nested scans, where their operands count samples.
  llvm::DenseMap<Operation *, SmallVector<std::optional<BatchPosition>>> required;
  /// What has to count samples, if it does once all states are known.
  SmallVector<std::pair<Value, BatchPosition>> pending;
  bool changes = false;
};
} // namespace

LogicalResult SampleWalk::note(Value value, BatchSplit::Result result) {
  if (result.kind == Kind::Same)
    return success();
  auto [known, isNew] = states.try_emplace(value, result);
  changes |= isNew;
  if (known->second.kind != result.kind || !(known->second.position == result.position))
    return refuse("counts samples of one value in two ways");
  return success();
}

/// `value` has to count samples at `position`.
LogicalResult SampleWalk::need(Value value, BatchPosition position) {
  if (BatchSplit::Result known = get(value); known.kind != Kind::Same)
    return known.kind == Kind::Rows && known.position == position ? success()
                                                                  : refuse("needs all samples in every round");
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getArgNumber() < scan.getNumSliced() && position.dim == 0)
      return refuse("walks over samples");
    return note(value, {Kind::Rows, position});
  }
  Operation *op = value.getDefiningOp();
  DenseElementsAttr constant;
  if (matchPattern(op, m_Constant(&constant)) && constant.isSplat())
    return note(value, {Kind::Rows, position});
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    for (auto [from, to] : llvm::enumerate(broadcast.getDims()))
      if (to == position.dim && broadcast.getX().getType().getDimSize(from) != 1 &&
          failed(need(broadcast.getX(), {int64_t(from), position.outer, position.inner})))
        return failure();
    return note(value, {Kind::Rows, position});
  }
  if (auto shown = dyn_cast<ReshapeOp>(op)) {
    auto from = reshapePosition(typeOf(value), position, typeOf(shown.getX()), samples);
    if (!from || failed(need(shown.getX(), *from)))
      return from ? failure() : refuse("divides the samples among several dimensions");
    return note(value, {Kind::Rows, position});
  }
  // A state may not be known to count samples yet, and so what is made of it.
  if (!op->hasTrait<OpTrait::Elementwise>()) {
    pending.push_back({value, position});
    return success();
  }
  for (Value operand : op->getOperands())
    if (failed(need(operand, position)))
      return failure();
  return note(value, {Kind::Rows, position});
}

LogicalResult SampleWalk::visit(Operation *op) {
  SmallVector<std::optional<BatchPosition>> positions;
  bool anyRows = false, anySum = false, allSums = op->getNumOperands() > 0;
  for (Value operand : op->getOperands()) {
    BatchSplit::Result state = get(operand);
    positions.push_back(state.kind == Kind::Rows ? std::optional(state.position) : std::nullopt);
    anyRows |= state.kind == Kind::Rows;
    anySum |= state.kind == Kind::Sum;
    allSums &= state.kind == Kind::Sum;
  }
  if (!anyRows && !anySum)
    return success();
  if (anySum && !allSums) {
    // What sums are added to from round to round is one, too; `handOn` sees whether it is.
    for (Value operand : op->getOperands())
      if (get(operand).kind == Kind::Same && isCarried(operand) && failed(note(operand, {Kind::Sum})))
        return failure();
    allSums = llvm::all_of(op->getOperands(), [&](Value operand) { return get(operand).kind == Kind::Sum; });
    if (!allSums)
      return refuse("needs a sum over all samples in every round");
  }
  auto batch = dyn_cast<BatchInterface>(op);
  BatchSplit split(op, samples, positions, allSums);
  if (!batch || failed(batch.splitBatch(split)))
    return refuse(batch ? "has a body in which '" + op->getName().getStringRef().str() + "' " + split.reason
                        : "has a body in which '" + op->getName().getStringRef().str() +
                              "' does not say what it does with samples");
  for (auto [operand, position] : llvm::zip_equal(op->getOperands(), split.required))
    if (position && failed(need(operand, *position)))
      return failure();
  for (auto [value, result] : llvm::zip_equal(op->getResults(), split.results)) {
    if (result.kind == Kind::Statistic)
      return refuse("takes statistics over the samples in every round");
    if (allSums && result.kind != Kind::Sum)
      return refuse("needs a sum over all samples in every round");
    if (failed(note(value, result)))
      return failure();
  }
  if (op->getNumRegions())
    required[op] = split.required;
  return success();
}

/// What a round hands on is what the next one is handed.
LogicalResult SampleWalk::handOn() {
  const unsigned sliced = scan.getNumSliced();
  for (auto [i, handed] : llvm::enumerate(scan.getNext().getCarried())) {
    Value argument = body.getArgument(sliced + i);
    BatchSplit::Result from = get(argument), to = get(handed);
    if (to.kind == Kind::Sum) {
      DenseElementsAttr first;
      if (!matchPattern(scan.getCarried()[i], m_Constant(&first)) || !first.isSplat() ||
          !isa<FloatType>(first.getElementType()) || !first.getSplatValue<APFloat>().isZero())
        return refuse("adds sums over the samples to what it started with");
    }
    if (from.kind == Kind::Rows && failed(need(handed, from.position)))
      return failure();
    if (from.kind == Kind::Sum && to.kind != Kind::Sum)
      return refuse("needs a sum over all samples in every round");
    if (failed(note(argument, to)))
      return failure();
  }
  return success();
}

LogicalResult SampleWalk::run(ArrayRef<std::optional<BatchPosition>> operands) {
  for (auto [argument, position] : llvm::zip_equal(body.getArguments(), operands)) {
    if (position && position->dim < 0)
      return refuse("computes with the number of the first sample");
    if (position && failed(need(argument, *position)))
      return failure();
  }
  do {
    changes = false;
    pending.clear();
    for (Operation &op : body.without_terminator())
      if (failed(visit(&op)))
        return failure();
    if (failed(handOn()))
      return failure();
  } while (changes);
  for (auto &[value, position] : pending)
    if (BatchSplit::Result state = get(value); state.kind != Kind::Rows || !(state.position == position))
      return refuse("needs a part of what a round makes for all samples");
  for (Value row : scan.getNext().getRows())
    if (BatchSplit::Result state = get(row); state.kind == Kind::Rows && state.position.dim == 0)
      return refuse("lays samples of all rounds in one dimension");
  return success();
}

void SampleWalk::takePart(int64_t parts) {
  for (Operation &op : body)
    if (auto nested = dyn_cast<ScanOp>(op); nested && required.contains(nested))
      nested.takeSamples(required[nested], samples, parts);
  for (auto &[value, state] : states) {
    if (state.kind != Kind::Rows)
      continue;
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape[state.position.dim] /= parts;
    RankedTensorType type = typeOf(value).clone(shape);
    Value changed = value;
    changed.setType(type);
    if (auto constant = value.getDefiningOp<ConstantOp>())
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type));
  }
}

void ScanOp::takeSamples(ArrayRef<std::optional<BatchPosition>> required, int64_t samples, int64_t parts) {
  SampleWalk walk(*this, samples);
  const bool isKnown = succeeded(walk.run(required));
  assert(isKnown && "splitBatch has answered for these samples");
  (void)isKnown;
  walk.takePart(parts);
}

LogicalResult nn::splitScan(Operation *op, BatchSplit &split) {
  auto scan = cast<ScanOp>(op);
  if (split.allSums)
    return split.refuse("is no sum of terms");
  SampleWalk walk(scan, split.samples);
  if (failed(walk.run(split.operands)))
    return split.refuse(walk.reason);
  for (auto [i, argument] : llvm::enumerate(scan.getBlock()->getArguments()))
    if (BatchSplit::Result state = walk.states.lookup(argument); state.kind == Kind::Rows)
      split.required[i] = state.position;
  for (auto [i, value] : llvm::enumerate(scan.getNext()->getOperands()))
    split.results[i] = walk.states.lookup(value);
  return success();
}
