//===- Policies.h - policies of eviction by name ----------------*- C++ -*-===//
//
// One run of eviction costs little, so that many policies and prices are tried.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Searches/Eviction.h"

namespace lowtide::solve {

struct NamedPolicy {
  const char *name;
  EvictionPolicy policy;
};

/// Runs the policy and takes out what is not needed; nothing if it does not get through.
std::optional<FittedSchedule> tryPolicy(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                        const NamedPolicy &candidate);

/// Per value, the seconds that the schedule spends on recomputing it.
std::vector<double> listRecomputedSeconds(const StepGraph &graph, const Schedule &schedule);
/// Per value, whether the schedule recomputes it.
std::vector<char> listRecomputed(const StepGraph &graph, const Schedule &schedule);

} // namespace lowtide::solve
