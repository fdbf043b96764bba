//===- TrainInlineSaved.cpp - readers compute cheap saved values again ----===//
//
// A kernel of the backward pass often reads a tensor that few elementwise ops make of others that are kept anyway: the
// input of an activation from the normalized value, say. Computed in the reader, it need not be kept from the forward
// pass on, and the reader reads no more bytes than before.
//
// 1. From the first kernel to the last, for each result: the readers in textual order.
// 2. Find the longest tail of readers that can compute the value: elementwise ops of the producing kernel, down to
//    values that something reads at or after the reader (or that are never freed). What the producing kernel reads may
//    also be kept instead, where it is smaller: 16-bit scores instead of those scaled and masked in f32.
// 3. If the value then dies well before the first of them, put the ops into each. If nothing reads it any more, nothing
//    writes it, and what takes no more bytes may be kept in its place: a gradient in place of the unscaled one.
// 4. So may what the producing kernel writes for others, and its sums of rows: a residual stream and its mean in
//    place of the normalized value.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_TRAININLINESAVED
#include "Passes.h.inc"
} // namespace lowtide

namespace {

/// As for fusion: what a kernel's argument list may hold.
constexpr unsigned kMaxPointers = 28;
/// More arithmetic per element than this is not free beside the read that it replaces.
constexpr uint64_t kMaxFlopsPerElement = 40;
/// The same for every reader of a value that is written no longer; scalars that are kept for it count for nothing.
constexpr uint64_t kMaxFlopsInsteadOfWrite = 8, kFewBytes = 64;
/// What may be kept besides, in place of a value that is written no longer: one part of so many.
constexpr uint64_t kSmallPart = 64;

bool isView(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts && facts.getFacts().aliasing == Aliasing::View;
}

/// Calls `visit` with the values of which `lastRead` counts reads of `value`.
void forEachRoot(Value value, function_ref<void(Value)> visit) {
  Operation *op = value.getDefiningOp();
  if (!op || !isView(op))
    return visit(value);
  for (Value operand : op->getOperands())
    forEachRoot(operand, visit);
}

uint64_t bytesOf(Value value) { return getTensorBytes(value.getType()).value_or(0); }

/// How one reader computes a value: ops of the producing kernel in textual order, and what they read.
struct Recipe {
  llvm::SetVector<Operation *> ops;
  /// Values of the producing kernel's body that are known outside of it, and where: nowhere yet, if it is to hand out
  /// one more.
  llvm::MapVector<Value, Value> leaves;
  uint64_t flopsPerElement = 0;
  /// Bytes of leaves that nothing else keeps.
  uint64_t keptBytes = 0;
};

class SavedValues {
public:
  SavedValues(func::FuncOp step, Block &block, unsigned minGap) : step(step), block(block), minGap(minGap) {
    unsigned next = 0;
    for (Operation &op : block)
      positions[&op] = next++;
  }

  /// Numbers of values that are kept no longer, and of readers that compute them.
  std::pair<unsigned, unsigned> run();

private:
  /// Of the op, or of the loop in this block that it is in.
  unsigned positionOf(Operation *op) { return positions.lookup(block.findAncestorOpInBlock(*op)); }
  unsigned lastRead(Value value);
  unsigned lastReadOfRoot(Value root);
  void moveRead(Value from, ValueRange to, unsigned position);
  bool isKeptAnyway(Value value, nn::KernelOp reader);
  bool collect(nn::KernelOp producer, Value inside, Value wanted, nn::KernelOp reader, bool keepsOthers,
               Recipe &recipe);
  std::optional<Recipe> findRecipe(OpResult value, nn::KernelOp reader, bool keepsOthers);
  void handOut(nn::KernelOp &producer, MutableArrayRef<std::pair<nn::KernelOp, Recipe>> readers);
  void inlineInto(nn::KernelOp reader, OpResult value, const Recipe &recipe);
  bool dropDeadResults(nn::KernelOp kernel);
  nn::KernelOp replace(nn::KernelOp kernel, ValueRange operands, TypeRange results);
  void erase(nn::KernelOp kernel);
  bool visit(nn::KernelOp &producer, unsigned number, bool keepsOthers);

