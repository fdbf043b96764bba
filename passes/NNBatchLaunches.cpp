//===- NNBatchLaunches.cpp - many small kernels in one launch -------------===//
//
// A step updates every parameter by a kernel of its own; most are over before the next one has started.
//
//   1. Kernels of one form (codegen::getBatchForm) are met in program order. An open batch waits for the next one as
//      long as nothing reads what it will write, nothing overwrites what it will read, and the bytes that it keeps
//      alive meanwhile do not raise the peak. Where it cannot wait, the next one may come up to it: a kernel whose
//      operands are there already and whose results are few bytes, such as the cast of a bias.
//   2. The kernels of each batch move to where the last one stands; the step is packed once more. If it takes more
//      bytes than before (where no budget is given, a thousandth more), everything moves back and less is let wait.
//   3. Each batch becomes one kernel op.
//
//===----------------------------------------------------------------------===//
#include "PlanLayout.h"
#include "StepFacts.h"
#include "StepPass.h"
#include "lowtide/Analysis/BlockPlaces.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Fusion/CrossLaunches.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_NNBATCHLAUNCHES
#include "Passes.h.inc"
} // namespace lowtide

/// Pointers of a launch at most: a GPU takes 32,764 bytes of parameters (PTX 8.1).
static constexpr size_t kMaxPointers = 4000;
/// Parts of the peak that waiting may reach, tried one after the other; each with kernels that come up, then without.
static constexpr double kShares[] = {1.0, 0.98, 0.9};
/// Part of the peak that the results of a kernel that comes up may take.
static constexpr double kFewBytes = 1e-3;
/// Part of a step's bytes that fewer launches may cost where no budget is given.
static constexpr double kMoreBytes = 1e-3;
/// Instructions that sums may move up past, tried one after the other.
static constexpr unsigned kReaches[] = {1000, 8, 1};

namespace {

using Group = SmallVector<nn::KernelOp>;

/// What must have been made before `value`, which shows other bytes, can be read: the anchors of recomputations.
SmallVector<Value> listAnchors(Value value) {
  SmallVector<Value> anchors;
  for (Operation *view = value.getDefiningOp(); view && StepStorage::isView(view);
       view = view->getOperand(0).getDefiningOp())
    for (Value anchor : view->getOperands().drop_front())
      anchors.push_back(StepStorage::getRoot(anchor));
  return anchors;
}

/// The instructions of a step's block and what they need.
class Timeline {
public:
  Timeline(func::FuncOp step, const MemoryProfile &profile, const StepStorage &storage) : storage(storage) {
    for (auto [i, op] : llvm::enumerate(storage.getInstructions()))
      indexOf[op] = i;
    for (const auto &live : profile.getLive())
      liveBytes.push_back(std::accumulate(live.begin(), live.end(), int64_t(0)));
    peakBytes = profile.getPeakBytes();
    block = &step.getBody().front();
    findUses();
    findUpdates(step);
  }

  /// What decides how long a kernel that stands at its place may wait. All that wait are asked for each kernel that may
  /// join them: what each reads and makes is looked up once.
  struct Waiting {
    /// The first instruction that reads what it makes, or overwrites what it reads: it may not wait until then.
    unsigned last = UINT_MAX;
    /// Of what it makes.
    int64_t madeBytes = 0;
    /// What it reads: the last use, and bytes.
    SmallVector<std::pair<unsigned, int64_t>, 4> kept = {};
  };
  Waiting getWaiting(nn::KernelOp kernel) const {
    Waiting waiting;
    for (Value result : kernel->getResults()) {
      if (auto use = firstUse.find(result); use != firstUse.end())
        waiting.last = std::min(waiting.last, use->second);
      if (isTransient(result))
        waiting.madeBytes += int64_t(getTensorBytes(result.getType()).value_or(0));
    }
    for (Value root : distinctRoots(kernel)) {
      if (auto update = updatedAt.find(root); update != updatedAt.end() && update->second > at(kernel))
        waiting.last = std::min(waiting.last, update->second);
      if (isTransient(root))
        waiting.kept.push_back({lastUse.lookup(root), int64_t(getTensorBytes(root.getType()).value_or(0))});
    }
    return waiting;
  }

