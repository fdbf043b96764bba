//===- RowChunks.cpp - from logits to loss, row by row ----------*- C++ -*-===//
//
// 1. A product with many columns, and all that is computed of it until it is small again (RowRegion), becomes a loop
// over
//    rows, the backward pass with the forward pass; sums go tile by tile, whatever the loop.
// 2. Large logits that stay whole are reported with their reason.
//
//===----------------------------------------------------------------------===//

#include "RowChunks.h"
#include "BatchLoops.h"
#include "HeadChunks.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/ForwardPart.h"
#include "lowtide/Analysis/RowRegion.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Interfaces/BindingInterface.h"

using namespace mlir;
using namespace lowtide;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static uint64_t bytesOf(Value value) { return getTensorBytes(value.getType()).value_or(0); }

/// x [rows, features] · matrix.
static bool isProductOfRows(Operation *op) {
  auto facts = dyn_cast_if_present<FactsInterface>(op);
  return facts && facts.getFacts().family == OpFamily::Contraction && op->getNumOperands() == 2 &&
         op->getNumResults() == 1 && typeOf(op->getResult(0)).getRank() == 2 &&
         typeOf(op->getOperand(0)).getRank() == 2 && typeOf(op->getOperand(1)).getRank() == 2 &&
         typeOf(op->getOperand(0)).getNumElements() != 0;
}

/// The product that logits are made of by way of shapes, orders and elements; null if there is none.
static Operation *findProduct(Value logits) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Value> worklist{logits};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (isProductOfRows(op))
      return op;
    auto facts = dyn_cast<FactsInterface>(op);
    if (facts && (facts.getFacts().family == OpFamily::Elementwise || facts.getFacts().family == OpFamily::Movement))
      for (Value operand : op->getOperands())
        if (2 * typeOf(operand).getNumElements() > typeOf(logits).getNumElements())
          worklist.push_back(operand);
  }
  return nullptr;
}

/// The parameter or constant that a matrix is, under any type and order; nothing if it is none.
static BindingInterface findBinding(Value matrix) {
  while (Operation *op = matrix.getDefiningOp()) {
    if (op->getNumOperands() != 1)
      return {};
    matrix = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(matrix);
  auto step = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return step ? dyn_cast_or_null<BindingInterface>(step.getArgAttr(argument.getArgNumber(), bindingAttrName))
              : BindingInterface();
}

static StringRef findParameter(Value matrix) {
  BindingInterface binding = findBinding(matrix);
  return binding ? binding.getName().getValue() : StringRef();
}

/// Whether a head's matrix is frozen: there is no gradient of it, so that nothing of its size is there but itself.
/// Layers inside a model widen their rows less.
static bool isFrozenHead(Operation *product) {
  constexpr int64_t widening = 4;
  BindingInterface binding = findBinding(product->getOperand(1));
  return binding && binding.getBindingKind() == BindingKind::Constant &&
         typeOf(product->getResult(0)).getDimSize(1) > widening * typeOf(product->getOperand(0)).getDimSize(1);
}

/// Whether another layer reads what the forward pass makes of `product`: it makes activations then, and no logits.
static bool feedsLayer(Operation *product, const ForwardPart &forward) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Operation *> worklist{product};
  while (!worklist.empty()) {
    for (Operation *user : worklist.pop_back_val()->getUsers()) {
      auto facts = dyn_cast<FactsInterface>(user);
      // Views belong to neither part.
      if (!(forward.ops.contains(user) || StepStorage::isView(user)) || !facts || !seen.insert(user).second)
        continue;
      if (llvm::is_contained(
              {OpFamily::Contraction, OpFamily::Convolution, OpFamily::Pooling, OpFamily::Attention, OpFamily::Repeat},
              facts.getFacts().family))
        return true;
      worklist.push_back(user);
    }
  }
  return false;
}

static bool isLarge(Operation *product) {
  return bytesOf(product->getResult(0)) >= smallLogitsBytes &&
         (bytesOf(product->getResult(0)) / 4 >= bytesOf(product->getOperand(1)) || isFrozenHead(product));
}

namespace {

class RowChunks {
public:
  RowChunks(func::FuncOp step, int64_t chunks, bool wide) : step(step), chunks(chunks), wide(wide) {}

  FailureOr<unsigned> run();

private:
  func::FuncOp step;
  int64_t chunks;
  bool wide;
  unsigned numLoops = 0;
  /// Products that were looked at and stay, and why.
  llvm::MapVector<Operation *, RowRegion> wholes;
  /// Loops that this pass made.
  DenseSet<Operation *> made;

