//===- RowRegion.cpp - what is computed of a product row by row -----------===//
//
// 1. Rows are followed forward from the product, op by op (BatchInterface).
// 2. The region is whatever makes or reads something about as large as the product, and what leads from there back to
// it
//    by way of small values with one row each (log-sum-exps, shares of a loss).
// 3. What makes large operands row by row joins it: the product of a teacher, what cotangents are scattered to.
// 4. Everything large must stay inside.
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

using Positions = SmallVector<std::optional<BatchPosition>>;

/// Which values of the product's block have rows, and how large they are.
class lowtide::RegionSearch {
public:
  explicit RegionSearch(Operation *product)
      : block(*product->getBlock()), size(typeOf(product->getResult(0)).getNumElements()),
        featureSize(typeOf(product->getOperand(0)).getNumElements()),
        rows(typeOf(product->getResult(0)).getDimSize(0)) {
    starts[product] = {BatchPosition{}, std::nullopt};
    follow();
  }

  /// Follows rows through the block from the ops that start them.
  void follow();
  /// Starts rows at what makes wide operands of ops inside, row by row: what a second product has for them, say.
  /// Whether there was any.
  bool startOperands();

  bool isTracked(Operation *op) const { return required.contains(op); }
  bool hasRows(Value value) const { return states.lookup(value).kind == Kind::Rows; }
  bool isWideType(Type type) const {
    const int64_t count = cast<RankedTensorType>(type).getNumElements();
    return 2 * count > size && count > featureSize;
  }
  bool isWide(Value value) const { return hasRows(value) && isWideType(value.getType()); }
  /// Whether `op` makes or reads something about as large as the product.
  bool isInside(Operation *op) const {
    auto wide = [&](Value value) { return isWide(value); };
    return isTracked(op) && (llvm::any_of(op->getOperands(), wide) || llvm::any_of(op->getResults(), wide));
  }
  /// Whether a value has one number for each row, or few next to the product.
  bool isNarrow(Value value) const {
    constexpr int64_t many = 16;
    const int64_t count = typeOf(value).getNumElements();
    return count <= rows || many * count <= size;
  }

  Block &block;
  const int64_t size, featureSize, rows;
  llvm::DenseMap<Value, BatchTracking::State> states;
  llvm::DenseMap<Operation *, Positions> required;

private:
  /// Whether `op` has rows and says what it does with them.
  bool track(Operation *op);
  bool start(Value value);

  /// Where operands that are not followed have rows, of ops that start them.
  llvm::DenseMap<Operation *, Positions> starts;
};

bool RegionSearch::track(Operation *op) {
  auto start = starts.find(op);
  Positions positions(op->getNumOperands());
  bool anyRows = start != starts.end();
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    if (hasRows(operand)) {
      positions[number] = states.lookup(operand).position;
      anyRows = true;
    } else if (start != starts.end()) {
      positions[number] = start->second[number];
    }
  }
  auto batch = dyn_cast<BatchInterface>(op);
  if (!anyRows || !batch || op->getNumRegions())
    return false;
  BatchSplit split(op, rows, positions, /*allSums=*/false);
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

void RegionSearch::follow() {
  states.clear();
  required.clear();
  for (Operation &op : block.without_terminator())
    track(&op);
}

bool RegionSearch::start(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block || isTracked(op) || op->getNumOperands() == 0)
    return false;
  Positions all, first(op->getNumOperands());
  for (Value operand : op->getOperands()) {
    const RankedTensorType type = typeOf(operand);
    const bool mayBeRows = type.getRank() > 0 && type.getDimSize(0) == rows;
    all.push_back(mayBeRows ? std::optional(BatchPosition{}) : std::nullopt);
  }
  first[0] = all[0];
  // A matrix may have as many rows as there are.
  for (const Positions &positions : {all, first}) {
    starts[op] = positions;
    if (llvm::any_of(positions, [](auto position) { return position.has_value(); }) && track(op) && hasRows(value) &&
        states.lookup(value).position == BatchPosition{} &&
        llvm::none_of(required[op], [](auto position) { return position && position->dim < 0; }))
      return true;
    required.erase(op);
    for (Value result : op->getResults())
      states.erase(result);
  }
  starts.erase(op);
  return false;
}

