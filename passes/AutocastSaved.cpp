//===- AutocastSaved.cpp - what the backward pass reads of the forward ----===//
//
// Counts it, and makes it less: what few elementwise ops make of 16-bit values, of data and of statistics is recomputed
// where it is read. A loss of squared differences keeps the rounded prediction, not the difference in f32.
//
//===----------------------------------------------------------------------===//

#include "Autocast.h"
#include "lowtide/Fusion/CheapProducers.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

/// As for what kernels make again of the batch, and for saved values that are put into their readers.
static constexpr size_t kMaxRemadeOps = 12;
static constexpr uint64_t kMaxRemadeFlops = 40;

static const OpFacts *getFacts(Operation *op) {
  auto facts = dyn_cast_or_null<FactsInterface>(op);
  return facts ? &facts.getFacts() : nullptr;
}

static int64_t countElements(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

static int64_t getElementBytes(Value value) {
  return (cast<RankedTensorType>(value.getType()).getElementTypeBitWidth() + 7) / 8;
}

static int64_t countBytes(Value value) { return countElements(value) * getElementBytes(value); }

static bool isView(Operation *op) {
  const OpFacts *facts = getFacts(op);
  return facts && facts->aliasing == Aliasing::View;
}

static bool repeats(Operation *op) {
  const OpFacts *facts = getFacts(op);
  return facts && facts->family == OpFamily::Movement && op->getNumOperands() == 1 &&
         countElements(op->getOperand(0)) < countElements(op->getResult(0));
}

/// Bits that a cast between floating-point types adds; negative: it rounds; 0 for other ops.
static int getAddedBits(Operation *op) {
  if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumOperands() != 1)
    return 0;
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(op->getOperand(0)));
  auto to = dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0)));
  return from && to ? int(to.getWidth()) - int(from.getWidth()) : 0;
}

/// What is kept where an op reads `value`: views, movements that repeat and casts that widen are read through.
Value Autocast::getKept(Value value) const {
  while (Operation *producer = value.getDefiningOp()) {
    if (!isForward(producer) || !(isView(producer) || getAddedBits(producer) > 0 || repeats(producer)))
      break;
    value = producer->getOperand(0);
  }
  return value;
}

bool Autocast::isActivation(Value kept) const {
  Operation *producer = kept.getDefiningOp();
  return producer && isForward(producer) && fromData.contains(kept);
}

Autocast::Saved Autocast::findSaved() const {
  const llvm::DenseSet<Operation *> madeOfBatch = findMadeOfBatch(block);
  Saved saved;
  for (Operation &op : block.without_terminator()) {
    if (isForward(&op))
      continue;
    for (OpOperand &operand : op.getOpOperands()) {
      Value kept = getKept(operand.get());
      if (!isActivation(kept))
        continue;
      // A library reads memory; kernels make again what is cheaply made of the batch.
      if (isa<LibraryCallInterface>(op))
        saved.inMemory.insert(kept);
      else if (madeOfBatch.contains(kept.getDefiningOp()))
        continue;
      saved.readers[kept].push_back(&operand);
    }
  }
  return saved;
}

uint64_t Autocast::countSavedBytes() const {
  uint64_t bytes = 0;
  for (const auto &[value, _] : findSaved().readers) {
    // Where a value is repeated and then rounded, canonical form rounds it first and keeps that.
    Operation *producer = value.getDefiningOp();
    const Value source = getAddedBits(producer) < 0 ? getKept(producer->getOperand(0)) : value;
    bytes += countElements(source) * getElementBytes(value);
  }
  return bytes;
}

namespace {
/// How a value is made: what ops, of what.
struct Recipe {
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Value> leaves;
  uint64_t flops = 0;
};
} // namespace

namespace lowtide {
/// Finds and applies recipes for what a function keeps.
class SavedRemaker {
public:
  explicit SavedRemaker(Autocast &cast) : cast(cast), saved(cast.findSaved()) {}

  unsigned run() {
    // From the end, so that what a recipe keeps instead is looked at later; again, as long as less is kept in f32.
    unsigned count = 0;
    for (unsigned before = ~0u; before != count;) {
      before = count;
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(cast.block.without_terminator())))
        if (op.getNumResults() == 1 && saved.readers.contains(op.getResult(0)))
          count += visit(op.getResult(0));
    }
    return count;
  }