  /// Whether it may wait from instruction `from` until `end`; if so, it does from now on.
  bool canWait(const Waiting &waiting, unsigned from, unsigned end, double share) {
    if (waiting.last <= end)
      return false;
    // What it makes later does not exist meanwhile; what it reads is kept.
    added.assign(end - from, -waiting.madeBytes);
    for (auto [last, bytes] : waiting.kept)
      for (unsigned i = std::max(from, last) + 1; i <= end; ++i)
        added[i - from - 1] += bytes;
    for (auto [i, bytes] : llvm::enumerate(added))
      if (bytes > 0 && double(liveBytes[from + 1 + i] + bytes) > double(peakBytes) * share)
        return false;
    for (auto [i, bytes] : llvm::enumerate(added))
      liveBytes[from + 1 + i] += bytes;
    return true;
  }

  /// Whether `kernel` may come up to `anchor`, a kernel before it; if so, it does from now on.
  bool canComeUp(nn::KernelOp kernel, nn::KernelOp anchor, double share) {
    const unsigned from = at(anchor), to = at(kernel);
    auto isMade = [&](Value root) {
      Operation *maker = root.getDefiningOp();
      return !maker || (indexOf.contains(maker) && at(maker) < from);
    };
    auto isThere = [&](Value operand) {
      return isMade(StepStorage::getRoot(operand)) && llvm::all_of(listAnchors(operand), isMade);
    };
    uint64_t bytes = 0;
    for (Value result : kernel->getResults()) {
      // What updates an argument stays after those that read it.
      if (!isTransient(result))
        return false;
      bytes += getTensorBytes(result.getType()).value_or(0);
    }
    if (!llvm::all_of(kernel.getOperands(), isThere) || double(bytes) > double(peakBytes) * kFewBytes)
      return false;
    for (unsigned i = from; i < to; ++i)
      if (double(liveBytes[i] + int64_t(bytes)) > double(peakBytes) * share)
        return false;
    for (unsigned i = from; i < to; ++i)
      liveBytes[i] += int64_t(bytes);
    for (Value root : distinctRoots(kernel))
      if (auto use = firstUse.find(root); use != firstUse.end())
        use->second = std::min(use->second, from);
    return true;
  }
  /// From now on `kernel` stands where `anchor` does.
  void move(nn::KernelOp kernel, nn::KernelOp anchor) { indexOf[kernel] = at(anchor); }
  unsigned at(Operation *op) const { return indexOf.lookup(op); }

private:
  static llvm::SmallSetVector<Value, 8> distinctRoots(Operation *op) {
    llvm::SmallSetVector<Value, 8> roots;
    for (Value operand : op->getOperands())
      roots.insert(StepStorage::getRoot(operand));
    return roots;
  }
  bool isTransient(Value root) const {
    const Storage &place = storage.getStorages()[storage.getStorage(root)];
    return place.kind == Storage::Kind::Transient && !place.kept;
  }
  void findUses() {
    for (Operation &op : *block)
      if (!StepStorage::isView(&op) && !op.hasTrait<OpTrait::IsTerminator>())
        forEachRead(op, [&](OpOperand &operand, Value root) {
          firstUse.try_emplace(root, at(&op));
          lastUse[root] = std::max(lastUse.lookup(root), at(&op));
          // Their bytes are not read, but they may not wait any longer either.
          for (Value anchor : listAnchors(operand.get()))
            firstUse.try_emplace(anchor, at(&op));
        });
  }
  /// Instructions that write over an argument.
  void findUpdates(func::FuncOp step) {
    llvm::DenseMap<Attribute, Value> arguments;
    for (BlockArgument argument : block->getArguments())
      if (Attribute binding = step.getArgAttr(argument.getArgNumber(), bindingAttrName))
        arguments[binding] = argument;
    for (auto [i, value] : llvm::enumerate(block->getTerminator()->getOperands()))
      if (auto result = dyn_cast<OpResult>(StepStorage::getRoot(value)))
        if (auto argument = arguments.find(step.getResultAttr(i, bindingAttrName)); argument != arguments.end())
          updatedAt[argument->second] = at(StepStorage::getFirstValue(result).getOwner());
  }