  func::FuncOp step;
  Block &block;
  unsigned minGap;
  unsigned numValues = 0, numReaders = 0;
  DenseMap<Operation *, unsigned> positions;
  /// What `lastRead` says of values that are no views: all updates may read one number, and each asks.
  DenseMap<Value, unsigned> lastReads;
};

/// Position of the last op that reads the value or a view of it.
unsigned SavedValues::lastRead(Value value) {
  unsigned last = 0;
  for (Operation *user : value.getUsers())
    last = std::max(last, isView(user) ? lastRead(user->getResult(0)) : positionOf(user));
  return last;
}

unsigned SavedValues::lastReadOfRoot(Value root) {
  auto [known, isNew] = lastReads.try_emplace(root, 0);
  if (isNew)
    known->second = lastRead(root);
  return known->second;
}

/// The op at `position` reads `to` from now on, and `from` no longer.
void SavedValues::moveRead(Value from, ValueRange to, unsigned position) {
  // Which op comes last once this one reads no longer is found out when it is asked for.
  forEachRoot(from, [&](Value root) {
    if (auto known = lastReads.find(root); known != lastReads.end() && known->second == position)
      lastReads.erase(known);
  });
  for (Value value : to)
    forEachRoot(value, [&](Value root) {
      if (auto known = lastReads.find(root); known != lastReads.end())
        known->second = std::max(known->second, position);
    });
}

bool SavedValues::isKeptAnyway(Value value, nn::KernelOp reader) {
  value = StepStorage::getRoot(value);
  if (value.getParentBlock() != &block)
    return true; // every round reads what is outside its loop
  // An input of the step may have many readers: what is there all the time needs no look at them.
  if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == &step.getBody().front()) {
    auto binding = step.getArgAttrOfType<BindingInterface>(argument.getArgNumber(), bindingAttrName);
    if (binding && !isUpdated(binding.getBindingKind()))
      return true;
  }
  return lastReadOfRoot(value) >= positionOf(reader);
}

bool SavedValues::collect(nn::KernelOp producer, Value inside, Value wanted, nn::KernelOp reader, bool keepsOthers,
                          Recipe &recipe) {
  if (recipe.leaves.contains(inside))
    return true;
  auto takeLeaf = [&](Value outside) {
    if (!isKeptAnyway(outside, reader))
      return false;
    recipe.leaves.insert({inside, outside});
    return true;
  };
  if (auto argument = dyn_cast<BlockArgument>(inside)) {
    Value outside = producer.getOperand(argument.getArgNumber());
    if (takeLeaf(outside))
      return true;
    // The step's own arguments are overwritten as early as may be.
    if (isa<BlockArgument>(StepStorage::getRoot(outside)))
      return false;
    recipe.keptBytes += bytesOf(StepStorage::getRoot(outside));
    recipe.leaves.insert({inside, outside});
    return recipe.keptBytes <= bytesOf(wanted) + kFewBytes;
  }
  if (inside != wanted)
    for (auto [yielded, outside] : llvm::zip_equal(producer.getYield().getOperands(), producer.getResults())) {
      if (yielded != inside)
        continue;
      if (takeLeaf(outside))
        return true;
      if (keepsOthers) {
        recipe.leaves.insert({inside, outside});
        recipe.keptBytes += bytesOf(outside);
        return recipe.keptBytes <= bytesOf(wanted) + bytesOf(wanted) / kSmallPart;
      }
    }
  Operation *op = inside.getDefiningOp();
  if (recipe.ops.contains(op))
    return true;
  if (keepsOthers && isa<ReductionInterface>(op) && op->getNumResults() == 1 &&
      bytesOf(inside) <= bytesOf(wanted) / kSmallPart) {
    recipe.leaves.insert({inside, Value()});
    recipe.keptBytes += bytesOf(inside);
    return true;
  }
  auto facts = dyn_cast<FactsInterface>(op);
  if (!facts || op->getNumResults() != 1 || !isPure(op))
    return false;
  // A broadcast repeats what is small; other movements would read across.
  bool repeats = facts.getFacts().family == OpFamily::Movement && op->getNumOperands() == 1 &&
                 cast<RankedTensorType>(inside.getType()).getNumElements() >
                     cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements();
  if (!op->hasTrait<OpTrait::ConstantLike>() && !op->hasTrait<OpTrait::Elementwise>() && !repeats)
    return false;
  recipe.flopsPerElement += facts.getFacts().flopsPerElement;
  if (recipe.flopsPerElement > kMaxFlopsPerElement)
    return false;
  for (Value operand : op->getOperands())
    if (!collect(producer, operand, wanted, reader, keepsOthers, recipe))
      return false;
  recipe.ops.insert(op);
  return true;
}

