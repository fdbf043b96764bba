//===- RematLocalSearch.h - local search around a plan ----------*- C++ -*-===//
//
// Changes one schedule a little, where a search from the beginning has found
// all that it will.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

namespace lowtide::solve {

struct LocalSearchOptions {
  unsigned rounds = 0;
  uint64_t seed = 0;
  /// Whether a value may stay in the room of another one that is recomputed from it, or be recomputed early, where few
  /// bytes are alive. Such plans are full for long, and where bytes are fewest addresses for them are rarely found.
  bool mayKeepSources = true;
};

/// Some recomputations of `start` are taken out, and others put in until it fits again, so many times: the cheapest
/// schedule on the way. `start` fits; the same options find the same.
FittedSchedule searchRematNearby(const StepGraph &graph, uint64_t budgetBytes, const FittedSchedule &start,
                                 const LocalSearchOptions &options);

/// The schedule within fewer bytes than it takes, whatever the time: the cheapest of so many tries, nothing if none
/// fits. No value takes the room of another.
std::optional<FittedSchedule> shrinkPeak(const StepGraph &graph, uint64_t budgetBytes, const FittedSchedule &start,
                                         unsigned tries, uint64_t seed);

} // namespace lowtide::solve
