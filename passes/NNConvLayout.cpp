//===- NNConvLayout.cpp - images and filters, channels last ---------------===//
//
// 1. Every call that has an order of its own to give its tensors, and that the
//    target's library takes so, says how its operands and results would be
//    stored; ops around them pass the orders on (OrderInterface).
// 2. A minimum cut decides which ops compute on tensors stored so. A call that
//    does not costs what the library passes through its workspace for it; a
//    value that is needed in both orders costs one transpose.
// 3. Those ops are built anew; values at borders are transposed once.
//
//===----------------------------------------------------------------------===//

#include "LibraryCalls.h"
#include "StepPass.h"
#include "lowtide/Analysis/CostModel.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/OrderRules.h"
#include "lowtide/RuntimeQuery/LibraryQuery.h"
#include "lowtide/Solve/Algorithms/FlowNetwork.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowtide;
using solve::FlowNetwork;

namespace lowtide {
#define GEN_PASS_DEF_NNCONVLAYOUT
#include "Passes.h.inc"
} // namespace lowtide

namespace {

uint64_t bytesOf(Value value) { return getTensorBytes(value.getType()).value_or(0); }

/// What a call costs beside its operands and results, in bytes that the library writes and reads again.
struct CallPrice {
  uint64_t natural = 0, ordered = 0;
  bool isTaken = false; ///< in its own order
};

/// The orders of one block's values, and who computes in them.
class LayoutProblem {
public:
  LayoutProblem(Block &block, const TargetInfo &target, bool always) : block(block), target(target), always(always) {}

  /// 1. Orders of values; the ops that could follow them.
  void propagate();
  /// 2. Keeps those of them that should.
  void cut();
  /// 3. Builds them.
  void rewrite();

  unsigned numCalls = 0, numFollowing = 0, numTransposes = 0;
  uint64_t bytesSaved = 0, bytesMoved = 0;

private:
  bool answer(Operation *op, OrderFlow &flow);
  CallPrice priceOf(LibraryCallInterface call);
  bool isOrdered(Operation *op) const { return op && followers.contains(op); }
  DimensionOrder orderOf(Value value) const { return orders.lookup(value); }
  Value inOrder(Value value);

