//===- Offload.cpp - values of a step in another memory -------------------===//
//
// Every price of a load has its own schedules (Solve/Offload); of those that fit, and of what published strategies
// store, with their loads moved up, the one whose lanes take the least time is taken, and none where recomputation
// alone is faster.
//
//===----------------------------------------------------------------------===//
#include "Offload.h"
#include "LastingTensors.h"
#include "PlanLayout.h"
#include "lowtide/Analysis/ByteSize.h"
#include "lowtide/RuntimeQuery/ExchangeArenas.h"
#include "lowtide/Support/Failure.h"

#include <cmath>

using namespace mlir;
using namespace lowtide;

FailureOr<SmallVector<OffloadRoom, 2>> OffloadRoom::list(ModuleOp module, const TargetInfo &target,
                                                         StringRef hostBudget, StringRef diskBudget) {
  SmallVector<OffloadRoom, 2> rooms;
  if (!target.isGpu() && !hostBudget.empty()) {
    setFailure(module, FailureKind::Usage);
    return module.emitError(
        "host-budget: on a CPU the device's memory is the host's; values wait in a file: give --disk-budget");
  }
  for (auto [text, space, name] :
       {std::tuple(hostBudget, Space::HostPinned, "host"), std::tuple(diskBudget, Space::File, "file")})
    if (!text.empty()) {
      llvm::Expected<uint64_t> bytes = parseByteCount(text);
      // The option's check takes a list, too.
      if (!bytes) {
        setFailure(module, FailureKind::Usage);
        return module.emitError() << (space == Space::File ? "disk-budget: " : "host-budget: ")
                                  << llvm::toString(bytes.takeError());
      }
      rooms.push_back(
          {{space, {getLane(target, "device", name), getLane(target, name, "device"), getAlignment(space)}}, *bytes});
    }
  return rooms;
}

StringRef OffloadRoom::getBudgetAttrName(Space space) {
  return space == Space::File ? "train.disk_budget" : "train.host_budget";
}

bool OffloadRoom::isAsFastAs(const OffloadRoom &other) const {
  auto isFast = [](const solve::Lane &a, const solve::Lane &b) {
    return a.latencySeconds <= b.latencySeconds && a.bytesPerSecond >= b.bytesPerSecond;
  };
  const solve::MemoryLanes &mine = memory.lanes, &theirs = other.memory.lanes;
  return isFast(mine.away, theirs.away) && isFast(mine.back, theirs.back);
}

bool OffloadRoom::holdsEverything(ModuleOp module) const {
  const uint64_t alignment = getAlignment(memory.space);
  uint64_t lasting = 0, waiting = 0;
  for (const LastingTensor &tensor : listLastingTensors(module))
    lasting += solve::alignTo(tensor.bytes, alignment);
  for (auto step : module.getOps<func::FuncOp>()) {
    uint64_t made = 0;
    for (Operation &op : step.getBody().front())
      for (Value result : op.getResults())
        made += StepStorage::isView(&op) ? 0 : solve::alignTo(getTensorBytes(result.getType()).value_or(0), alignment);
    waiting = std::max(waiting, made);
  }
  return lasting <= bytes && waiting <= bytes - lasting;
}

std::optional<StepEstimate> StepEstimate::get(func::FuncOp step) {
  auto figures = step->getAttrOfType<DictionaryAttr>(estimateAttrName);
  auto seconds = figures ? figures.getAs<FloatAttr>("seconds") : FloatAttr();
  if (!seconds)
    return std::nullopt;
  auto getNumber = [&](StringRef name) {
    auto number = figures.getAs<IntegerAttr>(name);
    return number ? uint64_t(number.getInt()) : 0;
  };
  auto least = figures.getAs<FloatAttr>("least_seconds");
  return StepEstimate{seconds.getValueAsDouble(), getNumber("device_bytes"),           getNumber("pinned_bytes"),
                      getNumber("file_bytes"),    unsigned(getNumber("recomputed")),   getNumber("loaded_bytes"),
                      getNumber("stored_bytes"),  least ? least.getValueAsDouble() : 0};
}

