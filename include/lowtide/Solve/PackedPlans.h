//===- PackedPlans.h - schedules whose arenas fit a budget ------*- C++ -*-===//
//
// A front's schedules by what they take with addresses, not only by bytes
// alive.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Fit.h"

#include <functional>
#include <map>

namespace lowtide::solve {

/// Arenas of one step's schedules, each packed once. Schedules must stay where they are.
class PackedPlans {
public:
  /// The cheapest schedule whose peak is within so many bytes; null: there is none.
  using Find = std::function<const FittedSchedule *(uint64_t budgetBytes)>;

  PackedPlans(const StepGraph &graph, const PackingOptions &options) : graph(graph), options(options) {}

  uint64_t getArenaBytes(const FittedSchedule &plan);
  /// The cheapest whose arena is within `budgetBytes`: a packing may need more than the bytes alive, then the front is
  /// asked for less. Null if there is none. More bytes never cost time.
  const FittedSchedule *find(uint64_t budgetBytes, const Find &front);

private:
  const StepGraph &graph;
  const PackingOptions options;
  std::map<const FittedSchedule *, uint64_t> arenas;
};

} // namespace lowtide::solve