  Block &block;
  const TargetInfo &target;
  bool always;
  llvm::MapVector<Value, DimensionOrder> orders; ///< of values that some op would store in another than the natural one
  llvm::MapVector<Operation *, CallPrice> calls;
  llvm::SetVector<Operation *> followers;
  llvm::DenseSet<Operation *> savedMoves; ///< of them, those that move elements naturally, and none in order
  llvm::DenseMap<Value, Value> stored;    ///< naturally → in order
};

/// What rule and known orders say of `op`; false where that is nothing, or nothing but natural orders.
bool LayoutProblem::answer(Operation *op, OrderFlow &flow) {
  auto rule = dyn_cast<OrderInterface>(op);
  if (!rule)
    return false;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (auto known = orders.find(operand); known != orders.end())
      flow.operands[i] = known->second;
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (auto known = orders.find(result); known != orders.end())
      flow.results[i] = known->second;
  if (failed(rule.passOrder(flow)))
    return false;
  bool isNatural = true;
  auto fits = [&](Value value, const std::optional<DimensionOrder> &order) {
    isNatural &= order && order->isNatural();
    return order && PlacedOrder::get(*order, cast<RankedTensorType>(value.getType()).getShape());
  };
  for (auto [operand, order] : llvm::zip_equal(op->getOperands(), flow.operands))
    if (!fits(operand, order))
      return false;
  for (auto [result, order] : llvm::zip_equal(op->getResults(), flow.results))
    if (!fits(result, order))
      return false;
  return !isNatural;
}

/// Asks the library about both forms, with results as narrow as the operands: f32 ones become casts.
CallPrice LayoutProblem::priceOf(LibraryCallInterface call) {
  CallPrice price;
  OrderFlow flow(call);
  if (!isLibraryCall(call) || !isa<OrderInterface>(call.getOperation()) || call->getNumResults() != 1 ||
      failed(cast<OrderInterface>(call.getOperation()).passOrder(flow)))
    return price;
  Block scratch;
  OpBuilder builder(call->getContext());
  builder.setInsertionPointToEnd(&scratch);
  flow.builder = &builder;
  for (auto [i, operand] : llvm::enumerate(call->getOperands())) {
    Value natural = scratch.addArgument(operand.getType(), operand.getLoc());
    flow.stored.push_back(nn::storeInOrder(builder, natural, *flow.operands[i]));
  }
  if (failed(cast<OrderInterface>(call.getOperation()).passOrder(flow)))
    return price;
  auto ordered = dyn_cast_or_null<LibraryCallInterface>(flow.made[0].getDefiningOp());
  if (!ordered)
    return price;
  Operation *natural = builder.clone(*call);
  natural->setOperands(scratch.getArguments());
  Type narrow = getElementTypeOrSelf(call->getOperand(0));
  for (Operation *form : {natural, ordered.getOperation()})
    form->getResult(0).setType(cast<RankedTensorType>(form->getResult(0).getType()).clone(narrow));
  price.isTaken = isTaken(ordered, target);
  if (price.isTaken) {
    FailureOr<uint64_t> before = queryWorkspace(cast<LibraryCallInterface>(natural), target),
                        after = queryWorkspace(ordered, target);
    price.isTaken = succeeded(before) && succeeded(after);
    price.natural = 2 * before.value_or(0);
    price.ordered = 2 * after.value_or(0);
  }
  return price;
}

void LayoutProblem::propagate() {
  SmallVector<Value> worklist;
  auto learn = [&](Operation *op, const OrderFlow &flow) {
    followers.insert(op);
    auto facts = dyn_cast<FactsInterface>(op);
    if (flow.isView && facts && facts.getFacts().aliasing != Aliasing::View)
      savedMoves.insert(op);
    auto set = [&](Value value, const DimensionOrder &order) {
      if (orders.try_emplace(value, order).second && !order.isNatural())
        worklist.push_back(value);
    };
    for (auto [operand, order] : llvm::zip_equal(op->getOperands(), flow.operands))
      set(operand, *order);
    for (auto [result, order] : llvm::zip_equal(op->getResults(), flow.results))
      set(result, *order);
  };
  auto visit = [&](Operation *op) {
    OrderFlow flow(op);
    const bool isCall = isa<LibraryCallInterface>(op) && isLibraryCall(op);
    if (op->getBlock() == &block && !followers.contains(op) && (!isCall || calls.contains(op)) && answer(op, flow))
      learn(op, flow);
  };
  for (Operation &op : block)
    if (auto call = dyn_cast<LibraryCallInterface>(op))
      if (CallPrice price = priceOf(call); price.isTaken)
        calls[&op] = price;
  for (auto &[call, price] : calls)
    visit(call);
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (Operation *maker = value.getDefiningOp())
      visit(maker);
    for (Operation *user : value.getUsers())
      visit(user);
  }
}

void LayoutProblem::cut() {
  const CostModel model = CostModel::get(target);
  auto price = [&](uint64_t bytes, double launches) {
    return int64_t((double(bytes) / model.bytesPerSecond + launches * model.launchSeconds) * 1e12);
  };
  llvm::DenseMap<Operation *, uint32_t> nodes;
  // Source: in another order; sink: naturally.
  const uint32_t source = 0, sink = 1;
  uint32_t next = 2;
  for (Operation *op : followers)
    nodes[op] = next++;
  SmallVector<Value> values;
  for (auto &[value, order] : orders)
    if (!order.isNatural())
      values.push_back(value);
  FlowNetwork network(next + 2 * values.size());
  auto nodeOf = [&](Operation *op) { return op && nodes.contains(op) ? nodes[op] : sink; };
  for (auto &[call, cost] : calls)
    if (nodes.contains(call)) {
      network.addEdge(source, nodes[call], always ? FlowNetwork::infinity : price(cost.natural, 0));
      network.addEdge(nodes[call], sink, always ? 0 : price(cost.ordered, 0));
    }
  for (Operation *op : savedMoves)
    network.addEdge(source, nodes[op], price(2 * bytesOf(op->getResult(0)), 1));
  for (Value value : values) {
    // Needed in order by somebody; needed naturally by somebody.
    const uint32_t ordered = next++, natural = next++, maker = nodeOf(value.getDefiningOp());
    const int64_t transpose = price(2 * bytesOf(value), 1);
    // A constant is made as it is needed.
    if (Operation *op = value.getDefiningOp(); op && op->hasTrait<OpTrait::ConstantLike>())
      continue;
    network.addEdge(ordered, maker, transpose);
    network.addEdge(maker, natural, transpose);
    for (Operation *user : value.getUsers()) {
      network.addEdge(nodeOf(user), ordered, FlowNetwork::infinity);
      network.addEdge(natural, nodeOf(user), FlowNetwork::infinity);
    }
  }
  std::vector<char> side = network.cut(source, sink);
  followers.remove_if([&](Operation *op) { return !side[nodes[op]]; });
  for (auto &[call, cost] : calls)
    if (isOrdered(call)) {
      ++numCalls;
      bytesSaved += cost.natural - cost.ordered;
    }
}