  const StepStorage &storage;
  Block *block;
  llvm::DenseMap<Operation *, unsigned> indexOf;
  llvm::DenseMap<Value, unsigned> firstUse, lastUse, updatedAt;
  std::vector<int64_t> liveBytes;
  uint64_t peakBytes = 0;
  /// Scratch of `canWait`.
  std::vector<int64_t> added;
};

} // namespace

/// Kernels that may go together, by form, in program order.
static SmallVector<Group> findCandidates(Block &block) {
  llvm::MapVector<StringAttr, Group> byForm;
  for (auto kernel : block.getOps<nn::KernelOp>()) {
    if (kernel->hasAttr(recomputedAttrName))
      continue;
    if (std::string form = codegen::getBatchForm(kernel); !form.empty())
      byForm[StringAttr::get(block.getParentOp()->getContext(), form)].push_back(kernel);
  }
  SmallVector<Group> groups;
  for (auto &[form, kernels] : byForm)
    if (kernels.size() > 1)
      groups.push_back(std::move(kernels));
  return groups;
}

/// Cuts the candidates into batches; the last kernel of each stays where it is. With `comeUp`, kernels after it may
/// join.
static SmallVector<Group> formBatches(ArrayRef<Group> candidates, Timeline &timeline, double share, bool comeUp) {
  SmallVector<Group> batches;
  for (const Group &kernels : candidates) {
    Group open, after;
    SmallVector<Timeline::Waiting> waiting; // those of `open`
    size_t pointers = 0;
    auto close = [&] {
      if (open.size() + after.size() > 1) {
        // In front of the one that stays: what all of them read is there.
        open.insert(std::prev(open.end()), after.begin(), after.end());
        for (nn::KernelOp kernel : open)
          timeline.move(kernel, open.back());
        batches.push_back(open);
      }
      open.clear();
      waiting.clear();
      after.clear();
      pointers = 0;
    };
    for (nn::KernelOp kernel : kernels) {
      const size_t own = kernel.getNumOperands() + kernel.getNumResults();
      if (!open.empty()) {
        const unsigned from = timeline.at(open.back()), end = timeline.at(kernel);
        const bool fits = pointers + own <= kMaxPointers;
        bool all = fits && after.empty();
        for (size_t i = 0; i < waiting.size() && all; ++i)
          all = timeline.canWait(waiting[i], from, end, share);
        if (!all && fits && comeUp && timeline.canComeUp(kernel, open.back(), share)) {
          after.push_back(kernel);
          pointers += own;
          continue;
        }
        if (!all)
          close();
      }
      open.push_back(kernel);
      waiting.push_back(timeline.getWaiting(kernel));
      pointers += own;
    }
    close();
  }
  return batches;
}

/// Whose bytes a step has where, when the kernels of each batch run as one.
static FailureOr<StepStorage> computeStorage(func::FuncOp step, const FactsTable &facts, ArrayRef<Group> batches) {
  // Nothing overwrites what two kernels of a batch read.
  llvm::DenseSet<std::pair<Operation *, Value>> shared;
  for (const Group &batch : batches) {
    llvm::DenseMap<Value, unsigned> readers;
    for (nn::KernelOp kernel : batch)
      for (Value operand : kernel.getOperands())
        ++readers[operand];
    for (nn::KernelOp kernel : batch)
      for (Value operand : kernel.getOperands())
        if (readers[operand] > 1)
          shared.insert({kernel, operand});
  }
  return StepStorage::compute(step, [&](Operation *op, unsigned result, unsigned operand) {
    auto known = facts.find(op);
    return known != facts.end() && known->second.mayOverwrite(result, operand) &&
           !shared.contains({op, op->getOperand(operand)});
  });
}

