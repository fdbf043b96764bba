//===- PriceSearch.h - prices under which eviction does well ----*- C++ -*-===//
//
// Eviction follows prices of values. One run of it costs little, so that many prices are tried.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Eviction.h"

#include <random>

namespace lowtide::solve {

struct NamedPolicy {
  const char *name;
  EvictionPolicy policy;
};

/// Policies that know nothing of the step.
std::span<const NamedPolicy> listPolicies();

/// Runs the policy and takes out what is not needed; nothing if it does not get through.
std::optional<FittedSchedule> tryPolicy(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                        const NamedPolicy &candidate);

/// Per value, whether something makes it again in the schedule.
std::vector<char> listRemade(const StepGraph &graph, const Schedule &schedule);

/// Climbs from a plan's own prices: in each of `rounds`, some values that run again at a high cost in the last plan get
/// more expensive to evict and some that stay get cheaper; prices stay changed where the plan got no worse. Returns the
/// best plan that was seen, `start` if none is better. The same seed gives the same plan.
FittedSchedule climbPrices(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                           const FittedSchedule &start, unsigned rounds, uint64_t seed);

} // namespace lowtide::solve