bool RegionSearch::startOperands() {
  bool any = false;
  for (Operation &op : block.without_terminator()) {
    if (!isInside(&op))
      continue;
    for (auto [operand, position] : llvm::zip_equal(op.getOperands(), Positions(required[&op])))
      if (position == BatchPosition{} && !hasRows(operand) && isWideType(operand.getType()))
        any |= start(operand);
  }
  if (any)
    follow();
  return any;
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

/// The region of what `search` followed.
RowRegion RowRegion::find(Operation *product, const RegionSearch &search) {
  RowRegion region;
  Block &block = search.block;
  auto refuse = [&](WholeReason reason, Operation *where = nullptr) {
    region.reason = reason;
    region.where = where;
    return region;
  };
  if (!search.isWide(product->getResult(0)))
    return refuse(WholeReason::FewColumns);

  llvm::SetVector<Operation *> inside;
  for (Operation &op : block.without_terminator())
    if (search.isInside(&op))
      inside.insert(&op);
  for (Operation *op : inside)
    region.hasLoss |= familyOf(op) == OpFamily::Loss;
  for (Operation *op : inside)
    for (Value result : op->getResults())
      if (search.isWide(result))
        for (Operation *user : result.getUsers()) {
          Operation *reader = block.findAncestorOpInBlock(*user);
          if (!inside.contains(reader))
            return refuse(isReturned(reader) ? WholeReason::Output : WholeReason::MixesRows, reader);
        }

  // What comes from the region and leads back to it.
  DenseSet<Operation *> after, before;
  auto comesFrom = [&](Operation *op) {
    bool comes = false;
    forEachRead(op, [&](Value value) { comes |= after.contains(value.getDefiningOp()); });
    return comes;
  };
  for (Operation &op : block)
    if (inside.contains(&op) || comesFrom(&op))
      after.insert(&op);
  auto leadsBack = [&](Operation *op) {
    return llvm::any_of(op->getUsers(),
                        [&](Operation *user) { return before.contains(block.findAncestorOpInBlock(*user)); });
  };
  for (Operation &op : llvm::reverse(block))
    if (inside.contains(&op) || leadsBack(&op))
      before.insert(&op);
  for (Operation &op : block) {
    if (inside.contains(&op) || !after.contains(&op) || !before.contains(&op))
      continue;
    if (search.isTracked(&op) && llvm::all_of(op.getResults(), [&](Value v) { return search.hasRows(v); }))
      inside.insert(&op);
    else
      region.isTwice = true;
  }
  bool isReduced = false, isNarrowed = true;
  for (Operation *op : inside) {
    const bool leads = leadsBack(op);
    // Another layer: rows of activations, not the logits of a loss.
    if (leads && familyOf(op) == OpFamily::Contraction && comesFrom(op))
      return refuse(WholeReason::NotReduced, op);
    for (Value result : op->getResults()) {
      isReduced |= search.isNarrow(result);
      isNarrowed &= !leads || search.isWide(result) || search.isNarrow(result);
    }
  }
  // What is computed twice is a loss, or leads to one by a few numbers for each row.
  if (!isReduced || (region.isTwice && !region.hasLoss && !isNarrowed))
    return refuse(WholeReason::NotReduced);

  region.tracking.samples = search.rows;
  for (Operation *op : inside) {
    region.tracking.required[op] = search.required.find(op)->second;
    for (Value result : op->getResults())
      region.tracking.states[result] = search.states.lookup(result);
  }
  return region;
}

RowRegion RowRegion::find(Operation *product) {
  RegionSearch search(product);
  RowRegion alone = find(product, search);
  if (alone.reason != WholeReason::None)
    return alone;
  bool hasJoined = false;
  while (search.startOperands())
    hasJoined = true;
  if (!hasJoined)
    return alone;
  RowRegion joined = find(product, search);
  return joined.reason == WholeReason::None ? joined : alone;
}

void RowRegion::keep(Operation *product) {
  tracking.required.erase(product);
  for (Value result : product->getResults())
    tracking.states.erase(result);
}
