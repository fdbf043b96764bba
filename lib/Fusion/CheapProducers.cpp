//===- CheapProducers.cpp - what readers compute themselves -----*- C++ -*-===//
//
// Clones cheap ops in front of their readers, before kernels are formed.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Fusion/CheapProducers.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

static constexpr unsigned kMaxClonedOps = 12;
/// Elements are few next to so many times as many; they are computed by more ops, each for itself.
static constexpr uint64_t kFew = 4;
static constexpr unsigned kMaxPickedOps = 32;

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

/// Whether `op` only puts together what the step stores of floats in two halves.
static bool joinsStored(Operation *op) {
  auto isStored = [](Value value) {
    return isa<BlockArgument>(value) && getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth() == 16;
  };
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() == 2 &&
         llvm::all_of(op->getOperands(), isStored) &&
         isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())) &&
         isa<IntegerType>(getElementTypeOrSelf(op->getOperand(1).getType()));
}

bool lowtide::repeatsRows(Operation *op) {
  auto gather = dyn_cast<nn::GatherOp>(op);
  if (!gather || gather.getAxis() != 0 || !isa<OpResult>(StepStorage::getRoot(gather.getX())))
    return false;
  // What is read at several places is repeated by all that reads it.
  llvm::SmallDenseSet<Value> indices;
  int64_t read = 0;
  for (Operation *user : gather.getX().getUsers())
    if (auto other = dyn_cast<nn::GatherOp>(user);
        other && other.getX() == gather.getX() && other.getAxis() == 0 && indices.insert(other.getIndices()).second)
      read += other.getY().getType().getNumElements();
  return read >= 2 * gather.getX().getType().getNumElements();
}

/// Whether `op` can be a part of what few ops make of constants.
static bool canBeOfConstants(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts && op->getNumResults() == 1 && isa<ElementInterface>(op) && !isa<ReductionInterface>(op) && isPure(op) &&
         !facts.getFacts().isExpensive() && facts.getFacts().family != OpFamily::Random;
}

static bool isMadeOfConstants(Operation *op, unsigned &numOps) {
  if (!op || op->hasTrait<OpTrait::ConstantLike>())
    return op;
  return canBeOfConstants(op) && ++numOps <= kMaxClonedOps && llvm::all_of(op->getOperands(), [&](Value operand) {
           return isMadeOfConstants(operand.getDefiningOp(), numOps);
         });
}

bool lowtide::isMadeOfConstants(Operation *op) {
  unsigned numOps = 0;
  return !op->hasTrait<OpTrait::ConstantLike>() && ::isMadeOfConstants(op, numOps);
}

/// Finds what is cheaper to recompute than to read: repeated elements and rows, widened floats, halves, and
/// whatever few ops make of constants alone.
static DenseSet<Operation *> findCheap(Block &block) {
  DenseSet<Operation *> cheap;
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::ConstantLike>() || op.getNumResults() != 1 || !isa<ElementInterface>(op) || !isPure(&op))
      continue;
    if (isUnitReshape(&op) || repeatsElements(&op) || repeatsRows(&op) || widensFloats(&op) || joinsStored(&op) ||
        isMadeOfConstants(&op))
      cheap.insert(&op);
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

/// A chain that is moved after a reshape has no more ops than this.
static constexpr unsigned kMaxRegroupedOps = 4;

static DenseElementsAttr getSplat(Value value) {
  DenseElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat() ? elements : DenseElementsAttr();
}

/// Whether elementwise ops that nothing else reads make `value` of arguments and of one constant each.
static bool isMadeOfArguments(Value value, unsigned &numOps) {
  if (isa<BlockArgument>(value) || getSplat(value))
    return true;
  Operation *maker = value.getDefiningOp();
  return maker->hasTrait<OpTrait::Elementwise>() && isPure(maker) && maker->getNumResults() == 1 && value.hasOneUse() &&
         ++numOps <= kMaxRegroupedOps &&
         llvm::all_of(maker->getOperands(), [&](Value operand) { return isMadeOfArguments(operand, numOps); });
}

static Value regroup(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(value.getType()).getElementType());
  if (DenseElementsAttr splat = getSplat(value))
    return nn::constant(builder, loc, splat.resizeSplat(type));
  Operation *maker = value.getDefiningOp();
  if (!maker)
    return nn::ReshapeOp::create(builder, loc, type, value);
  SmallVector<Value> operands;
  for (Value operand : maker->getOperands())
    operands.push_back(regroup(builder, loc, operand, shape));
  Operation *moved = builder.clone(*maker);
  moved->setOperands(operands);
  moved->getResult(0).setType(type);
  return moved->getResult(0);
}

