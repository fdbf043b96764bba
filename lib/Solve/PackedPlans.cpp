//===- PackedPlans.cpp - schedules whose arenas fit a budget --------------===//
#include "lowtide/Solve/PackedPlans.h"

namespace lowtide::solve {

uint64_t PackedPlans::getArenaBytes(const FittedSchedule &plan) {
  auto [it, isNew] = arenas.try_emplace(&plan, 0);
  if (isNew)
    it->second = pack(listBuffers(graph, plan), options).arenaBytes;
  return it->second;
}

const FittedSchedule *PackedPlans::find(uint64_t budgetBytes, const Find &front) {
  const FittedSchedule *plan = front(budgetBytes);
  while (plan && getArenaBytes(*plan) > budgetBytes)
    plan = plan->timeline.peakBytes ? front(plan->timeline.peakBytes - 1) : nullptr;
  return plan;
}

} // namespace lowtide::solve
