//===- FullReductions.cpp - what a GPU adds up over everything -------*- C++ -*-===//
//
// A GPU shares the segments of a whole sum among its blocks (two kernels), so that such a sum may take in what it adds
// up.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Fusion/FullReductions.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/OrderRules.h"
#include "lowtide/Fusion/CheapProducers.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lowtide;

/// Ops that a sum computes itself, none of them expensive.
static constexpr unsigned kMaxOps = 8, kMaxColumnOps = 16;
/// Of so few elements a sum is no launch of its own.
static constexpr int64_t kFewElements = 1 << 15;
/// More bytes than any element has.
static constexpr uint64_t kNever = 1 << 20;
/// Shorter columns are hardly smaller, added up, than what they are made of.
static constexpr int64_t kLongColumn = 32;

/// One block adds the totals of segments of 256 elements up, 9 ns each on an H100 (before it added up runs of them at
/// once): a sum of more of them stays by rows, where there are rows enough for all processors.
static constexpr int64_t kManyElements = 256 * 1024, kManyRows = 256;

static RankedTensorType getType(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

/// Whether a whole reduction by rows is faster than one over everything. Flags are asked as sums are: a kernel that
/// reads a gradient for both has one form.
static bool isBetterByRows(RankedTensorType type) {
  return type.getRank() > 0 && type.getDimSize(0) >= kManyRows && type.getNumElements() > kManyElements;
}

static bool isWhole(Operation *op) {
  return isa<ReductionInterface>(op) && op->getNumResults() == 1 && getType(op->getResult(0)).getNumElements() == 1;
}

/// all(all(x)) → all(x); sums, whose bits depend on it, only where they are two for a CPU's sake.
static void mergeWhole(Operation *outer) {
  Operation *inner = outer->getOperand(0).getDefiningOp();
  if (!inner || inner->getName() != outer->getName() || inner->getBlock() != outer->getBlock() ||
      !inner->getResult(0).hasOneUse() ||
      (isa<FloatType>(getType(inner->getOperand(0)).getElementType()) && !inner->hasAttr(nn::byRowsAttrName)) ||
      isBetterByRows(getType(inner->getOperand(0))) || !outer->hasAttr("dims") ||
      getType(outer->getResult(0)).getRank() != 0)
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
      facts.getFacts().isExpensive())
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

/// Whether `op` reduces leading dimensions, of many elements.
static bool isColumns(Operation *op) {
  auto reduction = dyn_cast<ReductionInterface>(op);
  if (!reduction || op->getNumResults() != 1)
    return false;
  ArrayRef<int64_t> dims = reduction.getReducedDims();
  SmallVector<int64_t> extents = dropUnits(op->getOperand(0));
  const int64_t kept = getType(op->getResult(0)).getNumElements();
  return !extents.empty() && kept > 1 && dims.size() > 0 && dims.back() != getType(op->getOperand(0)).getRank() - 1 &&
         getType(op->getOperand(0)).getNumElements() / kept > kLongColumn;
}

/// Whether `op` makes elements in f32 of what is at hand in fewer bytes, or would be read besides.
static bool isCheapWide(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts && op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 && isPure(op) &&
         !facts.getFacts().isExpensive() &&
         !(isa<FloatType>(getType(op->getResult(0)).getElementType()) &&
           getType(op->getResult(0)).getElementTypeBitWidth() <= 16);
}

/// Adds up, per element, the bytes of what lies in memory for `value`, seen through cheap wide ops. Values of other
/// sizes, such as those of columns, do not count; where one is repeated along columns, too, there is no end. Stops at
/// more than `most`: a residual stream is a sum through all of a model.
static void countSources(Value value, llvm::SmallDenseSet<Value> &seen, uint64_t &bytes, uint64_t most,
                         function_ref<bool(Operation *)> isGenerated) {
  if (bytes > most)
    return;
  Operation *maker = value.getDefiningOp();
  if (!seen.insert(value).second || (maker && maker->hasTrait<OpTrait::ConstantLike>()))
    return;
  if (maker && repeatsElements(maker)) {
    // Of what each row has one, others make the rows.
    auto dims = maker->getAttrOfType<DenseI64ArrayAttr>("dims");
    if (dims && llvm::is_contained(dims.asArrayRef(), 0))
      bytes += kNever;
    return;
  }
  if (maker && isGenerated(maker) && isCheapWide(maker)) {
    for (Value operand : maker->getOperands())
      countSources(operand, seen, bytes, most, isGenerated);
    return;
  }
  bytes += llvm::divideCeil(getType(value).getElementTypeBitWidth(), 8);
}

/// Gives a sum over columns its own copies of the cheap ops, of f32 or flags, that make what it adds up: their results
/// would be written for the sum, and are wider than what they are made of.
static void makeOwnColumns(Operation *reader, unsigned &numOps, function_ref<bool(Operation *)> isGenerated) {
  for (OpOperand &operand : reader->getOpOperands()) {
    Operation *maker = operand.get().getDefiningOp();
    if (!maker || maker->getBlock() != reader->getBlock() || numOps >= kMaxColumnOps || !isGenerated(maker) ||
        !isCheapWide(maker))
      continue;
    if (llvm::any_of(maker->getUsers(), [&](Operation *user) { return user != reader; })) {
      llvm::SmallDenseSet<Value> seen;
      uint64_t sources = 0;
      const uint64_t most = llvm::divideCeil(std::max(16u, getType(operand.get()).getElementTypeBitWidth()), 8);
      countSources(operand.get(), seen, sources, most, isGenerated);
      if (sources > most)
        continue;
      Operation *own = maker->clone();
      reader->getBlock()->getOperations().insert(reader->getIterator(), own);
      reader->replaceUsesOfWith(maker->getResult(0), own->getResult(0));
      maker = own;
    }
    makeOwnColumns(maker, ++numOps, isGenerated);
  }
}

void lowtide::prepareSums(Block &block, function_ref<bool(Operation *)> isGenerated) {
  for (Operation &op : block) {
    if (!isa<ReductionInterface>(op) || !isGenerated(&op))
      continue;
    unsigned numOps = 0;
    if (isWhole(&op) && getType(op.getOperand(0)).getNumElements() > kFewElements)
      makeOwn(&op, numOps, isGenerated);
    else if (isColumns(&op))
      makeOwnColumns(&op, numOps, isGenerated);
  }
}