void lowtide::regroupMadeOfArguments(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto view = dyn_cast<nn::ReshapeOp>(op);
    if (unsigned numOps = 0; !view || !isMadeOfArguments(view.getX(), numOps) || numOps == 0)
      continue;
    OpBuilder builder(view);
    SmallVector<Operation *> old{view.getX().getDefiningOp()};
    view.getY().replaceAllUsesWith(regroup(builder, view.getLoc(), view.getX(), view.getType().getShape()));
    view.erase();
    while (!old.empty()) {
      Operation *dead = old.pop_back_val();
      if (!dead || !isOpTriviallyDead(dead))
        continue;
      for (Value operand : dead->getOperands())
        old.push_back(operand.getDefiningOp());
      dead->erase();
    }
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

/// Finds the ops, first things first, by which `value` is made of values of `most` bytes at most. Returns false where
/// it is not, or by more than few cheap ops.
static bool findMakers(Value value, uint64_t most, llvm::SmallSetVector<Operation *, 8> &makers) {
  Operation *maker = value.getDefiningOp();
  if (maker && (makers.contains(maker) || maker->hasTrait<OpTrait::ConstantLike>()))
    return true;
  if (getTensorBytes(value.getType()).value_or(most + 1) <= most)
    return true;
  if (!maker || !canBeOfConstants(maker) || StepStorage::isView(maker) ||
      !(maker->hasTrait<OpTrait::Elementwise>() || isa<nn::GatherOp>(maker) ||
        cast<FactsInterface>(maker).getFacts().family == OpFamily::Movement))
    return false;
  if (!llvm::all_of(maker->getOperands(), [&](Value operand) { return findMakers(operand, most, makers); }))
    return false;
  makers.insert(maker);
  return makers.size() <= kMaxPickedOps;
}

SmallVector<std::pair<Operation *, Operation *>>
lowtide::clonePickedProducers(Block &block, function_ref<bool(Operation *)> isGenerated) {
  SmallVector<std::pair<Operation *, Operation *>> clones;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isGenerated(&op) || !isa<nn::GatherOp, nn::GatherElementsOp>(op))
      continue;
    Value from = op.getOperand(0);
    const uint64_t bytes = getTensorBytes(from.getType()).value_or(0);
    llvm::SmallSetVector<Operation *, 8> makers;
    if (kFew * getTensorBytes(op.getResult(0).getType()).value_or(bytes) > bytes ||
        !findMakers(from, bytes / kFew, makers) || makers.empty() ||
        !llvm::all_of(from.getUsers(), [&](Operation *user) { return isGenerated(user); }))
      continue;
    OpBuilder builder(&op);
    IRMapping mapping;
    for (Operation *maker : makers)
      clones.emplace_back(builder.clone(*maker, mapping), &op);
    op.setOperand(0, mapping.lookup(from));
  }
  return clones;
}

static BindingInterface getBinding(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto step = argument ? dyn_cast_or_null<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return step ? step.getArgAttrOfType<BindingInterface>(argument.getArgNumber(), bindingAttrName) : BindingInterface();
}

/// Whether `value` is given to the step in every step, and stays.
static bool isBatch(Value value) {
  BindingInterface binding = getBinding(value);
  return binding && binding.getBindingKind() == BindingKind::Batch;
}

/// Whether `op` picks rows of a parameter by the numbers in its second operand: reading them again costs no more than
/// reading what was picked.
static bool picksRows(Operation *op) {
  auto gather = dyn_cast<nn::GatherOp>(op);
  BindingInterface table = gather ? getBinding(gather.getX()) : BindingInterface();
  return table && table.getBindingKind() == BindingKind::Param && gather.getAxis() == 0;
}

/// Whether `reader` stands in front of all updates of the parameter that `op` picks rows of, if it does.
static bool seesRows(Operation *op, Operation *reader) {
  return !picksRows(op) || llvm::none_of(op->getOperand(0).getUsers(), [&](Operation *user) {
    auto facts = dyn_cast<FactsInterface>(user);
    return facts && facts.getFacts().family == OpFamily::Optimizer && !reader->isBeforeInBlock(user);
  });
}

DenseSet<Operation *> lowtide::findMadeOfBatch(Block &block) {
  DenseSet<Operation *> made;
  // How many ops make the value, views aside; 0: the constants among them.
  DenseMap<Operation *, unsigned> sizes;
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::ConstantLike>()) {
      sizes[&op] = 0;
      continue;
    }
    auto facts = dyn_cast<FactsInterface>(op);
    const bool isView = StepStorage::isView(&op), picks = picksRows(&op);
    if (!facts || op.getNumResults() != 1 || !isPure(&op) || facts.getFacts().family == OpFamily::Random ||
        facts.getFacts().isExpensive() ||
        !(isView || picks || op.hasTrait<OpTrait::Elementwise>() ||
          (facts.getFacts().family == OpFamily::Movement && op.getNumOperands() == 1)))
      continue;
    unsigned size = !isView;
    bool anyBatch = false;
    const bool isKnown = llvm::all_of(llvm::drop_begin(op.getOperands(), picks), [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      if (!producer) {
        anyBatch |= isBatch(operand);
        return isBatch(operand);
      }
      auto found = sizes.find(producer);
      if (found == sizes.end())
        return false;
      size += found->second;
      anyBatch |= made.contains(producer);
      return true;
    });
    if (!isKnown || size > kMaxClonedOps)
      continue;
    // What is made of rows is not: it would be more than a read.
    if (!picks)
      sizes[&op] = size;
    if (anyBatch)
      made.insert(&op);
  }
  return made;
}

void lowtide::recomputeAfterLoss(Block &block, const ForwardPart &forward,
                                 function_ref<bool(Operation *)> isGenerated) {
  DenseSet<Operation *> made = findMadeOfBatch(block);
  // Views of the backward pass may show values of the forward pass: views belong to neither.
  DenseSet<Operation *> clones;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    // What is made of constants alone goes along with what reads it.
    if (!(made.contains(&op) || isMadeOfConstants(&op)) || !(forward.ops.contains(&op) || StepStorage::isView(&op)))
      continue;
    llvm::SmallSetVector<Operation *, 8> readers;
    for (Operation *user : op.getUsers())
      if (user->getBlock() == &block && seesRows(&op, user) &&
          (clones.contains(user) || (isGenerated(user) && !forward.ops.contains(user))))
        readers.insert(user);
    for (Operation *reader : readers) {
      Operation *clone = op.clone();
      clones.insert(clone);
      block.getOperations().insert(reader->getIterator(), clone);
      reader->replaceUsesOfWith(op.getResult(0), clone->getResult(0));
    }
    if (op.use_empty())
      op.erase();
  }
}
