//===- NNSplitSums.cpp - wide sums, one part after the other ----*- C++ -*-===//
//
// A mixture of experts computes all of them at once and adds them up: what lies between the experts' weights and the
// sum is as wide as there are experts. Written expert by expert, a plan may hold one at a time.
//
//   1. A stack of parameters, counted by its dimension 0, is followed forward, op by op (BatchInterface), as samples of
//      a batch are, up to sums over the stack.
//   2. Where nothing but such sums is read elsewhere, and something large lies before them, the ops in between are
//      written once for each part of the stack, and the parts' sums are added in order.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "llvm/ADT/MapVector.h"

namespace lowtide {
#define GEN_PASS_DEF_NNSPLITSUMS
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;
using nn::Expr;

/// Parts of a stack at most.
static constexpr int64_t kMostParts = 16;

static RankedTensorType getType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
/// What is computed for each entry of a stack of parameters, up to the sums over it.
class Stack {
public:
  explicit Stack(BlockArgument parameter) : parameter(parameter), entries(getType(parameter).getDimSize(0)) {}

  /// Finds the ops; false where their results are read other than as sums over the stack.
  bool follow();
  /// Bytes of the largest value that is as wide as the stack, weights aside.
  uint64_t widestBytes() const;
  /// Parts in which it is written.
  int64_t countParts() const;
  void split();
  int64_t countEntries() const { return entries; }

private:
  RankedTensorType partOf(Value value, BatchPosition position) const;
  Value cut(Value value, BatchPosition position, int64_t part);

  BlockArgument parameter;
  int64_t entries, parts = 1;
  /// Where values count entries.
  DenseMap<Value, BatchPosition> positions;
  /// Of these, what is made of the parameter alone.
  DenseSet<Value> weights;
  /// Ops that count entries, in order, with where each operand has to count them.
  llvm::MapVector<Operation *, SmallVector<std::optional<BatchPosition>>> ops;
  llvm::SmallSetVector<Value, 4> sums;
  OpBuilder builder{parameter.getContext()};
};
} // namespace

bool Stack::follow() {
  positions[parameter] = {};
  weights.insert(parameter);
  for (Operation &op : parameter.getOwner()->without_terminator()) {
    SmallVector<std::optional<BatchPosition>> found;
    bool counts = false;
    for (Value operand : op.getOperands()) {
      if (sums.contains(operand))
        continue;
      auto position = positions.find(operand);
      found.push_back(position == positions.end() ? std::nullopt : std::optional(position->second));
      counts |= found.back().has_value();
    }
    if (!counts)
      continue;
    auto batch = dyn_cast<BatchInterface>(&op);
    if (!batch || op.getNumRegions() != 0 || found.size() != op.getNumOperands())
      return false;
    BatchSplit answer(&op, entries, found, /*allSums=*/false);
    if (failed(batch.splitBatch(answer)))
      return false;
    for (auto [value, result] : llvm::zip_equal(op.getResults(), answer.results)) {
      if (result.kind == BatchSplit::Kind::Rows)
        positions[value] = result.position;
      else if (result.kind == BatchSplit::Kind::Sum)
        sums.insert(value);
      else
        return false;
    }
    if (llvm::all_of(op.getOperands(), [&](Value operand) { return weights.contains(operand); }))
      weights.insert(op.result_begin(), op.result_end());
    ops[&op] = answer.required;
  }
  if (sums.empty())
    return false;
  // The parts are written where the last of the ops stands: sums are read after it.
  Operation *last = ops.back().first;
  for (Value sum : sums)
    for (Operation *user : sum.getUsers())
      if (last->getBlock()->findAncestorOpInBlock(*user)->isBeforeInBlock(last))
        return false;
  for (auto &[op, required] : ops)
    for (Value result : op->getResults())
      if (!sums.contains(result) &&
          llvm::any_of(result.getUsers(), [&](Operation *user) { return !ops.contains(user); }))
        return false;
  return true;
}

