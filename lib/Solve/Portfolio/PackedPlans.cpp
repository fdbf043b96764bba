//===- PackedPlans.cpp - schedules whose arenas fit a budget --------------===//
//
// Few problems have no packing near their bound, but some do, and some have one
// that is not found: mostly where a handful of large buffers fill the arena.
// Their neighbours in the space of orders are other problems, and nearly all of
// them are easy. So orders are drawn, and each is packed with little effort.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Portfolio/PackedPlans.h"
#include "OrderSearch.h"
#include "PackingSlack.h"

namespace lowtide::solve {

/// To tell draws from each other.
static PackingOptions getQuick(const StepGraph &graph, const PackingOptions &options) {
  PackingOptions quick = options.getQuick();
  quick.effort /= isSmall(graph) ? 3 : 1;
  return quick;
}

/// To do without another order, or another plan.
static PackingOptions getPatient(const StepGraph &graph, const PackingOptions &options) {
  PackingOptions patient = getQuick(graph, options);
  patient.effort *= 8;
  return patient;
}

static PackedPlan packAs(const StepGraph &graph, FittedSchedule plan, bool isReordered, const PackingOptions &options) {
  const Packing packing = packOnce(listBuffers(graph, plan), options);
  return {std::move(plan), packing.arenaBytes, packing.boundBytes, isReordered};
}

/// Whether a search with more effort and the same options would have come here too: it finds no larger arena.
static bool isReached(const PackedPlan &packed, const PackingOptions &options) {
  return packed.isNear() && packed.arenaBytes <= packed.boundBytes + packed.boundBytes / options.nearness;
}

/// The plan, or an order of it, that comes near the bytes alive; if none does, the one with the smallest arena that was
/// found with little effort.
static PackedPlan findOrderThatPacks(const StepGraph &graph, const FittedSchedule &plan, const PackingOptions &options,
                                     unsigned mostOrders) {
  // Another order is worth some effort to do without: what recomputes later starts from this one.
  const PackingOptions quick = getQuick(graph, options);
  const PackingOptions patient = getPatient(graph, options);
  PackedPlan best = packAs(graph, plan, /*isReordered=*/false, patient);
  if (isReached(best, patient))
    return best;

  OrderSearch search(graph, plan, options.seed);
  constexpr unsigned fewOrders = 16;
  for (unsigned draw = 0;
       draw < fewOrders || (draw < mostOrders && best.arenaBytes > best.boundBytes + best.boundBytes / 100); ++draw) {
    // From the plan itself or from the best order so far; a little way, or a long one to where fewer bytes are alive.
    const double looseness = draw % 3 == 0 ? 1 : draw % 3 == 1 ? 1.02 : 1.1;
    FittedSchedule order = search.disturb(draw % 2 ? best.plan : plan, draw % 3 == 0 ? 64 : 4 << draw % 4, looseness);
    PackedPlan drawn = packAs(graph, std::move(order), /*isReordered=*/true, quick);
    if (isReached(drawn, quick))
      return drawn;
    if (drawn.arenaBytes < best.arenaBytes)
      best = std::move(drawn);
  }
  return best;
}

/// As plan-place will pack it, with all the effort there is.
static void packInFull(const StepGraph &graph, PackedPlan &packed, const PackingOptions &options) {
  if (isReached(packed, options))
    return;
  const Packing packing = packOnce(listBuffers(graph, packed.plan), options);
  packed.arenaBytes = packing.arenaBytes;
  packed.boundBytes = packing.boundBytes;
}

/// The same where little effort did not come near.
static void packAsPlaced(const StepGraph &graph, PackedPlan &packed, const PackingOptions &options) {
  if (!isReached(packed, options.getQuick()))
    packInFull(graph, packed, options);
}

PackedPlan packPlan(const StepGraph &graph, const FittedSchedule &plan, const PackingOptions &options,
                    unsigned mostOrders) {
  PackedPlan packed = findOrderThatPacks(graph, plan, options, mostOrders);
  packAsPlaced(graph, packed, options);
  return packed;
}

const PackedPlan &PackedPlans::get(const FittedSchedule &plan) {
  auto it = plans.find(&plan);
  if (it != plans.end())
    return it->second;
  PackedPlan packed = findOrderThatPacks(graph, plan, options, /*mostOrders=*/0);
  // A cheaper one would be found by who looks for cheap ones; budgets are compared by that.
  const double seconds = plan.timeline.seconds, mostSeconds = 1.02 * seconds;
  if (!packed.isNear() && plan.timeline.recomputed)
    if (std::optional<PackedPlan> next = findNextThatPacks(plan, mostSeconds))
      packed = std::move(*next);
  // A packing that lacks little may need more room than that; one of a small step is rarely mended by it.
  const unsigned mostRoom = isSmall(graph) ? 1 : 4;
  for (unsigned room = 1; room <= mostRoom && !packed.isNear() && plan.timeline.recomputed; room *= 2)
    if (std::optional<PackedPlan> slack =
            findPlanWithSlack(graph, packed, getQuick(graph, options), seconds, mostSeconds, room))
      packed = std::move(*slack);
  // A step needs no more under a budget than without one, where all effort is spent on its packing.
  if (&plan == &front.getLargest())
    packInFull(graph, packed, options);
  else
    packAsPlaced(graph, packed, options);
  return plans.emplace(&plan, std::move(packed)).first->second;
}

std::optional<PackedPlan> PackedPlans::findNextThatPacks(const FittedSchedule &plan, double mostSeconds) {
  const PackingOptions patient = getPatient(graph, options);
  const FittedSchedule *next = &plan;
  for (unsigned tries = 2; tries && next->timeline.peakBytes; --tries) {
    next = front.find(next->timeline.peakBytes - 1);
    if (!next || next->timeline.seconds > mostSeconds)
      break;
    if (PackedPlan packed = packAs(graph, *next, /*isReordered=*/false, patient); packed.isNear())
      return packed;
  }
  return std::nullopt;
}

uint64_t PackedPlans::getReach() {
  const uint64_t leastBytes = front.getSmallest().timeline.peakBytes;
  return leastBytes + leastBytes / 8;
}

const PackedPlan &PackedPlans::getSmallest() {
  if (smallest)
    return *smallest;
  const FittedSchedule &least = front.getSmallest();
  smallest = &get(least);
  // Cheap plans of few bytes pack badly; the one that the search begins with has been through draws that pack.
  if (const FittedSchedule &first = front.getFirst();
      first.timeline.peakBytes < smallest->arenaBytes && get(first).arenaBytes < smallest->arenaBytes)
    smallest = &get(first);
  // Another one, also with more bytes alive, may have a smaller arena.
  auto findBelow = [&](uint64_t bytes) { return bytes ? front.find(std::min(bytes - 1, getReach())) : nullptr; };
  const FittedSchedule *plan = findBelow(smallest->arenaBytes);
  while (plan && plan != &least) {
    if (get(*plan).arenaBytes < smallest->arenaBytes)
      smallest = &get(*plan);
    plan = findBelow(std::min(plan->timeline.peakBytes, smallest->arenaBytes));
  }
  // It says which budgets are refused, so that its last bytes count.
  PackedPlan full = *smallest;
  packInFull(graph, full, options);
  if (full.arenaBytes < smallest->arenaBytes)
    smallest = &smallestInFull.emplace(std::move(full));
  return *smallest;
}

std::vector<const FittedSchedule *> PackedPlans::listSmall() {
  std::vector<const FittedSchedule *> small;
  for (const FittedSchedule *plan = front.find(getReach()); plan;
       plan = plan->timeline.peakBytes ? front.find(plan->timeline.peakBytes - 1) : nullptr)
    small.push_back(plan);
  return small;
}

bool PackedPlans::packsInto(uint64_t bytes) {
  const FittedSchedule &least = front.getSmallest();
  if (least.timeline.peakBytes > bytes)
    return false;
  if (smallest)
    return smallest->arenaBytes <= bytes;
  return packOnce(listBuffers(graph, least), options.getQuick()).arenaBytes <= bytes ||
         getSmallest().arenaBytes <= bytes;
}

const PackedPlan *PackedPlans::find(uint64_t budgetBytes) {
  const PackedPlan *best = nullptr;
  // What packs may take longer than the front's schedule, never less.
  auto isWorse = [&](const FittedSchedule &plan) {
    return best && plan.timeline.seconds >= best->plan.timeline.seconds;
  };
  auto consider = [&](const PackedPlan &packed) {
    if (packed.arenaBytes <= budgetBytes && !isWorse(packed.plan))
      best = &packed;
  };
  const FittedSchedule *plan = front.find(budgetBytes);
  for (; plan && !isWorse(*plan); plan = plan->timeline.peakBytes ? front.find(plan->timeline.peakBytes - 1) : nullptr)
    consider(get(*plan));
  // Nothing takes less time than the largest, which need not be searched for.
  if (isWorse(front.getLargest()))
    return best;
  // Cheap plans of few bytes pack badly; the one that the search begins with has been through draws that pack.
  if (const FittedSchedule &first = front.getFirst(); first.timeline.peakBytes <= budgetBytes && !isWorse(first))
    consider(get(first));
  // What has fewer bytes alive than another may have the larger arena: the smallest need not be among these.
  if (!best)
    consider(getSmallest());
  return best;
}

} // namespace lowtide::solve
