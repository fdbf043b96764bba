//===- LoopRules.cpp - loops of known length ------------------------------===//
//
// Rules for Loop, Scan and SequenceMap. The body of a Scan is legalized once and becomes that of a scan. Where that
// cannot be (it draws, updates statistics, or needs the elements of a state when compiling), and for a Loop and a
// SequenceMap, the body is legalized once for each iteration; conditions and counts must be known when compiling.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/NN/Scan.h"
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// Nodes that unrolling one loop may make.
constexpr uint64_t unrolledNodeLimit = 100'000;

/// The body of a Loop or Scan and what flows through it.
class Unroller {
public:
  explicit Unroller(NodeView &n) : n(n) {}

  /// Rejects a node without a body of `inputs` inputs and at least `states` outputs.
  LogicalResult open(unsigned inputs, unsigned states) {
    if (n.op.getBodies().size() != 1)
      return n.reject("one body is expected");
    body = &n.op.getBodies()[0].front();
    yield = cast<onnx::YieldOp>(body->getTerminator());
    if (body->getNumArguments() != inputs || yield.getValues().size() < states)
      return n.reject("its body does not have the inputs and outputs that it states");
    return success();
  }
  /// Legalizes the body on `inputs`; returns what it yields. An empty list means that something inside was refused.
  SmallVector<Meaning> run(ArrayRef<Meaning> inputs) {
    for (auto [argument, meaning] : llvm::zip(body->getArguments(), inputs))
      n.context.bind(argument, meaning);
    n.context.legalizeBlock(*body);
    SmallVector<Meaning> outputs;
    for (Value value : yield.getValues()) {
      outputs.push_back(n.context.lookup(value));
      if (!outputs.back())
        return {};
    }
    return outputs;
  }
  /// Fails, in words, when `count` iterations are too many.
  LogicalResult checkCount(int64_t count) {
    uint64_t nodes = body->getOperations().size();
    if (count < 0 || static_cast<uint64_t>(count) * nodes > unrolledNodeLimit)
      return n.refuse("unrolling " + Twine(count) + " iterations of " + Twine(nodes) + " nodes makes more than " +
                      Twine(unrolledNodeLimit) + " nodes");
    return success();
  }
  /// What a refusal inside of the body means for the loop.
  LogicalResult fail() {
    return n.context.failed() ? success() : n.reject("its body does not compute all of its outputs");
  }
  /// The outputs of all iterations one after another along a new dimension `axis`.
  LogicalResult stack(unsigned result, ArrayRef<Meaning> pieces, int64_t axis, bool reversed) {
    if (pieces.empty())
      return n.refuse("a loop that does not run gives empty results");
    SmallVector<Expr> parts;
    for (const Meaning &piece : pieces) {
      if (!piece.tensor)
        return n.refuse("results of iterations are sequences");
      FailureOr<int64_t> at = n.axis(axis, n.wrap(piece.tensor).rank() + 1);
      if (failed(at))
        return failure();
      parts.push_back(unsqueeze(n.wrap(piece.tensor), *at));
      if (parts.back().type() != parts.front().type())
        return n.refuse("results of iterations differ in shape");
      axis = *at;
    }
    if (reversed)
      std::reverse(parts.begin(), parts.end());
    n.set(result, parts.size() == 1 ? parts.front() : nn::concat(parts, axis));
    return success();
  }

  NodeView &n;
  Block *body = nullptr;
  onnx::YieldOp yield;
};

/// A boolean known when compiling.
std::optional<bool> knownCondition(const Meaning &meaning) {
  DenseElementsAttr value = LegalizeContext::constantOf(meaning.tensor);
  if (!value || value.getNumElements() != 1 || !isa<IntegerType>(value.getElementType()))
    return std::nullopt;
  return intsOf(value).front() != 0;
}