void StepEstimate::set(func::FuncOp step) const {
  Builder b(step.getContext());
  auto number = [&](StringRef name, uint64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(int64_t(value)));
  };
  SmallVector<NamedAttribute> figures{b.getNamedAttr("seconds", b.getF64FloatAttr(seconds)),
                                      number("device_bytes", deviceBytes),
                                      number("pinned_bytes", pinnedBytes),
                                      number("file_bytes", fileBytes),
                                      number("recomputed", recomputed),
                                      number("loaded_bytes", loadedBytes),
                                      number("stored_bytes", storedBytes)};
  if (leastSeconds > 0)
    figures.push_back(b.getNamedAttr("least_seconds", b.getF64FloatAttr(leastSeconds)));
  step->setAttr(estimateAttrName, b.getDictionaryAttr(figures));
}

LargestMoves lowtide::findMoves(func::FuncOp step) {
  LargestMoves found;
  step.walk([&](Operation *op) {
    if (!StepStorage::isMove(op))
      return;
    for (Type type : {op->getOperand(0).getType(), op->getResult(0).getType()})
      if (const Space space = getSpace(type); space != Space::Device)
        found[space] = std::max(found[space], getTensorBytes(type).value_or(0));
  });
  return found;
}

uint64_t lowtide::countStagingBytes(const TargetInfo &target, const LargestMoves &moves) {
  auto file = moves.find(Space::File);
  return file == moves.end() || target.isGpu() ? 0 : getFileStaging(file->second).bytes;
}

/// The most that staging may take, whichever values wait in another memory.
static uint64_t countMostStaging(const PosedEntry &entry, const TargetInfo &target) {
  const solve::StepGraph &graph = entry.problem.getGraph();
  LargestMoves moves = findMoves(entry.step);
  for (const solve::StepOperation &load : graph.reruns)
    if (load.kind == solve::StepOperation::Kind::Loads) {
      uint64_t &largest = moves[entry.spaces[load.memory]];
      largest = std::max(largest, graph.values[load.writes.front()].bytes);
    }
  return countStagingBytes(target, moves);
}

void lowtide::poseOffloads(PosedEntry &entry, const TargetInfo &target, ArrayRef<OffloadRoom> rooms,
                           solve::SolvedSteps &solved) {
  for (const OffloadRoom &room : rooms)
    entry.waitingBytes.push_back(room.bytes);
  entry.leastStagingBytes = countStagingBytes(target, findMoves(entry.step));
  entry.stagingBytes = countMostStaging(entry, target);
  for (const solve::StepGraph &graph : solve::listOffloadGraphs(entry.problem.getGraph()))
    entry.offloads.push_back(&solved.get(graph));
  entry.baselines = std::make_shared<solve::OffloadBaselines>(entry.problem.getGraph(),
                                                              entry.solved->front.getLargest(), getPlanPacking());
}

/// What all values take that can wait in the first memory.
static uint64_t countMostRoom(const solve::StepGraph &graph) {
  uint64_t bytes = 0;
  for (const solve::StepOperation &load : graph.reruns)
    if (load.kind == solve::StepOperation::Kind::Loads && !load.memory)
      bytes += solve::alignTo(graph.values[load.writes.front()].bytes, graph.memories.front().alignment);
  return bytes;
}

namespace {

/// A plan that takes more of the first memory than there is.
struct TooFar {
  const solve::SolvedStep *step = nullptr;
  const solve::FittedSchedule *plan = nullptr;
  /// What it takes of that memory, and its time with all of it.
  uint64_t neededBytes = 0;
  double seconds = std::numeric_limits<double>::infinity();

