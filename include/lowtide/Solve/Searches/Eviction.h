//===- Eviction.h - a schedule that stays under a budget --------*- C++ -*-===//
//
// Runs a step in a given order within a number of bytes: what does not fit is
// evicted and recomputed when it is needed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

namespace lowtide::solve {

/// Who is evicted first: the value with the least
///   seconds^cost / (bytes^size · instructions until it is needed^distance),
/// where `seconds` recomputes it with all that it needs and is not there.
struct EvictionPolicy {
  double cost = 1, size = 1, distance = 1;
  /// Per value, the logarithm of a factor on its price; empty: 0.
  std::vector<double> weights = {};
};

/// Runs `order` (every operation once, valid) within `budgetBytes` of transient
/// arena. Needs of the future are known, as are the needs of what was evicted.
/// Nothing if this policy finds no way. The schedule's exact peak is at most the
/// budget.
std::optional<Schedule> evictUnder(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                   const EvictionPolicy &policy);

/// Takes out recomputations while the peak stays within `budgetBytes`, most expensive
/// first, together with those that served nothing else. `timeline` is that of
/// the schedule, before and after.
void dropRecomputations(const StepGraph &graph, uint64_t budgetBytes, Schedule &schedule, Timeline &timeline);

/// The same for the recomputations and loads at `positions` of the schedule alone, in the order in which they are
/// given; what fits without one is found exactly. Each takes time by what changes without it and the logarithm of the
/// schedule's length.
void dropRecomputationsAt(const StepGraph &graph, uint64_t budgetBytes, std::span<const uint32_t> positions,
                          Schedule &schedule, Timeline &timeline);

} // namespace lowtide::solve
