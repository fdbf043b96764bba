//===- PackedPlans.cpp - schedules whose arenas fit a budget --------------===//
//
// Few problems have no packing near their bound, but some do, and some have one
// that is not found: mostly where a handful of large buffers fill the arena.
// Their neighbours in the space of orders are other problems, and nearly all of
// them are easy. So orders are drawn, and each is packed with little effort.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/PackedPlans.h"
#include "OrderSearch.h"
#include "RoomyPlan.h"

namespace lowtide::solve {

/// Whether a search with more effort and the same options would have come here too: it finds no larger arena.
static bool isReached(const Packing &packing, const PackingOptions &options) {
  return packing.isNear() && packing.arenaBytes <= packing.boundBytes + packing.boundBytes / options.nearness;
}

PackedPlan packPlan(const StepGraph &graph, const FittedSchedule &plan, const PackingOptions &options,
                    unsigned mostOrders) {
  auto packAs = [&](const FittedSchedule &order, const PackingOptions &how) {
    return pack(listBuffers(graph, order), how);
  };
  // Another order is worth some effort to do without: what recomputes later starts from this one.
  const PackingOptions quick = options.getQuick();
  PackingOptions patient = options;
  patient.nearness = quick.nearness;
  Packing packing = packAs(plan, patient);
  if (isReached(packing, patient))
    return {plan, packing.arenaBytes, packing.boundBytes};

  OrderSearch search(graph, plan, options.seed);
  FittedSchedule best = plan;
  uint64_t bestBytes = packing.arenaBytes, bestBound = packing.boundBytes;
  constexpr unsigned fewOrders = 16;
  for (unsigned draw = 0; draw < fewOrders || (draw < mostOrders && bestBytes > bestBound + bestBound / 100); ++draw) {
    // From the plan itself or from the best order so far; a little way, or a long one to where fewer bytes are alive.
    const double looseness = draw % 3 == 0 ? 1 : draw % 3 == 1 ? 1.02 : 1.1;
    FittedSchedule order = search.disturb(draw % 2 ? best : plan, draw % 3 == 0 ? 64 : 4 << draw % 4, looseness);
    Packing drawn = packAs(order, quick);
    if (isReached(drawn, quick))
      return {std::move(order), drawn.arenaBytes, drawn.boundBytes, true};
    if (drawn.arenaBytes < bestBytes) {
      best = std::move(order);
      bestBytes = drawn.arenaBytes;
      bestBound = drawn.boundBytes;
    }
  }
  // As plan-place will pack it.
  const bool isReordered = bestBytes < packing.arenaBytes;
  packing = packAs(best, options);
  return {std::move(best), packing.arenaBytes, packing.boundBytes, isReordered};
}

const PackedPlan &PackedPlans::get(const FittedSchedule &plan) {
  auto it = plans.find(&plan);
  if (it != plans.end())
    return it->second;
  PackedPlan packed = packPlan(graph, plan, options);
  // A cheaper one would be found by who looks for cheap ones; budgets are compared by that.
  const double seconds = plan.timeline.seconds;
  if (!packed.isNear() && plan.timeline.recomputed)
    if (std::optional<PackedPlan> roomy = findRoomyPlan(graph, packed, options, seconds, 1.02 * seconds))
      packed = std::move(*roomy);
  return plans.emplace(&plan, std::move(packed)).first->second;
}

uint64_t PackedPlans::getReach() {
  const uint64_t low = front.getSmallest().timeline.peakBytes, high = front.getLargest().timeline.peakBytes;
  return low + std::max(low, high - low) / 16;
}

double PackedPlans::getReachedSeconds() { return front.find(getReach())->timeline.seconds; }

const PackedPlan &PackedPlans::getSmallest() {
  if (smallest)
    return *smallest;
  const FittedSchedule &least = front.getSmallest();
  smallest = get(least);
  // A packing that lacks little may need more room than that.
  for (unsigned room = 1; room <= 4 && !smallest->isNear(); room *= 2)
    if (smallest->arenaBytes <= getReach() && least.timeline.recomputed)
      if (std::optional<PackedPlan> roomy =
              findRoomyPlan(graph, *smallest, options, getReachedSeconds(), 1.25 * least.timeline.seconds, room))
        smallest = std::move(*roomy);
  return *smallest;
}

bool PackedPlans::fits(const FittedSchedule &plan, uint64_t budgetBytes) {
  constexpr size_t mostBuffers = 512;
  const PackedPlan &packed = get(plan);
  if (packed.arenaBytes <= budgetBytes || packed.boundBytes > budgetBytes || !tightest.insert(&plan).second)
    return packed.arenaBytes <= budgetBytes;
  const std::vector<Buffer> buffers = listBuffers(graph, packed.plan);
  if (buffers.size() <= mostBuffers)
    plans.at(&plan).arenaBytes = std::min(packed.arenaBytes, pack(buffers, options).arenaBytes);
  return packed.arenaBytes <= budgetBytes;
}

const PackedPlan *PackedPlans::find(uint64_t budgetBytes) {
  const PackedPlan *best = nullptr;
  // What packs may take longer than the front's schedule, never less.
  auto isWorse = [&](const FittedSchedule &plan) {
    return best && plan.timeline.seconds >= best->plan.timeline.seconds;
  };
  for (const FittedSchedule *plan = front.find(budgetBytes); plan && !isWorse(*plan);
       plan = plan->timeline.peakBytes ? front.find(plan->timeline.peakBytes - 1) : nullptr)
    if (fits(*plan, budgetBytes) && !isWorse(get(*plan).plan))
      best = &get(*plan);
  if ((!best || best->plan.timeline.seconds > getReachedSeconds()) && getSmallest().arenaBytes <= budgetBytes &&
      !isWorse(smallest->plan))
    best = &*smallest;
  return best;
}

} // namespace lowtide::solve