LogicalResult loop(NodeView &n) {
  FailureOr<int64_t> trips = std::numeric_limits<int64_t>::max();
  if (n.has(0))
    trips = n.knownInt(0, "the number of iterations");
  if (failed(trips))
    return failure();
  std::optional<bool> goes = n.has(1) ? knownCondition(n.meaning(1)) : true;
  SmallVector<Meaning> carried;
  for (unsigned i = 2; i < n.size(); ++i)
    carried.push_back(n.meaning(i));
  Unroller unroller(n);
  if (failed(unroller.open(carried.size() + 2, carried.size() + 1)))
    return failure();
  SmallVector<SmallVector<Meaning>> pieces(unroller.yield.getValues().size() - 1 - carried.size());
  auto number = RankedTensorType::get({}, n.builder.getI64Type());
  auto flag = RankedTensorType::get({}, n.builder.getI1Type());
  for (int64_t i = 0; i < *trips && goes.value_or(true); ++i) {
    if (!goes)
      break;
    if (failed(unroller.checkCount(i + 1)))
      return failure();
    SmallVector<Meaning> inputs{{n.dense(DenseElementsAttr::get(number, i)).get(), {}},
                                {n.dense(DenseElementsAttr::get(flag, true)).get(), {}}};
    inputs.append(carried);
    SmallVector<Meaning> outputs = unroller.run(inputs);
    if (outputs.empty())
      return unroller.fail();
    goes = knownCondition(outputs.front());
    for (size_t j = 0; j < carried.size(); ++j)
      carried[j] = outputs[j + 1];
    for (size_t j = 0; j < pieces.size(); ++j)
      pieces[j].push_back(outputs[j + 1 + carried.size()]);
  }
  if (!goes)
    return n.refuse(
        "whether it goes on is computed from data; it must be known when compiling: give the loop a fixed number of "
        "rounds, and keep what is done with Where");
  for (size_t j = 0; j < carried.size() && j < n.results.size(); ++j)
    n.results[j] = carried[j];
  for (size_t j = 0; j < pieces.size(); ++j)
    if (n.wants(carried.size() + j) && failed(unroller.stack(carried.size() + j, pieces[j], 0, false)))
      return failure();
  return success();
}

/// A Scan with its axes counted from the front.
struct ScanView {
  int64_t numScanned, numStates, count = -1;
  Shape inputAxes, inputTurned, outputAxes, outputTurned;
};

/// Writes the body as that of a scan.
class ScanWriter {
public:
  ScanWriter(Unroller &unroller, const ScanView &view) : n(unroller.n), unroller(unroller), view(view) {}

  /// False, and nothing is changed, where the body cannot be written once.
  bool run();

private:
  bool writeBody();
  bool writeOutputs(ArrayRef<Meaning> outputs);
  void captureFromOutside();

  NodeView &n;
  Unroller &unroller;
  const ScanView &view;
  /// All rounds go the way of the first operand; what goes the other way is turned before or after them.
  bool isReversed() const { return view.inputTurned.front() != 0; }
  Expr turn(Expr x, int64_t turned) const { return (turned != 0) == isReversed() ? x : nn::reverse(x, {0}); }

  Region region;
  Block *body = &region.emplaceBlock();
  SmallVector<Value> slices, states, reads, handedOn, rows;
};

/// The order of dimensions with `axis` first.
static Shape axisFirst(int64_t axis, int64_t rank) {
  Shape order{axis};
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      order.push_back(i);
  return order;
}

bool ScanWriter::writeOutputs(ArrayRef<Meaning> outputs) {
  if (llvm::any_of(outputs, [](const Meaning &output) { return !output.tensor; }))
    return false;
  for (int64_t j = 0; j < view.numStates; ++j) {
    if (outputs[j].tensor.getType() != states[j].getType())
      return false;
    handedOn.push_back(outputs[j].tensor);
  }
  for (const Meaning &output : outputs.drop_front(view.numStates))
    rows.push_back(unsqueeze(n.wrap(output.tensor), 0));
  return true;
}