uint64_t Stack::widestBytes() const {
  uint64_t widest = 0;
  for (auto &[op, required] : ops)
    for (Value result : op->getResults())
      if (!sums.contains(result) && !weights.contains(result))
        widest = std::max(widest, getTensorBytes(result.getType()).value_or(0));
  return widest;
}

int64_t Stack::countParts() const {
  for (int64_t count = std::min(kMostParts, entries); count > 1; --count)
    if (entries % count == 0)
      return count;
  return 1;
}

RankedTensorType Stack::partOf(Value value, BatchPosition position) const {
  SmallVector<int64_t> shape(getType(value).getShape());
  shape[position.dim] /= parts;
  return RankedTensorType::get(shape, getType(value).getElementType());
}

/// Part number `part` of a value that counts entries at `position`. A value that repeats a smaller one repeats a part
/// of that.
Value Stack::cut(Value value, BatchPosition position, int64_t part) {
  Expr whole(builder, value.getLoc(), value);
  SmallVector<int64_t> shape(partOf(value, position).getShape());
  if (auto repeated = value.getDefiningOp<nn::BroadcastOp>()) {
    Value source = repeated.getX();
    for (auto [from, to] : llvm::enumerate(repeated.getDims()))
      if (to == position.dim && getType(source).getDimSize(from) != 1)
        source = cut(source, {int64_t(from), position.outer, position.inner}, part);
    return nn::broadcast(Expr(builder, value.getLoc(), source), shape, repeated.getDims()).get();
  }
  SmallVector<int64_t> apart(getType(value).getShape().take_front(position.dim));
  llvm::append_values(apart, position.outer, entries, position.inner);
  llvm::append_range(apart, getType(value).getShape().drop_front(position.dim + 1));
  SmallVector<int64_t> starts(apart.size(), 0), sizes(apart);
  sizes[position.dim + 1] = entries / parts;
  starts[position.dim + 1] = part * (entries / parts);
  return nn::reshape(nn::slice(nn::reshape(whole, apart), starts, sizes), shape).get();
}

void Stack::split() {
  parts = countParts();
  builder.setInsertionPoint(ops.back().first);
  DenseMap<Value, Value> totals;
  for (int64_t part = 0; part < parts; ++part) {
    DenseMap<Value, Value> own;
    for (auto &[op, required] : ops) {
      Operation *clone = builder.clone(*op);
      builder.setInsertionPoint(clone);
      for (auto [operand, position] : llvm::zip_equal(op->getOpOperands(), required)) {
        Value value = own.lookup(operand.get());
        if (!value)
          value = position ? cut(operand.get(), *position, part) : operand.get();
        clone->setOperand(operand.getOperandNumber(), value);
      }
      builder.setInsertionPointAfter(clone);
      for (auto [result, made] : llvm::zip_equal(op->getResults(), clone->getResults())) {
        if (auto position = positions.find(result); position != positions.end())
          made.setType(partOf(result, position->second));
        own[result] = made;
        if (!sums.contains(result))
          continue;
        Value &total = totals[result];
        total = total ? (Expr(builder, result.getLoc(), total) + Expr(builder, result.getLoc(), made)).get() : made;
      }
    }
  }
  for (Value sum : sums)
    sum.replaceAllUsesWith(totals.lookup(sum));
  for (auto &[op, required] : llvm::reverse(ops))
    op->erase();
}

namespace {
struct NNSplitSums : StepPass<lowtide::impl::NNSplitSumsBase<NNSplitSums>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    func::FuncOp step = getOperation();
    for (BlockArgument argument : step.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!isa_and_nonnull<train::ParamAttr>(train::getArgBinding(step, argument.getArgNumber())) || !type ||
          type.getRank() < 3 || type.getDimSize(0) < 2)
        continue;
      Stack stack(argument);
      if (stack.countParts() == 1 || !stack.follow() || stack.widestBytes() < uint64_t(minBytes))
        continue;
      step.emitRemark("@") << step.getSymName() << ": " << formatBytes(stack.widestBytes()) << " of "
                           << stack.countEntries() << " stacked parts are computed in " << stack.countParts()
                           << ", one after the other";
      stack.split();
      ++numSplit;
    }
  }
};
} // namespace
