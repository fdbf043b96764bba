//===- ScatterChains.cpp - sums of scatters, one after the other -*- C++ -*-===//
//
// Gradients of what is read at several places are sums of scatters: the corners between which a picture is sampled, the
// neighbours of an interpolation, tables that are looked up twice. Each as a tensor of its own, they would all wait for
// the sum.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Fusion/ScatterChains.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Scatter.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {
/// The terms of a sum that nothing else reads.
struct Sum {
  SmallVector<Value> scatters, others;

  explicit Sum(nn::AddOp root) : block(root->getBlock()) {
    visit(root.getA());
    visit(root.getB_());
    llvm::sort(scatters, [](Value a, Value b) { return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp()); });
  }

private:
  void visit(Value term);
  Block *block;
};
} // namespace

/// Whether `op` adds to zeros what it could add to anything of its shape.
static bool isChainable(Operation *op) {
  auto elements = dyn_cast<nn::ScatterElementsAddOp>(op);
  if (!elements)
    return isa<nn::ScatterAddOp>(op);
  ArrayRef<int64_t> updates = elements.getUpdates().getType().getShape(), y = elements.getY().getType().getShape();
  return llvm::all_of(llvm::seq<size_t>(0, y.size()),
                      [&](size_t d) { return d == elements.getAxis() || updates[d] == y[d]; });
}

void Sum::visit(Value term) {
  Operation *maker = term.hasOneUse() ? term.getDefiningOp() : nullptr;
  if (maker && maker->getBlock() != block)
    maker = nullptr;
  if (auto sum = dyn_cast_or_null<nn::AddOp>(maker)) {
    visit(sum.getA());
    visit(sum.getB_());
  } else {
    (maker && isChainable(maker) ? scatters : others).push_back(term);
  }
}

/// What `scatter` adds, added to `start`.
static Expr addTo(Expr start, Value scatter) {
  if (auto rows = scatter.getDefiningOp<nn::ScatterAddOp>())
    return nn::scatter(nn::ScatterKind::add, start, start.with(rows.getIndices()), start.with(rows.getUpdates()),
                       rows.getAxis());
  auto elements = scatter.getDefiningOp<nn::ScatterElementsAddOp>();
  return nn::scatterElements(nn::ScatterKind::add, start, start.with(elements.getIndices()),
                             start.with(elements.getUpdates()), elements.getAxis());
}

/// Whether `value` is in memory however it is read, and may be overwritten once it was: what a loop carries, and what
/// scatters and library calls make.
static bool isInMemory(Value value, Block *block, function_ref<bool(Operation *)> isLibraryCall) {
  if (!value.hasOneUse())
    return false;
  Operation *maker = value.getDefiningOp();
  if (!maker)
    return isa<RepeatInterface>(block->getParentOp());
  return maker->getBlock() == block && (isa<ScatterInterface>(maker) || isLibraryCall(maker));
}

/// Removes `op` and what it alone adds up, where nothing reads it any more.
static void eraseSum(Operation *op) {
  if (!op->use_empty() || !(isa<nn::AddOp>(op) || isChainable(op)))
    return;
  llvm::SmallSetVector<Operation *, 2> terms;
  for (Value operand : op->getOperands())
    if (Operation *maker = operand.getDefiningOp())
      terms.insert(maker);
  op->erase();
  llvm::for_each(terms, eraseSum);
}

void lowtide::chainScatters(Operation *root, function_ref<bool(Operation *)> isLibraryCall) {
  SmallVector<nn::AddOp> sums;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    // What is in a kernel is decided.
    if (auto facts = dyn_cast<FactsInterface>(op); facts && facts.getFacts().family == OpFamily::Fusion)
      return WalkResult::skip();
    auto add = dyn_cast<nn::AddOp>(op);
    if (add && !(add.getY().hasOneUse() && isa<nn::AddOp>(*add.getY().user_begin())))
      sums.push_back(add);
    return WalkResult::advance();
  });
  for (nn::AddOp add : sums) {
    Sum sum(add);
    const bool startsFromOther =
        sum.others.size() == 1 && isInMemory(sum.others.front(), add->getBlock(), isLibraryCall);
    if (sum.scatters.size() + startsFromOther < 2)
      continue;
    OpBuilder builder(add);
    Expr total(builder, add.getLoc(), startsFromOther ? sum.others.front() : sum.scatters.front());
    for (Value scatter : ArrayRef(sum.scatters).drop_front(!startsFromOther))
      total = addTo(total, scatter);
    if (!startsFromOther)
      for (Value other : sum.others)
        total = total + total.with(other);
    add.getY().replaceAllUsesWith(total);
    eraseSum(add);
  }
}
