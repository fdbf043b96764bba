//===- TrainRematerialize.cpp - makes a step fit a budget -----------------===//
//
// 1. What outlives the instructions is counted first (PlanLayout); the rest of
//    the budget is for the transient arena.
// 2. Each step is posed (Analysis/StepProblem) and solved (Solve/Fit). A
//    schedule is taken only if its buffers, packed as plan-place will pack them,
//    stay within the budget.
// 3. With budgets for other memories, values may wait in one of them instead (Offload), and tensors lie in any.
// 4. The schedule becomes the step's order, with what runs again cloned. The
//    step that was made is counted and packed once more: should it need more
//    than its schedule, everything starts over with that much in reserve.
//
//===----------------------------------------------------------------------===//
#include "TrainRematerialize.h"
#include "BudgetFlips.h"
#include "BudgetRefusal.h"
#include "Offload.h"
#include "PlaceChoices.h"
#include "PlanLayout.h"
#include "PlanRemarks.h"
#include "StepFacts.h"
#include "StepPass.h"
#include "lowtide/Analysis/RefusedBudget.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Solve/Algorithms/LinearProgram.h"
#include "lowtide/Solve/Portfolio/Comparison.h"
#include "lowtide/Support/Failure.h"
#include "lowtide/Support/OptionChoices.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_TRAINREMATERIALIZE
#include "Passes.h.inc"
} // namespace lowtide

namespace {

class TrainRematerialize : public StepPass<lowtide::impl::TrainRematerializeBase<TrainRematerialize>> {
public:
  using StepPass::StepPass;
  TrainRematerialize(const TrainRematerializeOptions &options, std::shared_ptr<solve::SolvedSteps> solved,
                     bool isRefusalRead)
      : StepPass(options), solved(std::move(solved)), isRefusalRead(isRefusalRead) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    codegen::KernelModule::registerDialects(registry);
  }

  void runOnSteps() override {
    if (failed(checkOptions(getOperation(), {{"remat-strategy", rematStrategy},
                                             {"without-methods", withoutMethods},
                                             {"device-budget", deviceBudget},
                                             {"host-budget", hostBudget},
                                             {"disk-budget", diskBudget},
                                             {"bound", bound},
                                             {"flips", flips}})))
      return signalPassFailure();
    if (deviceBudget.empty())
      return;
    if (!solved)
      solved = makeSolvedSteps(withoutMethods);
    FailureOr<SmallVector<OffloadRoom, 2>> given = OffloadRoom::list(getOperation(), target, hostBudget, diskBudget);
    if (failed(given))
      return signalPassFailure();
    givenRooms = std::move(*given);
    std::map<uint64_t, BudgetDecisions> decided;
    if (isOn(flips))
      decided = planOtherBudgets();
    if (failed(fitTo(llvm::cantFail(parseByteSize(deviceBudget))))) // checked above
      return signalPassFailure();
    if (isOn(flips)) {
      decided[*budgetBytes] = readDecisions(getOperation());
      noteFlips(getOperation(), decided, *budgetBytes);
    }
    numRecomputed += totals.recomputed;
    numLoaded += totals.loaded;
    markAnalysesPreserved<StepFacts>();
  }

private:
  /// What the module takes with tensors in other memories.
  struct Trial {
    /// Values wait in the first.
    SmallVector<OffloadRoom, 2> rooms;
    TensorPlaces places;
    /// Of all entries; nothing: it does not fit, and needs so many bytes at least.
    std::optional<double> seconds = {};
    uint64_t leastBytes = UINT64_MAX;
    /// Nothing runs again, and nothing waits elsewhere for a while.
    bool isPlain = false;
    /// Of the tensors those that find room on the device.
    TensorNames onDevice = {};

