//===- OrderSearch.cpp - the same plan in another order -------------------===//
//
// Where a move helps is where many bytes are alive: of a few drawn operations
// the one is moved that runs in the fullest program point, a few places up or down.
// Whether it may go there and what that does, the exact count says.
//
//===----------------------------------------------------------------------===//
#include "OrderSearch.h"

#include <algorithm>

namespace lowtide::solve {

OrderSearch::OrderSearch(const StepGraph &graph, const FittedSchedule &plan, uint64_t seed) : random(seed) {
  addLevels(graph, plan);
}

void OrderSearch::addLevels(const StepGraph &graph, const FittedSchedule &plan) {
  levels.emplace_back(plan.bodies.empty() ? graph : withBodies(graph, plan.bodies), plan.timeline.peakBytes);
  for (size_t i = 0; i < plan.bodies.size(); ++i)
    addLevels(graph.loops[i].body, plan.bodies[i]);
}

/// The plans of the step and of its loops' bodies, in the order of the levels.
static void listPlans(FittedSchedule &plan, std::vector<FittedSchedule *> &plans) {
  plans.push_back(&plan);
  for (FittedSchedule &body : plan.bodies)
    listPlans(body, plans);
}

/// Bytes that are alive above nine tenths of the peak, added up over the instructions.
static double countPressure(const Timeline &timeline, uint64_t peakBytes) {
  const uint64_t floor = peakBytes - peakBytes / 10;
  double sum = 0;
  for (uint64_t live : timeline.live)
    sum += live > floor ? double(live - floor) : 0;
  return sum;
}

bool OrderSearch::tryMove(Level &level, FittedSchedule &plan, double looseness) {
  const size_t length = plan.schedule.size();
  if (length < 2)
    return false;
  size_t from = random() % length;
  for (unsigned draw = 0; draw < 3; ++draw)
    if (size_t other = random() % length; plan.timeline.live[other] > plan.timeline.live[from])
      from = other;
  // Short ways more often than long ones.
  const size_t reach = 1 + random() % std::min<size_t>(length - 1, size_t(1) << (1 + random() % 6));
  const bool isUp = random() % 2;
  if (isUp ? from < reach : from + reach >= length)
    return false;
  Schedule moved = plan.schedule;
  auto at = moved.begin() + ptrdiff_t(from);
  if (isUp)
    std::rotate(at - ptrdiff_t(reach), at, at + 1);
  else
    std::rotate(at, at + 1, at + ptrdiff_t(reach) + 1);
  std::optional<Timeline> timeline = level.walk.evaluate(moved);
  if (!timeline || timeline->peakBytes > level.peakBytes || timeline->recomputed != plan.timeline.recomputed ||
      countPressure(*timeline, level.peakBytes) > looseness * countPressure(plan.timeline, level.peakBytes))
    return false;
  // The same operations: sums in another order would differ in their last bits.
  timeline->seconds = plan.timeline.seconds;
  plan.schedule = std::move(moved);
  plan.timeline = std::move(*timeline);
  return true;
}

FittedSchedule OrderSearch::disturb(const FittedSchedule &plan, unsigned moves, double looseness) {
  FittedSchedule result = plan;
  std::vector<FittedSchedule *> plans;
  listPlans(result, plans);
  // Timelines of whole plans count what runs again in bodies too; moves compare within one level.
  std::vector<uint32_t> recomputed;
  for (size_t i = 0; i < plans.size(); ++i) {
    recomputed.push_back(plans[i]->timeline.recomputed);
    if (std::optional<Timeline> own = levels[i].walk.evaluate(plans[i]->schedule))
      plans[i]->timeline.recomputed = own->recomputed;
  }
  for (unsigned made = 0, tried = 0; made < moves && tried < 40 * moves; ++tried) {
    const size_t i = random() % plans.size();
    made += tryMove(levels[i], *plans[i], looseness);
  }
  for (size_t i = 0; i < plans.size(); ++i)
    plans[i]->timeline.recomputed = recomputed[i];
  return result;
}

} // namespace lowtide::solve
