//===- PackedPlans.h - schedules whose arenas fit a budget ------*- C++ -*-===//
//
// A front's schedules by what they take with addresses, not only by bytes
// alive.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Portfolio/LoopFit.h"

#include <map>
#include <optional>

namespace lowtide::solve {

/// A schedule and the arena that its buffers take at most when they are packed.
struct PackedPlan {
  FittedSchedule plan;
  uint64_t arenaBytes = 0;
  /// The most bytes alive at once: no arena of this schedule is smaller.
  uint64_t boundBytes = 0;
  /// Whether operations were moved.
  bool isReordered = false;

  bool isNear() const { return isNearBound(arenaBytes, boundBytes); }
};

/// Packs the buffers of `plan`. Where the arena is not near the bytes alive (Packing::isNear), operations are moved
/// until it is, as far as that is found: the plan then has the same operations in another order, no larger peak and
/// the same time. `arenaBytes` is what `pack` takes with these options at most. Draws 16 orders, and up to `mostOrders`
/// while no arena is within a hundredth of the bytes alive.
PackedPlan packPlan(const StepGraph &graph, const FittedSchedule &plan, const PackingOptions &options,
                    unsigned mostOrders = 16);

/// Arenas of one step's schedules, each packed once.
class PackedPlans {
public:
  PackedPlans(const StepGraph &graph, LoopFront &front, const PackingOptions &options)
      : graph(graph), front(front), options(options) {}

  /// The schedule's packing; where it is not near the bytes alive and things run again, that of another schedule that
  /// is, with no larger an arena and at most a fiftieth more time, if one is found.
  const PackedPlan &get(const FittedSchedule &plan);
  /// The one with the smallest arena that was found.
  const PackedPlan &getSmallest();
  /// Schedules that it may be a packing of, not packed: from the most bytes alive to the fewest.
  std::vector<const FittedSchedule *> listSmall();
  /// Whether the smallest arena that getSmallest finds has at most that many bytes; it is looked for only where little
  /// effort does not tell.
  bool packsInto(uint64_t bytes);
  /// The cheapest whose arena is within `budgetBytes`: a packing may need more than the bytes alive, then the front is
  /// asked for less. Null if there is none. More bytes never cost time.
  const PackedPlan *find(uint64_t budgetBytes);

private:
  /// The next schedule with fewer bytes alive that packs with little effort, if it takes at most `mostSeconds`.
  std::optional<PackedPlan> findNextThatPacks(const FittedSchedule &plan, double mostSeconds);
  /// Bytes alive, up to which a schedule may be the one with the smallest arena.
  uint64_t getReach();

  const StepGraph &graph;
  LoopFront &front;
  const PackingOptions options;
  std::map<const FittedSchedule *, PackedPlan> plans;
  const PackedPlan *smallest = nullptr;
  /// What it points to where that took more effort than the plan among the others.
  std::optional<PackedPlan> smallestInFull;
};

} // namespace lowtide::solve