    bool isBetterThan(const Trial &other) const {
      if (seconds || other.seconds)
        return seconds && (!other.seconds || *seconds < *other.seconds);
      return leastBytes < other.leastBytes;
    }
  };
  /// Fits the module with tensors there. `best`: a trial that is kept where this one is slower, or does not fit.
  Trial tryPlaces(ModuleOp given, const TensorPlaces &places, const std::optional<Trial> &best);
  static bool isHeldByLanes(const Trial &trial, const PlaceChoices &choices);
  /// The best of what may lie in `tensorRooms`, each tensor in the first that has place for it, if that can be better
  /// than `known`.
  std::optional<Trial> tryAll(ModuleOp given, ArrayRef<OffloadRoom> tensorRooms, const std::optional<Trial> &known);
  /// The best of `places`, and of parts of it where lanes take most of the time.
  std::optional<Trial> search(ModuleOp given, const PlaceChoices &choices, ArrayRef<TensorPlaces> places,
                              const std::optional<Trial> &known);
  /// Chooses the memory in which values wait and those in which parameters and optimizer state lie: where the step
  /// takes the least time so, or fits so alone.
  void choosePlaces();
  /// Chooses places, and fits every entry to the budget.
  LogicalResult fitTo(const ByteSize &budget);
  /// What plans decide at budgets from the smallest that has one to what the step takes without any. Numbers the
  /// module's instructions, which is as it was otherwise.
  std::map<uint64_t, BudgetDecisions> planOtherBudgets();
  /// Fits every entry, with reserves until what was made stays within the budget.
  LogicalResult fitAll();
  /// Fits every entry with `reserve` bytes less than there are; bytes by which what was made goes beyond the budget.
  FailureOr<uint64_t> fitModule(uint64_t reserve);
  /// Makes the plan of an entry; bytes by which what was made goes beyond the budget.
  FailureOr<uint64_t> fitEntry(PosedEntry &entry, const MemoryProfile &unfitted, solve::PackedPlan packed,
                               const BudgetRoom &room, FactsTable &facts);
  /// The plan of the pass's strategy in so many bytes of arena; nothing if it has none, or none with values in another
  /// memory that takes less than `mostSeconds`.
  std::optional<solve::PackedPlan> findPlan(PosedEntry &entry, uint64_t transientBytes, double mostSeconds);
  /// The schedule of a published strategy for so many bytes of arena; nothing if it has none.
  std::optional<solve::FittedSchedule> choose(PosedEntry &entry, uint64_t transientBytes);
  void restore(ModuleOp given);

  /// Lets all entries count what copies of any of them pass through: that is there once.
  void shareStaging(MutableArrayRef<PosedEntry> entries, uint64_t transientBytes);

  std::shared_ptr<solve::SolvedSteps> solved;
  /// The figures of a refusal, and its words.
  bool isRefusalRead = true;
  /// Of the plans that were made last, all entries together.
  struct Totals {
    double seconds = 0;
    /// Over the steps in which nothing runs again and nothing moves.
    double extraSeconds = 0;
    unsigned recomputed = 0, loaded = 0;
    /// Entries share the arena and what copies pass through: the most that one needs of each.
    uint64_t arenaBytes = 0, stagingBytes = 0;
    std::vector<FittedEntry> entries = {};
  } totals;
  /// The entries have to be fitted once more, each with all that copies of any of them pass through; they are.
  bool isStagingWhole = false, countsWholeStaging = false;
  /// What is fitted is tried, not kept. Where another trial takes so many seconds, only what can be as fast is
  /// searched, and no refusal says how much it lacks.
  bool isTrial = false;
  double secondsToBeat = INFINITY;
  /// The budget as it was asked for.
  ByteSize budget;
  /// The budget in bytes, once it is known.
  std::optional<uint64_t> budgetBytes;
  /// The other memories: as they were given, and as they are used. Values wait in the second where the first has no
  /// room. None: everything is on the device.
  SmallVector<OffloadRoom, 2> givenRooms, rooms;
  /// The same without what lies there all the time.
  SmallVector<OffloadRoom, 2> roomsLeft;
};

} // namespace

solve::FitOptions lowtide::getPlanSearch(StringRef withoutMethods) {
  solve::FitOptions options;
  for (StringRef name : llvm::split(withoutMethods, ','))
    if (!name.empty())
      options.without.push_back(name.str());
  return options;
}

std::shared_ptr<solve::SolvedSteps> lowtide::makeSolvedSteps(StringRef withoutMethods) {
  return std::make_shared<solve::SolvedSteps>(getPlanPacking(), getPlanSearch(withoutMethods));
}

