//===- RowRegion.cpp - what is computed of a product row by row -----------===//
//
// 1. Rows are followed forward from the product, op by op (BatchInterface).
// 2. The region is whatever makes or reads something about as large as the product, and what leads from there back to
// it
//    by way of small values with one row each (log-sum-exps, shares of a loss).
// 3. Everything large must stay inside.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Analysis/RowRegion.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;
using Kind = BatchTracking::Kind;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

std::string lowtide::describeWhole(WholeReason reason, Operation *where) {
  auto name = [&] { return where ? where->getName().getStringRef().str() : std::string("an op"); };
  switch (reason) {
  case WholeReason::None:
    return "";
  case WholeReason::NoProduct:
    return "they are no product of rows with one matrix";
  case WholeReason::FewColumns:
    return "there are no more classes than features";
  case WholeReason::SmallGain:
    return "they are not four times as large as the weight";
  case WholeReason::Output:
    return "they are an output";
  case WholeReason::MixesRows:
    return "they are read elsewhere, by '" + name() + "', which does not treat rows one by one";
  case WholeReason::NoDivisor:
    return "their rows do not fall into equal tiles";
  case WholeReason::NotReduced:
    return "nothing small is made of them";
  }
  return "";
}

std::string lowtide::adviseWhole(WholeReason reason, StringRef entry) {
  switch (reason) {
  case WholeReason::Output:
    return entry.starts_with("eval") ? "--outputs=none leaves the outputs of the file out of eval, too"
                                     : "without --outputs, a training step computes its loss and no output";
  case WholeReason::SmallGain:
    return "--loss-head-chunks=N parts them anyway; more samples a step make it worth while";
  case WholeReason::NoDivisor:
    return "another batch or sequence length has rows that can be divided, such as a multiple of 32";
  case WholeReason::NoProduct:
  case WholeReason::FewColumns:
  case WholeReason::MixesRows:
    return "--micro-batches=N holds the logits of a part of the batch at a time";
  default:
    return "";
  }
}

static OpFamily familyOf(Operation *op) {
  auto facts = dyn_cast<FactsInterface>(op);
  return facts ? facts.getFacts().family : OpFamily::Fusion;
}

/// Values that an op, or what is inside it, reads.
static void forEachRead(Operation *op, function_ref<void(Value)> take) {
  op->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), take); });
}

namespace {

struct RegionSearch {
  explicit RegionSearch(Operation *product) : product(product) {}

  /// Whether `op` has rows and says what it does with them.
  bool track(Operation *op, int64_t samples);

  Operation *product;
  llvm::DenseMap<Value, BatchTracking::State> states;
  llvm::DenseMap<Operation *, SmallVector<std::optional<BatchPosition>>> required;
};

} // namespace

bool RegionSearch::track(Operation *op, int64_t samples) {
  SmallVector<std::optional<BatchPosition>> positions;
  bool anyRows = op == product;
  for (Value operand : op->getOperands()) {
    auto state = states.find(operand);
    const bool isRows = state != states.end() && state->second.kind == Kind::Rows;
    positions.push_back(isRows ? std::optional(state->second.position) : std::nullopt);
    anyRows |= isRows;
  }
  auto batch = dyn_cast<BatchInterface>(op);
  if (!anyRows || !batch || op->getNumRegions())
    return false;
  if (op == product)
    positions[0] = BatchPosition{};
  BatchSplit split(op, samples, positions, /*allSums=*/false);
  if (failed(batch.splitBatch(split)))
    return false;
  bool anySum = false, anyRow = false;
  for (const BatchSplit::Result &result : split.results) {
    // What data select of some rows is in another order than of all.
    if (result.kind == BatchSplit::Kind::Same || result.kind == BatchSplit::Kind::Statistic ||
        result.position.selection)
      return false;
    anySum |= result.kind == BatchSplit::Kind::Sum;
    anyRow |= result.kind == BatchSplit::Kind::Rows;
  }
  if (anySum && anyRow)
    return false;
  // Sums go over tiles of rows, which are cut out of what is there.
  if (anySum && llvm::any_of(split.required, [](auto position) { return position && position->outer != 1; }))
    return false;
  for (auto [value, result] : llvm::zip_equal(op->getResults(), split.results))
    states[value] = {result.kind == BatchSplit::Kind::Rows ? Kind::Rows : Kind::Sum, result.position};
  required[op] = split.required;
  return true;
}