  Operation *findNext() {
    Operation *next = nullptr;
    step->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (made.contains(op))
        return WalkResult::skip();
      if (!isProductOfRows(op) || wholes.contains(op) || (chunks <= 0 && !isLarge(op)))
        return WalkResult::advance();
      next = op;
      return WalkResult::interrupt();
    });
    return next;
  }

  LogicalResult visit(Operation *product) {
    RowRegion region = RowRegion::find(product);
    const RankedTensorType x = typeOf(product->getOperand(0));
    const HeadShape head{x.getDimSize(0), x.getDimSize(1), bytesOf(product->getResult(0)),
                         isFrozenHead(product) ? 0 : bytesOf(product->getOperand(1))};
    const int64_t tile = chooseTile(head, wide);
    if (region.reason == WholeReason::None && tile == head.rows)
      region.reason = WholeReason::NoDivisor;
    if (region.reason != WholeReason::None) {
      wholes.insert({product, std::move(region)});
      return success();
    }
    const int64_t count = chooseChunks(head, tile, chunks);
    // Without a budget, time counts.
    const bool isKept = region.isTwice && chunks == 0 && head.logitsBytes <= largeLogitsBytes;
    if (isKept)
      region.keep(product);
    const Location loc = product->getLoc();
    Block &block = *product->getBlock();
    FailureOr<BatchLoopFacts> facts = buildRowLoops(block, loc, region.tracking, count, head.rows / count / tile);
    if (failed(facts))
      return failure();
    // Nothing reads what is made of these rows.
    if (!facts->loops) {
      region.reason = WholeReason::NotReduced;
      wholes.insert({product, std::move(region)});
      return success();
    }
    for (auto loop : block.getOps<train::AccumulateOp>())
      made.insert(loop);
    const bool isTwice = region.isTwice;
    if (isKept)
      wholes.insert({product, std::move(region)});
    ++numLoops;
    const bool isOther = chunks > 0 && count != chunks;
    InFlightDiagnostic remark = isOther ? emitWarning(loc) : emitRemark(loc);
    remark << "loss head: logits of " << formatBytes(head.logitsBytes) << " in " << count
           << (count == 1 ? " piece" : " pieces") << " with what is made of them, sums over tiles of " << tile
           << " rows";
    if (isTwice)
      remark << "; gradients depend on all rows: logits are " << (isKept ? "kept for them" : "computed twice");
    if (isOther)
      remark << " (" << int64_t(chunks)
             << " pieces were asked for; pieces are whole tiles, so that bits do not depend on "
             << "their number)";
    return success();
  }

  void reportWhole(Operation *at, Operation *product, uint64_t bytes, WholeReason reason, Operation *where) {
    if (bytes < smallLogitsBytes || reason == WholeReason::None || reason == WholeReason::NotReduced)
      return;
    InFlightDiagnostic said = bytes > largeLogitsBytes ? emitWarning(at->getLoc()) : emitRemark(at->getLoc());
    said << "loss head: logits of " << formatBytes(bytes);
    if (StringRef name = product ? findParameter(product->getOperand(1)) : ""; !name.empty())
      said << " (a product with '" << name << "')";
    said << " stay whole in @" << step.getSymName() << ": " << describeWhole(reason, where);
    if (std::string advice = adviseWhole(reason, step.getSymName()); !advice.empty())
      said.attachNote() << advice;
  }

  void reportWholes() {
    std::optional<ForwardPart> forward;
    for (auto &[product, region] : wholes) {
      const uint64_t bytes = bytesOf(product->getResult(0));
      // A loss that is no op: of losses that a program writes out itself, those that are large.
      if (!region.hasLoss && bytes > largeLogitsBytes && region.reason != WholeReason::NotReduced) {
        if (!forward)
          forward.emplace(step);
        region.hasLoss = forward->ops.contains(product) && !feedsLayer(product, *forward);
      }
      if (region.hasLoss)
        reportWhole(product, product, bytes, region.reason, region.where);
    }
    step->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (made.contains(op))
        return WalkResult::skip();
      auto loss = dyn_cast<nn::SoftmaxCrossEntropyOp>(op);
      Operation *product = loss ? findProduct(loss.getLogits()) : nullptr;
      if (!loss)
        return WalkResult::advance();
      if (auto known = wholes.find(product); known != wholes.end()) {
        // A loss that rows do not lead to, such as one of a slice.
        if (!known->second.hasLoss)
          reportWhole(product, product, bytesOf(product->getResult(0)), known->second.reason, known->second.where);
        known->second.hasLoss = true;
        return WalkResult::advance();
      }
      const bool isFew =
          product && typeOf(product->getResult(0)).getDimSize(1) <= typeOf(product->getOperand(0)).getDimSize(1);
      const WholeReason reason = !product ? WholeReason::NoProduct
                                 : isFew  ? WholeReason::FewColumns
                                          : WholeReason::SmallGain;
      reportWhole(loss, product, bytesOf(loss.getLogits()), reason, nullptr);
      return WalkResult::advance();
    });
  }
};

} // namespace

FailureOr<unsigned> RowChunks::run() {
  while (Operation *product = findNext())
    if (failed(visit(product)))
      return failure();
  reportWholes();
  return numLoops;
}

FailureOr<unsigned> lowtide::chunkRows(func::FuncOp step, int64_t chunks, bool wide) {
  return RowChunks(step, chunks, wide).run();
}