/// How `reader` may compute `value`, if that costs it nothing.
std::optional<Recipe> SavedValues::findRecipe(OpResult value, nn::KernelOp reader, bool keepsOthers) {
  auto producer = cast<nn::KernelOp>(value.getOwner());
  if (!llvm::is_contained({nn::Emitter::loop, nn::Emitter::row, nn::Emitter::column}, reader.getEmitter()))
    return std::nullopt;
  // The reader must take each element once, at the position where it is made.
  for (auto [argument, operand] : llvm::zip_equal(reader.getBlock()->getArguments(), reader.getOperands()))
    if (operand == value)
      for (Operation *user : argument.getUsers())
        if (!user->hasTrait<OpTrait::Elementwise>() && !isa<ReductionInterface>(user))
          return std::nullopt;
  Value inside = producer.getYield().getOperand(value.getResultNumber());
  Recipe recipe;
  if (isa<BlockArgument>(inside) || !collect(producer, inside, inside, reader, keepsOthers, recipe))
    return std::nullopt;
  uint64_t moreBytes = 0, pointers = reader.getNumOperands() - 1 + reader.getNumResults();
  uint64_t handedOut = producer.getNumOperands() + producer.getNumResults();
  for (auto [inner, outside] : recipe.leaves)
    if (!outside || !llvm::is_contained(reader.getOperands(), outside)) {
      moreBytes += bytesOf(inner);
      ++pointers;
      handedOut += !outside;
    }
  pointers = std::max(pointers, handedOut);
  // A quarter more for the vectors that are repeated along the value.
  if (pointers > kMaxPointers || moreBytes > bytesOf(value) + bytesOf(value) / 4)
    return std::nullopt;
  return recipe;
}

nn::KernelOp SavedValues::replace(nn::KernelOp kernel, ValueRange operands, TypeRange results) {
  OpBuilder builder(kernel);
  auto fresh = nn::KernelOp::create(builder, kernel.getLoc(), kernel.getEmitter(), operands, results);
  positions[fresh] = positionOf(kernel);
  return fresh;
}

/// Takes `kernel`, which nothing reads any more, out of the block.
void SavedValues::erase(nn::KernelOp kernel) {
  for (Value result : kernel.getResults())
    lastReads.erase(result);
  positions.erase(kernel);
  kernel.erase();
}