/// Bytes of the device's arena then; the kernels of a batch stand one after the other.
static FailureOr<uint64_t> packStep(func::FuncOp step, const FactsTable &facts, ArrayRef<Group> batches) {
  FailureOr<StepStorage> storage = computeStorage(step, facts, batches);
  if (failed(storage))
    return failure();
  llvm::DenseMap<Operation *, unsigned> indexOf;
  std::vector<solve::Buffer> buffers;
  for (const Storage &place : storage->getStorages())
    if (place.kind == Storage::Kind::Transient && place.space == Space::Device)
      buffers.push_back({place.bytes, place.begin, place.end});
  for (auto [i, op] : llvm::enumerate(storage->getInstructions())) {
    indexOf[op] = i;
    if (auto known = facts.find(op); known != facts.end() && known->second.workspaceBytes)
      buffers.push_back({known->second.workspaceBytes, uint32_t(i), uint32_t(i + 1)});
  }
  for (const Group &batch : batches) {
    const uint32_t first = indexOf.lookup(batch.front()), last = indexOf.lookup(batch.back());
    for (solve::Buffer &buffer : buffers) {
      if (buffer.begin > first && buffer.begin <= last)
        buffer.begin = first;
      if (buffer.end > first && buffer.end <= last)
        buffer.end = last + 1;
    }
  }
  return solve::packOnce(buffers, getPlanPacking()).arenaBytes;
}

/// One kernel op in the place of the last one of `batch`.
static void merge(const Group &batch) {
  OpBuilder builder(batch.back());
  llvm::SmallSetVector<Value, 32> operands;
  // What all of them read comes first, then the operands of each: their numbers are straight lines.
  for (Value operand : nn::KernelOp(batch.front()).getOperands())
    if (llvm::all_of(batch, [&](nn::KernelOp kernel) { return llvm::is_contained(kernel.getOperands(), operand); }))
      operands.insert(operand);
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (nn::KernelOp kernel : batch) {
    operands.insert(kernel.getOperands().begin(), kernel.getOperands().end());
    llvm::append_range(types, kernel->getResultTypes());
    locations.push_back(kernel.getLoc());
  }
  auto merged =
      nn::KernelOp::create(builder, builder.getFusedLoc(locations), nn::Emitter::batch, operands.getArrayRef(), types);
  builder.setInsertionPointToEnd(merged.getBlock());
  SmallVector<Value> yielded;
  IRMapping outside;
  outside.map(operands.getArrayRef(), merged.getBlock()->getArguments());
  for (nn::KernelOp kernel : batch) {
    IRMapping mapping;
    for (auto [argument, operand] : llvm::zip_equal(kernel.getBlock()->getArguments(), kernel.getOperands()))
      mapping.map(argument, outside.lookup(operand));
    for (Operation &op : kernel.getBlock()->without_terminator())
      builder.clone(op, mapping);
    for (Value value : kernel.getYield().getOperands())
      yielded.push_back(mapping.lookup(value));
  }
  nn::YieldOp::create(builder, merged.getLoc(), yielded);
  unsigned number = 0;
  for (nn::KernelOp kernel : batch) {
    for (Value result : kernel->getResults())
      result.replaceAllUsesWith(merged.getResult(number++));
    kernel.erase();
  }
}

/// Moves what shows the bytes of `maker`'s results, and stands before it, after `place`.
static void moveViews(Operation *maker, Operation *place, BlockPlaces &places) {
  for (Operation *user : llvm::to_vector(maker->getUsers()))
    if (user->getBlock() == place->getBlock() && StepStorage::isView(user)) {
      if (places.isBefore(user, place))
        places.moveAfter(user, place);
      moveViews(user, user, places);
    }
}

/// Moves what shows the operands of `kernel`, and stands after `place`, in front of it.
static void bringOperands(Operation *kernel, Operation *place, BlockPlaces &places) {
  for (Value operand : kernel->getOperands())
    if (Operation *view = operand.getDefiningOp();
        view && view->getBlock() == place->getBlock() && places.isBefore(place, view)) {
      bringOperands(view, place, places);
      places.moveBefore(view, place);
    }
}

/// Bytes that `step` may take with fewer launches, where it took `before`.
static uint64_t getMostBytes(func::FuncOp step, uint64_t before) {
  return step->getParentOp()->hasAttr(deviceBudgetAttrName) ? before : before + uint64_t(double(before) * kMoreBytes);
}

/// What a step's launches became.
struct Batched {
  size_t batches = 0, kernels = 0;
};

