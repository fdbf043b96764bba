//===- Offload.h - values that wait in another memory -----------*- C++ -*-===//
//
// To the searches a load is a recomputation that reads nothing: what is evicted comes back by the way that its
// operation has, and every search trades both against each other. What a load takes depends on what the lanes have to
// do besides, which is known only of a whole schedule: the searches see prices, lanes are simulated.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Portfolio/SolvedSteps.h"

#include <span>

namespace lowtide::solve {

/// Adds loads to the graph for whatever is made in the transient arena and does not stay there to the end, from each of
/// its first `memories`. Nothing is loaded before a graph of `listOffloadGraphs` says so.
void addLoads(StepGraph &graph, uint32_t memories);

/// What passes the lanes of one memory.
struct LaneTraffic {
  uint64_t storedBytes = 0, loadedBytes = 0;
  uint32_t loads = 0;
  /// Room for what waits there.
  uint64_t roomBytes = 0;
};

/// What a schedule with loads takes on lanes that each do one thing after the other: operations, and the stores and the
/// loads of each memory.
struct LaneTimes {
  /// From the first instruction to the end of the last, and the part in which operations wait for copies.
  double seconds = 0, waitedSeconds = 0;
  /// In the order of the graph's memories.
  std::vector<LaneTraffic> memories = {};

  /// Of all memories together.
  LaneTraffic sum() const;
};

/// What the operations of a schedule take, without its copies.
double countComputeSeconds(const StepGraph &graph, const FittedSchedule &plan);

/// Runs a valid schedule with its lanes. A store begins when its value is there; a load when the operation before it
/// has ended (only then are its bytes free) and its store; an operation when what it reads is there and, where it
/// writes over stored bytes, when they have left. Both wait until the bytes alive and what running stores still read
/// are at most `deviceBytes`.
LaneTimes simulateLanes(const StepGraph &graph, const FittedSchedule &plan, uint64_t deviceBytes = UINT64_MAX);
/// Whether what waits has room: `roomBytes` of each memory, in the order of the graph's. Where rooms are fewer, the
/// rest has none.
bool fitsRooms(const StepGraph &graph, const FittedSchedule &plan, std::span<const uint64_t> roomBytes);

/// The step with loads from the first memory for some of its operations in place of what runs again, for different
/// prices of a load: from where copies pass unseen to where all wait for them. Their schedules have the numbers of
/// `graph`.
std::vector<StepGraph> listOffloadGraphs(const StepGraph &graph);
/// One of those without the loads that save the least time for their bytes, of those that `plan` has: what is left is
/// stored in at most `roomBytes`.
StepGraph restrictLoads(const StepGraph &given, const StepGraph &offload, const FittedSchedule &plan,
                        uint64_t roomBytes);
/// One of those with loads from the second memory for all but what `plan` loads after the shortest time: that takes at
/// most `roomBytes` of the first.
StepGraph spreadLoads(const StepGraph &offload, const FittedSchedule &plan, uint64_t roomBytes);

/// `packed`, a plan of one of those, where what waits has room. Otherwise the same with part of its loads from the
/// second memory, as `spreadLoads` parts them: the same arena. Nothing where that has no room either. Its time is that
/// of lanes in that arena.
std::optional<PackedPlan> fitIntoRooms(const StepGraph &offload, const PackedPlan &packed,
                                       std::span<const uint64_t> roomBytes);

/// No plan with the operations, loads and stores of `plan` takes less time, in whatever order loads stand.
double boundLaneSeconds(const StepGraph &graph, const FittedSchedule &plan);

/// `plan` and, where that takes less time, its loads prefetched: moved up, so that they pass while other operations
/// run, as far as the bytes alive stay within a few parts more than its own peak. Which parts depends on the plan
/// alone, so that more budget never costs time. Times are those of lanes; the fastest comes first, and none has a peak
/// over `budgetBytes`.
std::vector<FittedSchedule> listPrefetched(const StepGraph &graph, const FittedSchedule &plan, uint64_t budgetBytes);

/// The fastest of those that takes less than `mostSeconds` and whose buffers `pack` puts into `budgetBytes`; nothing if
/// there is none.
std::optional<PackedPlan> findPrefetched(const StepGraph &graph, const FittedSchedule &plan, uint64_t budgetBytes,
                                         const PackingOptions &options, double mostSeconds);

/// Of a step's plans within the budget that need no more than `roomBytes` of each other memory the one whose lanes take
/// the least time, loads moved up; nothing if none takes less than `mostSeconds`. More bytes of any never cost time.
std::optional<PackedPlan> findFastestLanes(SolvedStep &step, uint64_t budgetBytes, std::span<const uint64_t> roomBytes,
                                           const PackingOptions &options, double mostSeconds);

} // namespace lowtide::solve