void SavedValues::inlineInto(nn::KernelOp reader, OpResult value, const Recipe &recipe) {
  llvm::SetVector<Value> operands;
  for (Value operand : reader.getOperands())
    if (operand != value)
      operands.insert(operand);
  for (auto [_, outside] : recipe.leaves)
    operands.insert(outside);
  nn::KernelOp fresh = replace(reader, operands.getArrayRef(), reader.getResultTypes());
  auto argumentOf = [&](Value outside) {
    return fresh.getBlock()->getArgument(llvm::find(operands, outside) - operands.begin());
  };
  OpBuilder builder = OpBuilder::atBlockEnd(fresh.getBlock());
  IRMapping recipeMap;
  for (auto [inside, outside] : recipe.leaves)
    recipeMap.map(inside, argumentOf(outside));
  for (Operation *op : recipe.ops)
    builder.clone(*op, recipeMap);
  auto producer = cast<nn::KernelOp>(value.getOwner());
  Value computed = recipeMap.lookup(producer.getYield().getOperand(value.getResultNumber()));
  IRMapping mapping;
  for (auto [argument, operand] : llvm::zip_equal(reader.getBlock()->getArguments(), reader.getOperands()))
    mapping.map(argument, operand == value ? computed : argumentOf(operand));
  for (Operation &op : *reader.getBlock())
    builder.clone(op, mapping);
  moveRead(value, operands.getArrayRef(), positionOf(fresh));
  reader.replaceAllUsesWith(fresh.getResults());
  erase(reader);
  // The reader may hold some of the ops already.
  IRRewriter rewriter(fresh.getContext());
  DominanceInfo dominance(fresh);
  eliminateCommonSubExpressions(rewriter, dominance, fresh);
  ++numReaders;
}

/// Gives `producer` results for what the recipes of `readers` take from inside of it.
void SavedValues::handOut(nn::KernelOp &producer, MutableArrayRef<std::pair<nn::KernelOp, Recipe>> readers) {
  llvm::SetVector<Value> more;
  for (auto &[_, recipe] : readers)
    for (auto &[inside, outside] : recipe.leaves)
      if (!outside)
        more.insert(inside);
  if (more.empty())
    return;
  SmallVector<Type> types(producer.getResultTypes());
  SmallVector<Value> yielded(producer.getYield().getOperands());
  for (Value inside : more) {
    types.push_back(inside.getType());
    yielded.push_back(inside);
  }
  nn::KernelOp fresh = replace(producer, producer.getOperands(), types);
  fresh.getBody().takeBody(producer.getBody());
  nn::YieldOp old = fresh.getYield();
  OpBuilder builder(old);
  nn::YieldOp::create(builder, old.getLoc(), yielded);
  old.erase();
  for (auto &[_, recipe] : readers)
    for (auto &[inside, outside] : recipe.leaves) {
      if (!outside)
        outside = fresh.getResult(llvm::find(yielded, inside) - yielded.begin());
      else if (outside.getDefiningOp() == producer)
        outside = fresh.getResult(cast<OpResult>(outside).getResultNumber());
    }
  for (auto [result, replacement] : llvm::zip(producer.getResults(), fresh.getResults()))
    result.replaceAllUsesWith(replacement);
  erase(producer);
  producer = fresh;
}

/// Whether anything is left of the kernel.
bool SavedValues::dropDeadResults(nn::KernelOp kernel) {
  SmallVector<Value> kept, yielded;
  for (auto [result, inside] : llvm::zip_equal(kernel.getResults(), kernel.getYield().getOperands()))
    if (!result.use_empty()) {
      kept.push_back(result);
      yielded.push_back(inside);
    }
  if (kept.size() == kernel.getNumResults())
    return true;
  if (kept.empty()) {
    for (Value operand : kernel.getOperands())
      moveRead(operand, {}, positionOf(kernel));
    erase(kernel);
    return false;
  }
  nn::KernelOp fresh = replace(kernel, kernel.getOperands(), TypeRange(ValueRange(kept)));
  fresh.getBody().takeBody(kernel.getBody());
  nn::YieldOp old = fresh.getYield();
  OpBuilder builder(old);
  nn::YieldOp::create(builder, old.getLoc(), yielded);
  old.erase();
  for (auto [result, replacement] : llvm::zip_equal(kept, fresh.getResults()))
    result.replaceAllUsesWith(replacement);
  erase(kernel);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*fresh.getBlock())))
    if (isOpTriviallyDead(&op))
      op.erase();
  return true;
}