private:
  bool collect(Value value, Value wanted, Recipe &recipe) {
    Operation *producer = value.getDefiningOp();
    if (!producer || producer->hasTrait<OpTrait::ConstantLike>())
      return true;
    Value kept = cast.getKept(value);
    if (value != wanted && (cast.isNarrow(value) || cast.statistics.contains(value) || saved.readers.contains(kept)) &&
        cast.isForward(producer)) {
      // A mask need not be kept either.
      Recipe deeper = recipe;
      if (!isa<FloatType>(getElementTypeOrSelf(value)) && collectOps(value, wanted, deeper))
        recipe = std::move(deeper);
      else
        recipe.leaves.insert(value);
      return true;
    }
    return collectOps(value, wanted, recipe);
  }

  bool collectOps(Value value, Value wanted, Recipe &recipe) {
    Operation *producer = value.getDefiningOp();
    const OpFacts *facts = getFacts(producer);
    if (!facts || !cast.isForward(producer) || producer->getNumResults() != 1 ||
        !(producer->hasTrait<OpTrait::Elementwise>() || isView(producer) || repeats(producer) ||
          facts->family == OpFamily::Constant))
      return false;
    if (recipe.ops.contains(producer))
      return true;
    recipe.flops += facts->flopsPerElement;
    if (recipe.flops > kMaxRemadeFlops || recipe.ops.size() >= kMaxRemadeOps)
      return false;
    for (Value operand : producer->getOperands())
      if (!collect(operand, wanted, recipe))
        return false;
    return recipe.ops.insert(producer);
  }

  bool visit(Value value) {
    if (cast.isNarrow(value) || cast.statistics.contains(value) || saved.inMemory.contains(value) ||
        pinned.contains(value))
      return false;
    Recipe recipe;
    if (!collect(value, value, recipe))
      return false;
    // Bytes of 16-bit values and of statistics that are kept instead.
    int64_t added = 0, addedNarrow = 0;
    bool anyWide = false;
    llvm::SmallSetVector<Value, 4> fresh;
    for (Value leaf : recipe.leaves) {
      Value kept = cast.getKept(leaf);
      anyWide |= cast.isWide(kept) && cast.isActivation(kept) && !cast.statistics.contains(kept);
      if (!saved.readers.contains(kept) && cast.isActivation(kept) && fresh.insert(kept))
        (cast.statistics.contains(kept) ? added : addedNarrow) += countBytes(kept);
    }
    // A sum of a residual stream and its next term would be read in two parts in place of one.
    if (added + addedNarrow >= countBytes(value) || (anyWide && addedNarrow))
      return false;
    for (Value leaf : recipe.leaves)
      pinned.insert(cast.getKept(leaf));
    for (OpOperand *reader : saved.readers.lookup(value)) {
      IRMapping clones;
      OpBuilder builder(reader->getOwner());
      reader->set(remake(reader->get(), recipe, clones, builder));
    }
    saved.readers.erase(value);
    for (Value kept : fresh)
      saved.readers[kept];
    return true;
  }

  /// The recipe's ops, and those between what it makes and the operand, in front of the reader.
  static Value remake(Value value, const Recipe &recipe, IRMapping &clones, OpBuilder &builder) {
    Operation *producer = value.getDefiningOp();
    if (!producer || recipe.leaves.contains(value) || producer->hasTrait<OpTrait::ConstantLike>())
      return value;
    if (Value known = clones.lookupOrNull(value))
      return known;
    for (Value operand : producer->getOperands())
      clones.map(operand, remake(operand, recipe, clones, builder));
    Operation *clone = builder.clone(*producer, clones);
    Autocast::markAgain(clone);
    return clone->getResult(0);
  }

  Autocast &cast;
  Autocast::Saved saved;
  /// What recipes read: it is kept.
  llvm::DenseSet<Value> pinned;
};
} // namespace lowtide

void Autocast::remakeSaved() { numRemade = SavedRemaker(*this).run(); }