std::unique_ptr<Pass> lowtide::createTrainRematerialize(const TrainRematerializeOptions &options,
                                                        std::shared_ptr<solve::SolvedSteps> solved,
                                                        bool isRefusalRead) {
  return std::make_unique<TrainRematerialize>(options, std::move(solved), isRefusalRead);
}

LogicalResult TrainRematerialize::fitTo(const ByteSize &asked) {
  budget = asked;
  budgetBytes.reset();
  rooms = givenRooms;
  if (!rooms.empty() && rematStrategy == "fit")
    choosePlaces();
  return fitAll();
}

std::map<uint64_t, BudgetDecisions> TrainRematerialize::planOtherBudgets() {
  constexpr unsigned numRungs = 32;
  std::map<uint64_t, BudgetDecisions> decided;
  ModuleOp module = getOperation();
  numberInstructions(module);
  ScopedDiagnosticHandler silence(&getContext(), [](Diagnostic &) { return success(); });
  const DictionaryAttr attributes = module->getAttrDictionary();
  const std::string bounded = std::exchange(bound.getValue(), "false");
  auto plan = [&](const ByteSize &asked) {
    OwningOpRef<ModuleOp> given = module.clone();
    if (succeeded(fitTo(asked)))
      decided[*budgetBytes] = readDecisions(module);
    const std::optional<RefusedBudget> refused = getRefusedBudget(module);
    restore(*given);
    module->setAttrs(attributes);
    return refused;
  };
  // One byte is refused, and the refusal says what can be had.
  if (const std::optional<RefusedBudget> refused = plan({1, -1}))
    for (unsigned rung = 0; rung < numRungs; ++rung)
      plan({refused->smallestBytes + (refused->largestBytes - std::min(refused->smallestBytes, refused->largestBytes)) *
                                         rung / (numRungs - 1),
            -1});
  bound = bounded;
  return decided;
}

LogicalResult TrainRematerialize::fitAll() {
  countsWholeStaging = false;
  for (uint64_t reserve = 0;;) {
    OwningOpRef<ModuleOp> given = getOperation().clone();
    totals = {};
    FailureOr<uint64_t> beyond = fitModule(reserve);
    if (failed(beyond)) {
      setFailure(getOperation(), FailureKind::Budget);
      return failure();
    }
    if (!*beyond && !std::exchange(isStagingWhole, false))
      return success();
    countsWholeStaging |= !*beyond;
    reserve += *beyond;
    restore(*given);
  }
}

void TrainRematerialize::shareStaging(MutableArrayRef<PosedEntry> entries, uint64_t transientBytes) {
  const EntryStaging staging = EntryStaging::of(entries);
  const bool isWhole = countsWholeStaging && llvm::all_of(entries, [&](PosedEntry &entry) {
                         return staging.most <= transientBytes && entry.packsInto(transientBytes - staging.most);
                       });
  for (PosedEntry &entry : entries) {
    entry.leastStagingBytes = isWhole ? staging.most : staging.least;
    entry.stagingBytes = staging.most;
    // Given up where not all entries leave room for what they pass through.
    if (countsWholeStaging && !isWhole)
      entry.offloads.clear();
  }
}

void TrainRematerialize::restore(ModuleOp given) {
  getAnalysis<StepFacts>().clear();
  getOperation().getBodyRegion().takeBody(given.getBodyRegion());
}

TrainRematerialize::Trial TrainRematerialize::tryPlaces(ModuleOp given, const TensorPlaces &places,
                                                        const std::optional<Trial> &best) {
  ScopedDiagnosticHandler silence(&getContext(), [](Diagnostic &) { return success(); });
  const DictionaryAttr attributes = getOperation()->getAttrDictionary();
  OwningOpRef<ModuleOp> moved = given.clone();
  moveElsewhere(*moved, places);
  restore(*moved);
  Trial trial{rooms, places};
  isTrial = true;
  secondsToBeat = best ? best->seconds.value_or(INFINITY) : INFINITY;
  if (succeeded(fitAll())) {
    trial.seconds = totals.seconds;
    trial.isPlain = totals.extraSeconds <= 0 && places.sums.empty();
    if (!places.spaces.empty())
      if (FailureOr<TensorNames> room = findRoomOnDevice(totals.entries, getAnalysis<StepFacts>().getTable(), places);
          succeeded(room))
        trial.onDevice = *room;
  } else if (std::optional<RefusedBudget> refused = getRefusedBudget(getOperation())) {
    trial.leastBytes = refused->smallestBytes;
  }
  isTrial = false;
  secondsToBeat = INFINITY;
  getOperation()->setAttrs(attributes);
  return trial;
}