/// `value` as it is stored in its order; transposed where it is made, if nothing has made it so.
Value LayoutProblem::inOrder(Value value) {
  DimensionOrder order = orderOf(value);
  Value &form = stored[value];
  if (form || order.isNatural())
    return form = form ? form : value;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Operation *maker = value.getDefiningOp();
  if (!maker || !maker->hasTrait<OpTrait::ConstantLike>()) { // else it folds
    ++numTransposes;
    bytesMoved += 2 * bytesOf(value);
  }
  return form = nn::storeInOrder(builder, value, order);
}

void LayoutProblem::rewrite() {
  // Gone at the end alone: values are known by their addresses.
  SmallVector<Operation *> replaced;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isOrdered(&op))
      continue;
    OpBuilder builder(&op);
    OrderFlow flow(&op);
    (void)answer(&op, flow);
    flow.builder = &builder;
    for (Value operand : op.getOperands())
      flow.stored.push_back(inOrder(operand));
    if (failed(cast<OrderInterface>(op).passOrder(flow)))
      continue; // it has answered before
    numFollowing += !calls.contains(&op);
    for (auto [result, made] : llvm::zip_equal(op.getResults(), flow.made)) {
      const DimensionOrder order = orderOf(result);
      auto shape = cast<RankedTensorType>(result.getType()).getShape();
      Value ordered = nn::reshapeTo(builder, made, PlacedOrder::get(order, shape)->getStoredShape());
      const bool isNeeded = llvm::any_of(result.getUsers(), [&](Operation *user) { return !isOrdered(user); });
      if (isNeeded && !order.isNatural()) {
        ++numTransposes;
        bytesMoved += 2 * bytesOf(result);
      }
      // Ops that follow ask for it by its natural form, which goes where nothing else needs it.
      Value natural = nn::storeNaturally(builder, ordered, order, shape);
      orders.try_emplace(natural, order);
      stored[natural] = ordered;
      result.replaceAllUsesWith(natural);
    }
    replaced.push_back(&op);
  }
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
}

struct NNConvLayout : StepPass<lowtide::impl::NNConvLayoutBase<NNConvLayout>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    if (failed(checkOption(getOperation(), "conv-layout", convLayout)))
      return signalPassFailure();
    if (convLayout == "nchw")
      return;
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) { blocks.push_back(block); });
    unsigned calls = 0, transposes = 0, following = 0;
    uint64_t saved = 0, moved = 0;
    for (Block *block : blocks) {
      LayoutProblem problem(*block, target, convLayout == "nhwc");
      problem.propagate();
      problem.cut();
      problem.rewrite();
      calls += problem.numCalls;
      transposes += problem.numTransposes;
      saved += problem.bytesSaved;
      moved += problem.bytesMoved;
      following += problem.numFollowing;
    }
    numFollowing += following;
    numCalls += calls;
    numTransposes += transposes;
    if (calls)
      getOperation()->emitRemark() << "channels last: " << calls << " library calls, " << following << " other ops; "
                                   << llvm::formatv("{0:F2}", double(saved) / 1e6).str()
                                   << " MB less through workspaces, " << transposes << " transposes of "
                                   << llvm::formatv("{0:F2}", double(moved) / 1e6).str() << " MB";
  }
};
} // namespace
