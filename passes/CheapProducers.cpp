//===- CheapProducers.cpp - what readers compute themselves -----*- C++ -*-===//
//
// Clones cheap ops in front of their readers, before kernels are formed.
//
//===----------------------------------------------------------------------===//

#include "CheapProducers.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

static constexpr unsigned kDearFlops = 8, kMaxClonedOps = 12;

SmallVector<int64_t> lowtide::dropUnits(Value tensor) {
  SmallVector<int64_t> extents;
  if (auto type = dyn_cast<RankedTensorType>(tensor.getType()))
    for (int64_t extent : type.getShape())
      if (extent != 1)
        extents.push_back(extent);
  return extents;
}

bool lowtide::repeatsElements(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts && facts.getFacts().family == OpFamily::Movement && op->getNumOperands() == 1 &&
         cast<RankedTensorType>(op->getResult(0).getType()).getNumElements() >
             cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements();
}

bool lowtide::isUnitReshape(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts && facts.getFacts().aliasing == Aliasing::View &&
         dropUnits(op->getOperand(0)) == dropUnits(op->getResult(0));
}

/// Whether `op` only widens 16-bit floats: its operand is smaller to read and to keep than its result.
static bool widensFloats(Operation *op) {
  auto widthOf = [](Value value) {
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
    return element ? element.getWidth() : 0;
  };
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() == 1 && widthOf(op->getOperand(0)) == 16 &&
         widthOf(op->getResult(0)) > 16;
}

/// Finds what is cheaper to compute again than to read: repeated elements, widened floats, and whatever few ops make of
/// constants alone.
static DenseSet<Operation *> findCheap(Block &block) {
  DenseSet<Operation *> cheap;
  // Ops that a value made of constants stands for.
  DenseMap<Operation *, unsigned> sizes;
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::ConstantLike>() || op.getNumResults() != 1 || !isa<ElementInterface>(op) || !isPure(&op))
      continue;
    if (isUnitReshape(&op) || repeatsElements(&op) || widensFloats(&op))
      cheap.insert(&op);
    auto facts = dyn_cast<FactsInterface>(op);
    if (!facts || facts.getFacts().flopsPerElement >= kDearFlops || isa<ReductionInterface>(op) ||
        facts.getFacts().family == OpFamily::Random)
      continue;
    unsigned size = 1;
    bool isMadeOfConstants = llvm::all_of(op.getOperands(), [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      if (!producer)
        return false;
      size += sizes.lookup(producer);
      return producer->hasTrait<OpTrait::ConstantLike>() || sizes.count(producer);
    });
    if (isMadeOfConstants && size <= kMaxClonedOps) {
      sizes[&op] = size;
      cheap.insert(&op);
    }
  }
  return cheap;
}

void lowtide::sinkWidenings(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto view = dyn_cast<nn::ReshapeOp>(op);
    Operation *widening = view ? view.getX().getDefiningOp() : nullptr;
    if (!widening || widening->getBlock() != &block || !widensFloats(widening))
      continue;
    OpBuilder builder(view);
    auto narrow = cast<RankedTensorType>(widening->getOperand(0).getType());
    Value regrouped = nn::ReshapeOp::create(builder, view.getLoc(), view.getType().clone(narrow.getElementType()),
                                            widening->getOperand(0));
    Operation *widened = builder.clone(*widening);
    widened->setOperand(0, regrouped);
    widened->getResult(0).setType(view.getType());
    view.getY().replaceAllUsesWith(widened->getResult(0));
    view.erase();
    if (widening->use_empty())
      widening->erase();
  }
}

void lowtide::cloneCheapProducers(Block &block, function_ref<bool(Operation *)> isGenerated) {
  DenseSet<Operation *> cheap = findCheap(block);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!cheap.count(&op))
      continue;
    llvm::SmallSetVector<Operation *, 8> readers;
    for (Operation *user : op.getUsers())
      if (user->getBlock() == &block && (isGenerated(user) || cheap.count(user)))
        readers.insert(user);
    for (Operation *reader : readers) {
      Operation *clone = op.clone();
      cheap.insert(clone);
      reader->getBlock()->getOperations().insert(reader->getIterator(), clone);
      for (OpOperand &operand : reader->getOpOperands())
        if (operand.get() == op.getResult(0))
          operand.set(clone->getResult(0));
    }
    if (op.use_empty()) {
      cheap.erase(&op);
      op.erase();
    }
  }
}