/// Whether loading what lies elsewhere takes most of the time.
bool TrainRematerialize::isHeldByLanes(const Trial &trial, const PlaceChoices &choices) {
  return trial.seconds && 2 * choices.countLeastSeconds(trial.places) >= *trial.seconds;
}

std::optional<TrainRematerialize::Trial> TrainRematerialize::tryAll(ModuleOp given, ArrayRef<OffloadRoom> tensorRooms,
                                                                    const std::optional<Trial> &known) {
  const PlaceChoices choices(given, tensorRooms);
  std::optional<Trial> best = search(given, choices, choices.list(), known);
  if (best && best->isPlain)
    return best;
  // On their own, so that no plan without them is missed.
  std::optional<Trial> sums = search(given, choices, choices.listWithSums(), best ? best : known);
  return sums && (!best || sums->isBetterThan(*best)) ? sums : best;
}

std::optional<TrainRematerialize::Trial> TrainRematerialize::search(ModuleOp given, const PlaceChoices &choices,
                                                                    ArrayRef<TensorPlaces> places,
                                                                    const std::optional<Trial> &known) {
  std::optional<Trial> best;
  for (const TensorPlaces &tried : places) {
    if (best && best->isPlain)
      return best;
    if (known && known->seconds && choices.countLeastSeconds(tried) >= *known->seconds)
      continue;
    if (Trial trial = tryPlaces(given, tried, best); !best || trial.isBetterThan(*best))
      best = std::move(trial);
  }
  if (!best)
    return best;
  auto tryInstead = [&](const TensorPlaces &places) {
    Trial other = tryPlaces(given, places, best);
    const bool isTaken = !best->isBetterThan(other);
    if (isTaken)
      best = std::move(other);
    return isTaken;
  };
  // What finds room on the device goes back there, as long as that takes no more time.
  auto giveBack = [&] {
    for (unsigned tries = 2; tries && !best->onDevice.empty(); --tries) {
      TensorPlaces fewer = best->places;
      fewer.spaces.remove_if([&](const auto &place) { return best->onDevice.contains(place.first); });
      if (!tryInstead(fewer))
        break;
    }
  };
  giveBack();
  // Lanes that take most of the time: with a part of the bytes elsewhere, more may run again, and less is moved.
  const TensorPlaces whole = best->places;
  double part = 1;
  for (double step = 0.5; step >= 0.125 && isHeldByLanes(*best, choices); step /= 2)
    if (tryInstead(choices.limit(whole, part - step)))
      part -= step;
  if (part < 1)
    giveBack();
  return best;
}

void TrainRematerialize::choosePlaces() {
  if (rooms.size() == 1 && listLastingTensors(getOperation()).empty() && listCarriedSums(getOperation()).empty())
    return;
  if (rooms.size() == 2 && !rooms.front().isAsFastAs(rooms.back()))
    std::swap(rooms.front(), rooms.back());
  // What has place for everything leaves nothing to a slower one.
  if (rooms.size() == 2 && rooms.front().isAsFastAs(rooms.back()) && rooms.front().holdsEverything(getOperation()))
    rooms.pop_back();
  OwningOpRef<ModuleOp> given = getOperation().clone();
  const SmallVector<OffloadRoom, 2> all = rooms;
  // The faster memory alone comes first: without parameters and state in the other one.
  std::optional<Trial> best = tryAll(*given, all.front(), std::nullopt);
  auto tryMore = [&](ArrayRef<OffloadRoom> tensorRooms) {
    if (best->isPlain)
      return;
    if (std::optional<Trial> trial = tryAll(*given, tensorRooms, best); trial && trial->isBetterThan(*best))
      best = std::move(trial);
  };
  if (all.size() == 2) {
    tryMore(all);
    tryMore(all.back());
    rooms = {all.back(), all.front()};
    tryMore(all);
    tryMore(all.back());
  }
  rooms = best->rooms;
  moveElsewhere(*given, best->places);
  restore(*given);
}