/// Constants are the body's own; anything else from outside is read by every round.
void ScanWriter::captureFromOutside() {
  DenseMap<Value, Value> inside;
  n.builder.setInsertionPointToStart(body);
  auto getInside = [&](Value value) {
    Value &known = inside[value];
    if (known)
      return known;
    if (Operation *op = value.getDefiningOp(); op && op->hasTrait<OpTrait::ConstantLike>())
      return known = n.builder.clone(*op)->getResult(0);
    reads.push_back(value);
    return known = body->addArgument(value.getType(), value.getLoc());
  };
  auto isOutside = [&](Value value) { return !region.isAncestor(value.getParentRegion()); };
  SmallVector<OpOperand *> captured;
  region.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (isOutside(operand.get()))
        captured.push_back(&operand);
  });
  for (OpOperand *operand : captured)
    operand->set(getInside(operand->get()));
  for (SmallVector<Value> *list : {&handedOn, &rows})
    for (Value &value : *list)
      if (isOutside(value))
        value = getInside(value);
}

bool ScanWriter::writeBody() {
  OpBuilder::InsertionGuard guard(n.builder);
  SmallVector<Meaning> inputs;
  for (Value slice : slices) {
    SmallVector<int64_t> part(cast<RankedTensorType>(slice.getType()).getShape());
    part[0] = 1;
    body->addArgument(cast<RankedTensorType>(slice.getType()).clone(part), n.getLoc());
  }
  for (Value state : states)
    inputs.push_back({body->addArgument(state.getType(), n.getLoc()), {}});
  n.builder.setInsertionPointToEnd(body);
  for (BlockArgument part : body->getArguments().take_front(slices.size())) {
    Expr x = n.wrap(part);
    inputs.push_back({nn::reshape(x, x.shape().drop_front()).get(), {}});
  }
  const LegalizeContext::Mark before = n.context.mark();
  SmallVector<Meaning> outputs = unroller.run(inputs);
  const bool isOne = n.context.isAt(before) && !outputs.empty() && writeOutputs(outputs);
  if (!isOne)
    n.context.rewind(before);
  else
    captureFromOutside();
  return isOne;
}

bool ScanWriter::run() {
  Operation *last = n.builder.getInsertionBlock()->empty() ? nullptr : &n.builder.getInsertionBlock()->back();
  for (int64_t j = 0; j < view.numStates; ++j)
    if (Value state = n.meaning(j).tensor)
      states.push_back(state);
    else
      return false;
  for (int64_t j = 0; j < view.numScanned; ++j) {
    Expr x = n.in(view.numStates + j);
    slices.push_back(turn(nn::transpose(x, axisFirst(view.inputAxes[j], x.rank())), view.inputTurned[j]));
  }
  if (!writeBody()) {
    Block *block = n.builder.getInsertionBlock();
    while (!block->empty() && &block->back() != last)
      block->back().erase();
    return false;
  }
  auto scan = nn::ScanOp::create(n.builder, n.getLoc(), view.count, isReversed(), slices, states, reads,
                                 TypeRange(ValueRange(rows)));
  scan.getBody().takeBody(region);
  OpBuilder inside = OpBuilder::atBlockEnd(scan.getBlock());
  nn::NextOp::create(inside, n.getLoc(), handedOn, rows);
  for (auto [j, result] : llvm::enumerate(scan->getResults().take_front(states.size())))
    if (j < n.results.size())
      n.results[j] = {result, {}};
  for (auto [j, result] : llvm::enumerate(scan->getResults().drop_front(states.size()))) {
    if (!n.wants(view.numStates + j))
      continue;
    Expr all = turn(n.wrap(result), view.outputTurned[j]);
    const Shape first = axisFirst(view.outputAxes[j], all.rank());
    Shape order(first.size());
    for (auto [from, to] : llvm::enumerate(first))
      order[to] = int64_t(from);
    n.set(view.numStates + j, nn::transpose(all, order));
  }
  return true;
}