/// `before`: bytes of the arena of the step as it stands.
static FailureOr<Batched> batchStep(func::FuncOp step, const FactsTable &facts, uint64_t before) {
  Block &block = step.getBody().front();
  SmallVector<Group> candidates = findCandidates(block);
  if (candidates.empty())
    return Batched();
  FailureOr<MemoryProfile> profile = MemoryProfile::compute(step, facts);
  FailureOr<StepStorage> storage = computeStorage(step, facts, {});
  if (failed(profile) || failed(storage))
    return failure();
  const auto order = llvm::map_to_vector(block, [](Operation &op) { return &op; });
  auto attempt = [&](double share, bool comeUp) -> FailureOr<std::optional<Batched>> {
    Timeline timeline(step, *profile, *storage);
    SmallVector<Group> batches = formBatches(candidates, timeline, share, comeUp);
    BlockPlaces places(block);
    for (const Group &batch : batches) {
      for (nn::KernelOp kernel : ArrayRef(batch).drop_back()) {
        bringOperands(kernel, batch.back(), places);
        places.moveBefore(kernel, batch.back());
      }
      for (nn::KernelOp kernel : batch)
        moveViews(kernel, batch.back(), places);
    }
    FailureOr<uint64_t> after = packStep(step, facts, batches);
    if (failed(after))
      return failure();
    if (*after <= getMostBytes(step, before)) {
      Batched done;
      for (const Group &batch : batches) {
        ++done.batches, done.kernels += batch.size();
        merge(batch);
      }
      return std::optional(done);
    }
    for (Operation *op : order)
      op->moveBefore(&block, block.end());
    return std::optional<Batched>();
  };
  for (double share : kShares)
    for (bool comeUp : {true, false}) {
      FailureOr<std::optional<Batched>> done = attempt(share, comeUp);
      if (failed(done))
        return failure();
      if (*done)
        return **done;
    }
  return Batched();
}

/// Lets sums over columns go along with rows, as long as no byte more is needed (without a budget: few more). Returns
/// the bytes of its arena.
static FailureOr<uint64_t> crossStep(func::FuncOp step, StepFacts &facts, function_ref<LogicalResult()> update,
                                     const TargetInfo &target, bool cross) {
  FailureOr<uint64_t> before = packStep(step, facts.getTable(), {});
  if (failed(before) || !cross)
    return before;
  OwningOpRef<func::FuncOp> original = step.clone();
  codegen::KernelModule kernels(step.getContext(), codegen::CodegenOptions::get(target));
  for (unsigned reach : kReaches) {
    auto forget = [&](Operation *op) { facts.getTable().erase(op); };
    if (!crossLaunches(step, kernels, reach, forget))
      return before;
    if (failed(update()))
      return failure();
    FailureOr<uint64_t> after = packStep(step, facts.getTable(), {});
    if (failed(after))
      return failure();
    if (*after <= getMostBytes(step, *before))
      return after;
    OwningOpRef<func::FuncOp> again = original->clone();
    step.getBody().takeBody(again->getBody());
    facts.clear();
    if (failed(update()))
      return failure();
  }
  return before;
}

namespace {

struct NNBatchLaunches : StepPass<lowtide::impl::NNBatchLaunchesBase<NNBatchLaunches>> {
  using StepPass::StepPass;

  void runOnSteps() override {
    StepFacts facts(getOperation());
    auto update = [&] { return facts.update(target); };
    if (failed(update()))
      return signalPassFailure();
    for (auto step : getOperation().getOps<func::FuncOp>()) {
      FailureOr<uint64_t> arenaBytes = crossStep(step, facts, update, target, cross);
      if (failed(arenaBytes))
        return signalPassFailure();
      FailureOr<Batched> batched = batchStep(step, facts.getTable(), *arenaBytes);
      if (failed(batched))
        return signalPassFailure();
      numBatches += batched->batches, numKernels += batched->kernels;
      if (batched->batches)
        step.emitRemark("@") << step.getSymName() << ": " << batched->kernels << " kernels share " << batched->batches
                             << (batched->batches == 1 ? " launch" : " launches");
    }
  }
};

} // namespace