/// Whether `reader` hands on what it reads to the end of the block, under another shape at most, and to nothing else.
static bool isReturned(Operation *reader) {
  SmallVector<Operation *> worklist{reader};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (op->hasTrait<OpTrait::IsTerminator>())
      continue;
    if (familyOf(op) != OpFamily::Movement || op->use_empty())
      return false;
    llvm::append_range(worklist, op->getUsers());
  }
  return true;
}

RowRegion RowRegion::find(Operation *product) {
  RowRegion region;
  RegionSearch search(product);
  Block &block = *product->getBlock();
  const RankedTensorType type = typeOf(product->getResult(0)), x = typeOf(product->getOperand(0));
  const int64_t rows = type.getDimSize(0), size = type.getNumElements();
  auto refuse = [&](WholeReason reason, Operation *where = nullptr) {
    region.reason = reason;
    region.where = where;
    return region;
  };
  for (Operation &op : llvm::make_range(product->getIterator(), std::prev(block.end())))
    search.track(&op, rows);
  auto hasRows = [&](Value value) {
    auto state = search.states.find(value);
    return state != search.states.end() && state->second.kind == Kind::Rows;
  };
  auto isWide = [&](Value value) {
    return hasRows(value) && 2 * typeOf(value).getNumElements() > size &&
           typeOf(value).getNumElements() > x.getNumElements();
  };
  if (!isWide(product->getResult(0)))
    return refuse(WholeReason::FewColumns);

  llvm::SetVector<Operation *> inside;
  for (Operation &op : llvm::make_range(product->getIterator(), std::prev(block.end())))
    if (search.required.contains(&op) &&
        (llvm::any_of(op.getOperands(), isWide) || llvm::any_of(op.getResults(), isWide)))
      inside.insert(&op);
  for (Operation *op : inside)
    region.hasLoss |= familyOf(op) == OpFamily::Loss;
  for (Operation *op : inside)
    for (Value result : op->getResults())
      if (isWide(result))
        for (Operation *user : result.getUsers()) {
          Operation *reader = block.findAncestorOpInBlock(*user);
          if (!inside.contains(reader))
            return refuse(isReturned(reader) ? WholeReason::Output : WholeReason::MixesRows, reader);
        }

  // What comes from the region and leads back to it.
  DenseSet<Operation *> after, before;
  for (Operation &op : llvm::make_range(product->getIterator(), block.end())) {
    bool comes = inside.contains(&op);
    forEachRead(&op, [&](Value value) { comes |= after.contains(value.getDefiningOp()); });
    if (comes)
      after.insert(&op);
  }
  for (Operation &op : llvm::reverse(block)) {
    bool leads = inside.contains(&op);
    for (Operation *user : op.getUsers())
      leads |= before.contains(block.findAncestorOpInBlock(*user));
    if (leads)
      before.insert(&op);
  }
  for (Operation &op : block) {
    if (inside.contains(&op) || !after.contains(&op) || !before.contains(&op))
      continue;
    if (search.required.contains(&op) && llvm::all_of(op.getResults(), hasRows))
      inside.insert(&op);
    else
      region.isTwice = true;
  }
  bool isReduced = false;
  for (Operation *op : inside) {
    const bool leadsBack = llvm::any_of(
        op->getUsers(), [&](Operation *user) { return before.contains(block.findAncestorOpInBlock(*user)); });
    // Another layer: rows of activations, not the logits of a loss.
    if (op != product && leadsBack && familyOf(op) == OpFamily::Contraction)
      return refuse(WholeReason::NotReduced, op);
    for (Value result : op->getResults())
      isReduced |= typeOf(result).getNumElements() <= rows;
  }
  if (!isReduced || (region.isTwice && !region.hasLoss))
    return refuse(WholeReason::NotReduced);

  region.tracking.samples = rows;
  for (Operation *op : inside) {
    region.tracking.required[op] = search.required[op];
    for (Value result : op->getResults())
      region.tracking.states[result] = search.states[result];
  }
  return region;
}