std::optional<solve::FittedSchedule> TrainRematerialize::choose(PosedEntry &entry, uint64_t transientBytes) {
  const solve::StepGraph &graph = entry.problem.getGraph();
  const solve::FittedSchedule &largest = entry.solved->front.getLargest();
  if (largest.timeline.peakBytes <= transientBytes)
    return largest;
  return solve::Baselines(graph, largest.schedule)
      .find(*solve::parseStrategy(rematStrategy.getValue()), transientBytes);
}

std::optional<solve::PackedPlan> TrainRematerialize::findPlan(PosedEntry &entry, uint64_t transientBytes,
                                                              double mostSeconds) {
  if (rematStrategy == "fit") {
    if (!roomsLeft.empty())
      return chooseOffload(entry, *solved, transientBytes, mostSeconds);
    const solve::PackedPlan *found = entry.solved->plans.find(transientBytes);
    return found ? std::optional(*found) : std::nullopt;
  }
  // A packing may need more than the bytes alive: then ask for less.
  for (uint64_t ask = transientBytes;;) {
    std::optional<solve::FittedSchedule> plan = choose(entry, ask);
    if (!plan)
      return std::nullopt;
    solve::PackedPlan packed = solve::packPlan(entry.problem.getGraph(), *plan, getPlanPacking());
    if (packed.arenaBytes <= transientBytes)
      return packed;
    ask = plan->timeline.peakBytes - 1;
  }
}

FailureOr<uint64_t> TrainRematerialize::fitEntry(PosedEntry &entry, const MemoryProfile &unfitted,
                                                 solve::PackedPlan packed, const BudgetRoom &room, FactsTable &facts) {
  const solve::FittedSchedule &chosen = packed.plan;
  // Without copies: what the step takes where everything stays on the device.
  solve::FittedSchedule before = entry.solved->front.getLargest();
  before.timeline.seconds = solve::countComputeSeconds(entry.problem.getGraph(), before);
  // What a report draws next to the fitted step.
  if (chosen.timeline.peakBytes < unfitted.getPeakBytes())
    entry.step->setAttr(beforeBudgetAttrName, unfitted.sampleLive(&getContext()));
  entry.apply(chosen, facts);
  // The exact count, once more, on what was made.
  FailureOr<MemoryProfile> profile = MemoryProfile::compute(entry.step, facts, room.statics);
  if (failed(profile))
    return failure();
  const solve::StepGraph &graph = entry.problem.getGraph();
  if (!solve::areSameProblem(profile->getBuffers(), solve::listBuffers(graph, chosen), planAlignment))
    packed.arenaBytes = solve::packOnce(profile->getBuffers(), getPlanPacking()).arenaBytes;
  const uint64_t stagingBytes = std::max(entry.leastStagingBytes, countStagingBytes(target, findMoves(entry.step)));
  totals.arenaBytes = std::max(totals.arenaBytes, packed.arenaBytes);
  totals.stagingBytes = std::max(totals.stagingBytes, stagingBytes);
  packed.arenaBytes += stagingBytes;
  if (packed.arenaBytes > room.transientBytes)
    return packed.arenaBytes - room.transientBytes;
  totals.seconds += chosen.timeline.seconds;
  totals.extraSeconds += std::max(chosen.timeline.seconds - before.timeline.seconds, 0.0);
  totals.recomputed += chosen.timeline.recomputed - chosen.timeline.loaded;
  totals.loaded += chosen.timeline.loaded;
  totals.entries.push_back({entry.step, room.transientBytes - packed.arenaBytes});
  const bool isBounded = isOn(bound) && !isTrial;
  if (!roomsLeft.empty()) {
    const solve::LaneTimes lanes = solve::simulateLanes(graph, chosen);
    const solve::LaneTraffic traffic = lanes.sum();
    StepEstimate estimate{chosen.timeline.seconds, room.statics.sum() + packed.arenaBytes};
    for (auto [all, left, waiting] : llvm::zip_equal(rooms, roomsLeft, lanes.memories))
      (all.memory.space == Space::File ? estimate.fileBytes : estimate.pinnedBytes) =
          all.bytes - left.bytes + waiting.roomBytes;
    estimate.recomputed = chosen.timeline.recomputed - chosen.timeline.loaded;
    estimate.loadedBytes = traffic.loadedBytes;
    estimate.storedBytes = traffic.storedBytes;
    if (isBounded)
      estimate.leastSeconds = remarkLaneBound(entry, chosen, room.getUsableBytes(), room.sum());
    estimate.set(entry.step);
  }
  {
    InFlightDiagnostic remark = entry.step.emitRemark("@")
                                << entry.step.getSymName() << ": " << compareFigures(before, chosen);
    if (uint64_t saved = unfitted.getSavedBytes())
      remark << "; saved activations " << formatBytes(saved) << " → " << formatBytes(profile->getSavedBytes());
    noteMoves(remark, entry, chosen, room.transientBytes - stagingBytes);
    noteLoops(remark, entry.problem, before, chosen);
  }
  if (isBounded && roomsLeft.empty())
    remarkBound(entry, chosen, room.getUsableBytes(), room.sum());
  return 0;
}

