//===- WholeSums.cpp - what a GPU adds up over everything -------*- C++ -*-===//
//
// A GPU shares the segments of a whole sum among its blocks (two kernels), so that such a sum may take in what it adds
// up.
//
//===----------------------------------------------------------------------===//

#include "WholeSums.h"
#include "CheapProducers.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lowtide;

/// Ops that a sum makes itself; one of them is no dear function.
static constexpr unsigned kMaxOps = 8, kDearFlops = 8;
/// Of so few elements a sum is no launch of its own.
static constexpr int64_t kFewElements = 1 << 15;

static RankedTensorType getType(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

static bool isWhole(Operation *op) {
  return isa<ReductionInterface>(op) && op->getNumResults() == 1 && getType(op->getResult(0)).getNumElements() == 1;
}

/// all(all(x)) → all(x).
static void mergeWhole(Operation *outer) {
  Operation *inner = outer->getOperand(0).getDefiningOp();
  if (!inner || inner->getName() != outer->getName() || inner->getBlock() != outer->getBlock() ||
      !inner->getResult(0).hasOneUse() || isa<FloatType>(getType(inner->getOperand(0)).getElementType()) ||
      !outer->hasAttr("dims") || getType(outer->getResult(0)).getRank() != 0)
    return; // in a walk from the first op to the last, the inner one has been met
  outer->setAttr("dims", DenseI64ArrayAttr::get(outer->getContext(), llvm::to_vector(llvm::seq<int64_t>(
                                                                         0, getType(inner->getOperand(0)).getRank()))));
  outer->setOperand(0, inner->getOperand(0));
  inner->erase();
}

/// Whether `op` makes each element of one of one operand of the same width, and of what is repeated or constant.
static bool makesOfOne(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  if (!facts || !op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1 || !isPure(op) ||
      facts.getFacts().flopsPerElement >= kDearFlops)
    return false;
  Value one;
  for (Value operand : op->getOperands()) {
    Operation *maker = operand.getDefiningOp();
    if (maker && (maker->hasTrait<OpTrait::ConstantLike>() || repeatsElements(maker)))
      continue;
    if ((one && one != operand) ||
        getType(operand).getElementTypeBitWidth() != getType(op->getResult(0)).getElementTypeBitWidth())
      return false;
    one = operand;
  }
  return one != nullptr;
}

/// Gives `reader` values of its own of what it reads and others read too.
static void makeOwn(Operation *reader, unsigned &numOps, function_ref<bool(Operation *)> isGenerated) {
  for (OpOperand &operand : reader->getOpOperands()) {
    Operation *maker = operand.get().getDefiningOp();
    if (!maker || maker->getBlock() != reader->getBlock() || numOps >= kMaxOps || !isGenerated(maker))
      continue;
    const bool isShared = llvm::any_of(maker->getUsers(), [&](Operation *user) { return user != reader; });
    if (makesOfOne(maker)) {
      ++numOps;
      if (isShared) {
        Operation *own = maker->clone();
        reader->getBlock()->getOperations().insert(reader->getIterator(), own);
        reader->replaceUsesOfWith(maker->getResult(0), own->getResult(0));
        maker = own;
      }
      makeOwn(maker, numOps, isGenerated);
    } else if (maker->hasTrait<OpTrait::Elementwise>() && !isShared) {
      makeOwn(maker, ++numOps, isGenerated);
    }
  }
}

void lowtide::mergeWholeReductions(Operation *root) {
  root->walk([](ReductionInterface op) {
    if (isWhole(op))
      mergeWhole(op);
  });
}

void lowtide::prepareWholeSums(Block &block, function_ref<bool(Operation *)> isGenerated) {
  for (Operation &op : block)
    if (unsigned numOps = 0;
        isWhole(&op) && isGenerated(&op) && getType(op.getOperand(0)).getNumElements() > kFewElements)
      makeOwn(&op, numOps, isGenerated);
}