  /// Steps that load less from it: by parts of what the plan would take, so that more room never leaves fewer parts to
  /// choose from.
  std::vector<solve::StepGraph> restrict(const PosedEntry &entry) const {
    constexpr unsigned mostParts = 2;
    std::vector<solve::StepGraph> graphs;
    for (unsigned part = parts - 1; part && graphs.size() < mostParts; --part)
      if (const uint64_t bytes = neededBytes / parts * part; bytes <= entry.waitingBytes.front())
        graphs.push_back(solve::restrictLoads(entry.problem.getGraph(), step->graph, *plan, bytes));
    return graphs;
  }
  /// The step that loads the rest from the second memory: of what the plan would take of the first, the largest part
  /// for which there is room stays there.
  solve::StepGraph spread(const PosedEntry &entry) const {
    uint64_t bytes = neededBytes;
    while (bytes > entry.waitingBytes.front())
      bytes -= std::max<uint64_t>(bytes / parts, 1);
    return solve::spreadLoads(step->graph, *plan, bytes);
  }

private:
  static constexpr unsigned parts = 8;
};

} // namespace

std::optional<solve::PackedPlan> lowtide::chooseOffload(PosedEntry &entry, solve::SolvedSteps &solved,
                                                        uint64_t transientBytes, double mostSeconds) {
  std::optional<solve::PackedPlan> plan;
  auto getSeconds = [&] { return plan ? std::min(plan->plan.timeline.seconds, mostSeconds) : mostSeconds; };
  auto take = [&](solve::SolvedStep &step, uint64_t budget) {
    if (std::optional<solve::PackedPlan> faster =
            solve::findFastestLanes(step, budget, entry.waitingBytes, getPlanPacking(), getSeconds()))
      plan = std::move(faster);
  };
  if (const uint64_t least = entry.leastStagingBytes; least <= transientBytes) {
    // What lies in the other memory from step to step is moved in any case: its lanes choose, too. An entry that moves
    // nothing leaves room for what copies of the others pass through.
    if (!findMoves(entry.step).empty())
      take(*entry.solved, transientBytes - least);
    else if (const solve::PackedPlan *found = entry.solved->plans.find(transientBytes - least))
      plan = *found;
  }
  if (transientBytes < entry.stagingBytes || entry.offloads.empty())
    return plan;
  const uint64_t budget = transientBytes - entry.stagingBytes;
  for (solve::SolvedStep *offload : entry.offloads)
    take(*offload, budget);
  auto tryRooms = [&](llvm::function_ref<const solve::FittedSchedule *(solve::SolvedStep &)> getPlan) {
    TooFar fastest;
    for (solve::SolvedStep *offload : entry.offloads) {
      // No plan takes more of the other memory than all that can wait.
      const solve::FittedSchedule *given =
          countMostRoom(offload->graph) > entry.waitingBytes.front() ? getPlan(*offload) : nullptr;
      if (!given)
        continue;
      const solve::LaneTimes times = solve::simulateLanes(offload->graph, *given, budget);
      const TooFar far{offload, given, times.memories.front().roomBytes, times.seconds};
      if (far.neededBytes <= entry.waitingBytes.front())
        continue;
      for (const solve::StepGraph &graph : far.restrict(entry))
        take(solved.get(graph), budget);
      if (far.seconds < fastest.seconds)
        fastest = far;
    }
    if (fastest.step && entry.waitingBytes.size() > 1)
      take(solved.get(fastest.spread(entry)), budget);
  };
  tryRooms([&](solve::SolvedStep &offload) {
    const solve::PackedPlan *found = offload.plans.find(budget);
    return found ? &found->plan : nullptr;
  });
  // The smallest plans leave the same to choose from at every budget: more of it never ends in a refusal.
  if (!plan || solve::isSmall(entry.problem.getGraph()))
    tryRooms([](solve::SolvedStep &offload) { return &offload.front.getSmallest(); });
  // A budget is refused only where the smallest plan that a refusal would name is larger.
  if (!plan && std::isinf(mostSeconds))
    if (std::optional<solve::PackedPlan> smallest = entry.findSmallestElsewhere();
        smallest && smallest->arenaBytes <= budget)
      plan = std::move(smallest);
  // Never slower than what others do.
  for (auto strategy : {solve::OffloadStrategy::StoreAll, solve::OffloadStrategy::StoreLargest,
                        solve::OffloadStrategy::StoreLayers, solve::OffloadStrategy::StoreFractions})
    if (std::optional<solve::PackedPlan> faster =
            entry.baselines->find(strategy, budget, entry.waitingBytes, getSeconds()))
      plan = std::move(faster);
  return plan;
}