FailureOr<uint64_t> TrainRematerialize::fitModule(uint64_t reserve) {
  if ((rematStrategy == "lp-rounding" || isOn(bound)) && !solve::hasLinearSolver())
    return getOperation().emitError("there is no solver for linear programs; 'tools/dev setup' brings HiGHS");
  auto steps = llvm::to_vector(getOperation().getOps<func::FuncOp>());
  FailureOr<PlanLayout> layout = PlanLayout::compute(steps, target);
  auto &facts = getAnalysis<StepFacts>();
  if (failed(layout) || failed(facts.update(target)))
    return failure();
  const StaticBytes statics = layout->getStaticBytes();
  CostModel costs = CostModel::get(target);
  roomsLeft = rooms;
  for (OffloadRoom &room : roomsLeft) {
    const uint64_t bound = layout->getBoundBytes(room.memory.space) +
                           countCarriedBytes(getOperation(), room.memory.space, room.memory.lanes.alignment);
    if (bound > room.bytes)
      return getOperation().emitError("parameters, optimizer state and sums of loops take ")
             << formatBytes(bound) << " of " << formatBytes(room.bytes) << " in space "
             << getSpaceName(room.memory.space);
    room.bytes -= bound;
    costs.memories.push_back(room.memory);
  }
  // Where no trial is known, those that fail are compared by what they lack.
  const bool wantsFigures = isTrial ? secondsToBeat == INFINITY : isRefusalRead;
  uint64_t largest = 0, snapshotBytes = 0;
  std::vector<PosedEntry> entries;
  std::vector<MemoryProfile> unfitted;
  for (func::FuncOp step : steps) {
    FailureOr<StepProblem> problem = StepProblem::pose(step, facts.getTable(), costs);
    if (failed(problem))
      return failure();
    entries.push_back({step, std::move(*problem), nullptr});
    // Known before anything is searched; a part of what the step takes is not, and what waits elsewhere is not counted.
    if (!wantsFigures && rooms.empty() && budget.fraction < 0 &&
        statics.sum() + solve::findLowerBound(entries.back().problem.getGraph()).bytes > budget.bytes)
      return step.emitError("cannot fit ") << formatBytes(budget.bytes);
  }
  double leastSeconds = 0;
  for (PosedEntry &entry : entries) {
    entry.solved = &solved->get(entry.problem.getGraph());
    if (!entry.solved->front.isValid())
      return entry.step.emitError("its order is not valid: run train-order first");
    leastSeconds += solve::boundLaneSeconds(entry.solved->graph, entry.solved->front.getLargest());
  }
  // Sums are exact but for a few bits.
  const double mostSeconds = secondsToBeat * (1 + 1e-9);
  if (leastSeconds > mostSeconds)
    return failure();
  for (PosedEntry &entry : entries) {
    for (const OtherMemory &memory : costs.memories)
      entry.spaces.push_back(memory.space);
    if (!rooms.empty() && rematStrategy == "fit")
      poseOffloads(entry, target, roomsLeft, *solved);
    // Results that are copies of others, or of arguments, are made after all instructions.
    FailureOr<MemoryProfile> profile = MemoryProfile::compute(entry.step, facts.getTable(), statics);
    if (failed(profile))
      return failure();
    largest = std::max({largest, entry.solved->front.getLargest().timeline.peakBytes, profile->getPeakBytes()});
    // No instruction makes them, so that no schedule counts them.
    snapshotBytes = std::max(snapshotBytes, profile->getSnapshotBytes());
    unfitted.push_back(std::move(*profile));
  }
  // A part is of what the step takes with its state on the device, addresses and all: the whole of it is enough.
  if (!budgetBytes && budget.fraction >= 0)
    for (PosedEntry &entry : entries)
      largest = std::max(largest, entry.solved->plans.get(entry.solved->front.getLargest()).arenaBytes);
  if (!budgetBytes)
    budgetBytes = budget.resolve(statics.sum() + largest);
  const uint64_t bytes = *budgetBytes;
  Builder builder(&getContext());
  for (const OffloadRoom &room : rooms)
    getOperation()->setAttr(OffloadRoom::getBudgetAttrName(room.memory.space),
                            builder.getI64IntegerAttr(int64_t(room.bytes)));
  if (bytes < statics.sum() && !wantsFigures)
    return getOperation().emitError("cannot fit ") << formatBytes(bytes);
  if (bytes < statics.sum()) {
    if (!rooms.empty())
      shareStaging(entries, 0);
    EntryStaging::setSmallest(entries);
    return refuseStatics(getOperation(), entries, bytes, statics, reserve + snapshotBytes, budget.fraction >= 0);
  }
  getOperation()->setAttr(deviceBudgetAttrName, builder.getI64IntegerAttr(int64_t(bytes)));
  const BudgetRoom room{bytes - statics.sum(), statics, reserve + snapshotBytes, budget.fraction >= 0};
  if (!rooms.empty())
    shareStaging(entries, room.getUsableBytes());
  std::vector<solve::PackedPlan> plans;
  SmallVector<PosedEntry *> refused;
  for (PosedEntry &entry : entries) {
    // Of the time to beat the others take what their plans do, or at least what is known without one.
    const double own = solve::boundLaneSeconds(entry.solved->graph, entry.solved->front.getLargest());
    if (std::optional<solve::PackedPlan> plan =
            findPlan(entry, room.getUsableBytes(), mostSeconds - (leastSeconds - own))) {
      leastSeconds += plan->plan.timeline.seconds - own;
      plans.push_back(std::move(*plan));
    } else {
      refused.push_back(&entry);
    }
  }
  if (!refused.empty() && !wantsFigures) {
    // Who asks for other batches goes by what is known without packing, and without another memory.
    RefusedBudget lacks{bytes};
    for (PosedEntry *entry : refused)
      lacks.smallestBytes =
          std::max(lacks.smallestBytes, statics.sum() + entry->solved->front.getSmallest().timeline.peakBytes);
    if (rooms.empty())
      setRefusedBudget(getOperation(), lacks);
    return refused.front()->step.emitError("cannot fit ") << formatBytes(bytes);
  }
  if (!refused.empty()) {
    EntryStaging::setSmallest(entries);
    // What helps the entry that needs the most helps all.
    PosedEntry &most = **llvm::max_element(
        refused, [](PosedEntry *a, PosedEntry *b) { return a->getSmallestBytes() < b->getSmallestBytes(); });
    return refuseBudget(most, room, rematStrategy, facts.getTable());
  }
  uint64_t most = 0;
  for (auto [entry, profile, plan] : llvm::zip_equal(entries, unfitted, plans)) {
    FailureOr<uint64_t> beyond = fitEntry(entry, profile, std::move(plan), room, facts.getTable());
    if (failed(beyond))
      return failure();
    most = std::max(most, *beyond);
    // Less than nothing cannot be asked of the instructions.
    if (*beyond && !room.getUsableBytes()) {
      EntryStaging::setSmallest(entries);
      return refuseBudget(entry, {room.transientBytes, statics, room.transientBytes + *beyond, room.isPart},
                          rematStrategy, facts.getTable());
    }
  }
  // One has less to pass through, another a smaller arena: then what all pass through counts for each.
  const uint64_t together = totals.arenaBytes + totals.stagingBytes;
  if (together > room.transientBytes && countsWholeStaging)
    most = std::max(most, together - room.transientBytes);
  else if (together > room.transientBytes && !most)
    isStagingWhole = true;
  return most;
}