/// Whether a reader computes result `number` of `producer` itself now. What the producing kernel has besides is kept
/// for that only if nothing reads the value any more.
bool SavedValues::visit(nn::KernelOp &producer, unsigned number, bool keepsOthers) {
  OpResult value = producer->getResult(number);
  SmallVector<Operation *> readers(value.getUsers().begin(), value.getUsers().end());
  llvm::sort(readers, [&](Operation *a, Operation *b) { return positionOf(a) < positionOf(b); });
  readers.erase(llvm::unique(readers), readers.end());
  SmallVector<std::pair<nn::KernelOp, Recipe>> tail;
  unsigned end = positionOf(value.getOwner());
  for (Operation *reader : llvm::reverse(readers)) {
    auto kernel = reader->getBlock() == &block ? dyn_cast<nn::KernelOp>(reader) : nn::KernelOp();
    std::optional<Recipe> recipe = kernel ? findRecipe(value, kernel, keepsOthers) : std::nullopt;
    if (!recipe) {
      end = positionOf(reader);
      break;
    }
    tail.emplace_back(kernel, std::move(*recipe));
  }
  // Views that come earlier in the text may be read later.
  for (Operation *reader : readers)
    if (isView(reader))
      end = std::max(end, lastRead(reader->getResult(0)));
  llvm::erase_if(tail, [&](auto &entry) { return positionOf(entry.first) <= end; });
  const unsigned start = positionOf(value.getOwner());
  const bool vanishes = end == start && llvm::all_of(tail, [](auto &entry) {
                          return entry.second.flopsPerElement <= kMaxFlopsInsteadOfWrite;
                        });
  if (tail.empty() || positionOf(tail.back().first) < end + minGap || (keepsOthers && !vanishes))
    return false;
  // What is kept instead is there from the producing kernel on, beside the value while early readers need that.
  const uint64_t last = positionOf(tail.front().first), longer = last - start;
  for (auto &[_, recipe] : tail)
    if (!vanishes && 4 * recipe.keptBytes * std::max(longer, last - end) > 3 * bytesOf(value) * (last - end))
      return false;
  handOut(producer, tail);
  value = producer->getResult(number);
  for (auto &[reader, recipe] : tail)
    inlineInto(reader, value, recipe);
  ++numValues;
  return true;
}

std::pair<unsigned, unsigned> SavedValues::run() {
  // Kernels are replaced as we go; positions stay.
  for (Operation *op = &block.front(), *previous = nullptr; op;) {
    bool changed = false, isLeft = true;
    if (auto kernel = dyn_cast<nn::KernelOp>(op)) {
      for (unsigned i = 0, n = kernel.getNumResults(); i < n; ++i)
        changed |= visit(kernel, i, false) || visit(kernel, i, true);
      if (changed)
        isLeft = dropDeadResults(kernel);
    }
    if (isLeft)
      previous = previous ? previous->getNextNode() : &block.front();
    op = previous ? previous->getNextNode() : &block.front();
  }
  return {numValues, numReaders};
}

struct TrainInlineSaved : StepPass<lowtide::impl::TrainInlineSavedBase<TrainInlineSaved>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    if (!getOperation().getBody().hasOneBlock())
      return;
    runOnBlock(getOperation().getBody().front());
  }

  void runOnBlock(Block &block) {
    auto [values, readers] = SavedValues(getOperation(), block, minGap).run();
    numValues += values;
    numReaders += readers;
    if (values)
      block.getParentOp()->emitRemark() << values << " saved values recomputed inside " << readers << " kernels";
    for (Operation &op : block)
      if (isa<RepeatInterface>(op))
        runOnBlock(op.getRegion(0).front());
  }
};

} // namespace
