//===- ExchangeSearch.h - other recomputations for some ---------*- C++ -*-===//
//
// Looks around one schedule, where a search from the beginning has found all
// that it will.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Timeline.h"

namespace lowtide::solve {

/// Some recomputations of `start` are taken out, and others put in until it fits again, `rounds` times: the cheapest
/// schedule on the way. `start` fits; the same `seed` finds the same.
FittedSchedule exchangeRecomputations(const StepGraph &graph, uint64_t budgetBytes, const FittedSchedule &start,
                                      unsigned rounds, uint64_t seed);

/// The schedule within fewer bytes than it takes, whatever the time: the cheapest of so many tries, nothing if none
/// fits.
std::optional<FittedSchedule> squeezeSchedule(const StepGraph &graph, uint64_t budgetBytes, const FittedSchedule &start,
                                              unsigned tries, uint64_t seed);

} // namespace lowtide::solve
