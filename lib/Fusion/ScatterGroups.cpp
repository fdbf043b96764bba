//===- ScatterGroups.cpp - what scatters compute besides adding -*- C++ -*-===//
//
// A scatter's kernel holds what its emitter can compute where it adds: the updates, and on a GPU indices and the sum
// after it.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Fusion/CheapProducers.h"
#include "lowtide/Fusion/FusionGroups.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lowtide;

/// What a GPU's scatter computes besides: the ops that make its indices, and the sum that its result is a term of. It
/// adds up in registers, and that sum's elements are all that it writes.
void FusionGroups::joinScatters() {
  auto isJoinable = [&](Operation *op, unsigned with) {
    if (!op || op->getBlock() != &block || !isGenerated(op) || !op->hasTrait<OpTrait::Elementwise>())
      return false;
    const Node &node = nodes[nodeOf(op)];
    return node.ops.size() == 1 && node.forward == nodes[with].forward;
  };
  for (Operation &op : block) {
    auto scatter = dyn_cast<nn::ScatterAddOp>(op);
    if (!scatter || !isGenerated(scatter))
      continue;
    unsigned node = nodeOf(scatter);
    auto sum = scatter.getY().hasOneUse() ? dyn_cast<nn::AddOp>(*scatter.getY().user_begin()) : nn::AddOp();
    if (sum && isJoinable(sum, node) && scatter.getY().getType().getElementType().isF32() &&
        !hasPathThroughOthers(node, nodeOf(sum))) {
      merge(node, nodeOf(sum));
      node = nodeOf(sum);
    }
    nodes[node].fusable = false;
    SmallVector<Operation *> makers{scatter.getIndices().getDefiningOp()};
    while (!makers.empty()) {
      Operation *maker = makers.pop_back_val();
      if (!maker || !isJoinable(maker, node))
        continue;
      unsigned other = nodeOf(maker);
      if (consumersOf(other) != SmallVector<unsigned>{node} || hasPathThroughOthers(other, node))
        continue;
      merge(other, node);
      for (Value operand : maker->getOperands())
        makers.push_back(operand.getDefiningOp());
    }
  }
}

/// Whether an element of the result costs little and is computed from elements of the operands.
static bool isComputedByElement(Operation *op) {
  return op->getNumResults() == 1 && isPure(op) && isa<ElementInterface>(op) && !isa<ReductionInterface>(op) &&
         (op->hasTrait<OpTrait::Elementwise>() || repeatsElements(op) || repeatsRows(op) || isUnitReshape(op));
}

/// The scatter in `block` that adds `op`'s result, through ops that nothing else reads and that compute by element.
static ScatterInterface findFedScatter(Operation *op, Block &block) {
  while (op->getBlock() == &block && isComputedByElement(op) && op->getResult(0).hasOneUse()) {
    OpOperand &use = *op->getResult(0).use_begin();
    auto scatter = dyn_cast<ScatterInterface>(use.getOwner());
    if (scatter && scatter->getBlock() == &block)
      return scatter.getUpdatesOperand() == use.getOperandNumber() ? scatter : ScatterInterface();
    op = use.getOwner();
  }
  return {};
}

/// Whether the scatter's emitter can compute what it adds. A GPU's warps search indices that name rows.
bool FusionGroups::canTakeUpdates(ScatterInterface scatter) {
  return isGenerated(scatter) && scatter->getNumResults() == 1 && (!isGpu || isa<nn::ScatterAddOp>(*scatter));
}

/// Whether scatters that compute what they add of `value` need no more of it in memory than there is otherwise: no
/// kernel makes it, or one that takes in no reader, or several scatters would each have a tensor of its size instead.
bool FusionGroups::isThereForScatters(Value value) {
  Operation *maker = StepStorage::getRoot(value).getDefiningOp();
  if (!maker || maker->getBlock() != &block || !isGenerated(maker) || !nodes[nodeOf(maker)].fusable)
    return true;
  llvm::SmallDenseSet<Operation *> scatters;
  for (Operation *user : value.getUsers())
    if (ScatterInterface scatter = findFedScatter(user, block); scatter && canTakeUpdates(scatter))
      scatters.insert(scatter);
  return scatters.size() > 1;
}

/// What a scatter adds is computed where it is added, if what it is made of has fewer bytes, or is in memory anyhow:
/// messages along the edges of a graph, of the nodes that send them. Each update is added once, so that nothing is
/// computed twice, but for few rows on a GPU, each of which looks at all updates: what is expensive stays apart there.
void FusionGroups::joinUpdatesOfScatters() {
  auto sizeOf = [](Value value) { return getTensorBytes(value.getType()).value_or(0); };
  for (Operation &op : block) {
    auto scatter = dyn_cast<ScatterInterface>(op);
    if (!scatter || !canTakeUpdates(scatter))
      continue;
    const unsigned node = nodeOf(&op);
    const Value updates = op.getOperand(scatter.getUpdatesOperand());
    // What is read once goes nowhere else before it is added.
    auto isJoinable = [&](Operation *maker) {
      return maker && maker->getBlock() == &block && isGenerated(maker) && isComputedByElement(maker) &&
             maker->getResult(0).hasOneUse() && nodes[nodeOf(maker)].forward == nodes[node].forward &&
             !(isGpu && cast<FactsInterface>(maker).getFacts().isExpensive());
    };
    auto isCheaperToRead = [&](Value read) {
      return sizeOf(read) < sizeOf(updates) || (sizeOf(read) == sizeOf(updates) && isThereForScatters(read));
    };
    SmallVector<Operation *> makers;
    bool isCheaper = true;
    unsigned large = 0;
    for (SmallVector<Value> reads{updates}; !reads.empty() && isCheaper;) {
      const Value value = reads.pop_back_val();
      Operation *maker = value.getDefiningOp();
      if (maker && maker->hasTrait<OpTrait::ConstantLike>())
        continue;
      if (!isJoinable(maker)) {
        isCheaper = isCheaperToRead(value);
        large += sizeOf(value) == sizeOf(updates);
        continue;
      }
      makers.push_back(maker);
      // What is repeated is made once, and read.
      if (repeatsElements(maker) || repeatsRows(maker))
        isCheaper = llvm::all_of(maker->getOperands(), isCheaperToRead);
      else
        llvm::append_range(reads, maker->getOperands());
    }
    // Nor are two tensors read for one.
    if (!isCheaper || large > 1)
      continue;
    for (Operation *maker : makers)
      merge(nodeOf(maker), node);
    nodes[node].fusable = false;
  }
}
