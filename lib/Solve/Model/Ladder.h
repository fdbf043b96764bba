//===- Ladder.h - budgets from the smallest to the largest peak -*- C++ -*-===//
//
// The rungs at which a search is made anew, and the plans that are worth their
// bytes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

#include <algorithm>

namespace lowtide::solve {

/// Rung `level` of `levels` equal steps from `low` to `high`; `high` from the last one on.
inline uint64_t getRung(uint64_t low, uint64_t high, unsigned level, unsigned levels) {
  return level >= levels ? high : low + uint64_t(double(high - low) * level / levels);
}

/// By peak, without plans that take no less time than one with a smaller peak.
inline std::vector<const FittedSchedule *> keepUseful(std::vector<const FittedSchedule *> plans) {
  std::sort(plans.begin(), plans.end(), [](const FittedSchedule *a, const FittedSchedule *b) {
    return std::pair(a->timeline.peakBytes, a->timeline.seconds) <
           std::pair(b->timeline.peakBytes, b->timeline.seconds);
  });
  std::vector<const FittedSchedule *> useful;
  for (const FittedSchedule *plan : plans)
    if (useful.empty() || plan->timeline.seconds < useful.back()->timeline.seconds)
      useful.push_back(plan);
  return useful;
}

} // namespace lowtide::solve