LogicalResult scan(NodeView &n) {
  int64_t numScanned = n.attr("num_scan_inputs", 0), numStates = int64_t(n.size()) - numScanned;
  if (numScanned < 1 || numStates < 0 || failed(n.need(n.size())))
    return n.context.failed() ? failure() : n.reject("'num_scan_inputs' does not fit the operands");
  Unroller unroller(n);
  if (failed(unroller.open(n.size(), numStates)))
    return failure();
  size_t numPieces = unroller.yield.getValues().size() - numStates;
  ScanView view{numScanned, numStates};
  auto &[numInputs, numCarried, count, inputAxes, inputTurned, outputAxes, outputTurned] = view;
  inputAxes = n.attrInts("scan_input_axes", Shape(numScanned, 0));
  inputTurned = n.attrInts("scan_input_directions", Shape(numScanned, 0));
  outputAxes = n.attrInts("scan_output_axes", Shape(numPieces, 0));
  outputTurned = n.attrInts("scan_output_directions", Shape(numPieces, 0));
  if (int64_t(inputAxes.size()) != numScanned || int64_t(inputTurned.size()) != numScanned ||
      outputAxes.size() != numPieces || outputTurned.size() != numPieces)
    return n.reject("axes and directions do not fit the operands and results");
  for (int64_t j = 0; j < numScanned; ++j) {
    FailureOr<int64_t> axis = n.axis(inputAxes[j], n.in(numStates + j).rank());
    if (failed(axis))
      return failure();
    inputAxes[j] = *axis;
    int64_t extent = n.in(numStates + j).dim(*axis);
    if (count >= 0 && extent != count)
      return n.reject("the scanned operands differ in length");
    count = extent;
  }
  if (count > 0 && ScanWriter(unroller, view).run())
    return success();
  if (failed(unroller.checkCount(count)))
    return failure();
  SmallVector<Meaning> states;
  for (int64_t j = 0; j < numStates; ++j)
    states.push_back(n.meaning(j));
  SmallVector<SmallVector<Meaning>> pieces(numPieces);
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Meaning> inputs = states;
    for (int64_t j = 0; j < numScanned; ++j) {
      Expr x = n.in(numStates + j);
      Shape shape(x.shape());
      shape.erase(shape.begin() + inputAxes[j]);
      Expr slice = sliceDim(x, inputAxes[j], inputTurned[j] ? count - 1 - i : i, 1);
      inputs.push_back({nn::reshape(slice, shape).get(), {}});
    }
    SmallVector<Meaning> outputs = unroller.run(inputs);
    if (outputs.empty())
      return unroller.fail();
    for (int64_t j = 0; j < numStates; ++j)
      states[j] = outputs[j];
    for (size_t j = 0; j < numPieces; ++j)
      pieces[j].push_back(outputs[numStates + j]);
  }
  for (int64_t j = 0; j < numStates && j < int64_t(n.results.size()); ++j)
    n.results[j] = states[j];
  for (size_t j = 0; j < numPieces; ++j)
    if (n.wants(numStates + j) && failed(unroller.stack(numStates + j, pieces[j], outputAxes[j], outputTurned[j] != 0)))
      return failure();
  return success();
}

/// The body for each tensor of the first operand's sequence. Other sequences are as long, and tensors go to each.
LogicalResult sequenceMap(NodeView &n) {
  if (n.size() < 1 || !n.has(0) || !n.meaning(0).sequence)
    return n.reject("operand 0 must be a sequence");
  const size_t count = n.meaning(0).sequence->size();
  for (unsigned i = 1; i < n.size(); ++i)
    if (n.has(i) && n.meaning(i).sequence && n.meaning(i).sequence->size() != count)
      return n.reject("its sequences differ in length");
  Unroller unroller(n);
  if (failed(unroller.open(n.size(), n.results.size())) || failed(unroller.checkCount(int64_t(count))))
    return failure();
  SmallVector<SmallVector<Value>> lists(n.results.size());
  for (size_t round = 0; round != count; ++round) {
    SmallVector<Meaning> inputs;
    for (unsigned i = 0; i < n.size(); ++i)
      inputs.push_back(n.meaning(i).sequence ? Meaning{(*n.meaning(i).sequence)[round], {}} : n.meaning(i));
    const SmallVector<Meaning> outputs = unroller.run(inputs);
    if (outputs.empty())
      return unroller.fail();
    for (auto [list, output] : llvm::zip(lists, outputs)) {
      if (!output.tensor)
        return n.reject("its body gives a sequence");
      list.push_back(output.tensor);
    }
  }
  for (auto [result, list] : llvm::enumerate(lists))
    n.setSequence(unsigned(result), list);
  return success();
}

} // namespace

void lowtide::addLoopRules(RuleTable &t) {
  t.add("Loop", loop);
  t.add("Scan", scan);
  t.add("SequenceMap", sequenceMap);
}
