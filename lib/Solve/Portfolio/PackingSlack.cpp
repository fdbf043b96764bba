//===- PackingSlack.cpp - another plan, with room to pack --------------------===//
//
// Several program points in which everything is full, with other buffers between them,
// leave no choice of addresses: a large buffer needs in one what small ones have
// taken in another. What lacks is room in some of them; the others may be full.
// 1. Full program points are those in which fewer bytes are free than the arena is too
// large by.
// 2. Some of them, drawn, have so many bytes reserved; the plan is changed until
// it fits around them, or the step is planned anew, by eviction that prefers what
// runs again already; within the same peak or with the bytes that the gaps took.
// 3. What packs near its bytes alive is good; the cheapest of a few draws wins.
//
//===----------------------------------------------------------------------===//
#include "PackingSlack.h"
#include "../Searches/Policies.h"
#include "lowtide/Solve/Searches/RematLocalSearch.h"

#include <random>
#include <utility>

namespace lowtide::solve {

namespace {

class RoomSearch {
public:
  /// Reserves `room` times what the arena is too large by.
  RoomSearch(const StepGraph &graph, const PackedPlan &packed, uint64_t seed, unsigned room)
      : packed(packed), plain(packed.plan.bodies.empty() ? graph : withBodies(graph, packed.plan.bodies)),
        again(listRecomputed(graph, packed.plan.schedule)), random(seed) {
    std::vector<char> ran(graph.operations.size(), false);
    for (uint32_t op : packed.plan.schedule)
      if (op < graph.operations.size() && !std::exchange(ran[op], true))
        order.push_back(op);
    const Timeline &timeline = packed.plan.timeline;
    lackBytes = room * (packed.arenaBytes - packed.boundBytes);
    for (size_t i = 0; i < packed.plan.schedule.size(); ++i)
      if (timeline.live[i] + lackBytes > timeline.peakBytes)
        full.push_back(packed.plan.schedule[i]);
  }

  /// Another plan within so many bytes alive, anew or from the plan on; its figures are those without reserves.
  std::optional<FittedSchedule> draw(uint64_t peakBytes, bool isAnew);

private:
  const PackedPlan &packed;
  const StepGraph plain;
  /// The operations by their first runs; per value, whether it is recomputed.
  Schedule order;
  const std::vector<char> again;
  uint64_t lackBytes = 0;
  /// What runs in full program points.
  std::vector<uint32_t> full;
  std::mt19937_64 random;
};

std::optional<FittedSchedule> RoomSearch::draw(uint64_t peakBytes, bool isAnew) {
  StepGraph reserved = plain;
  // Room in one of so many full program points; and how far it goes from what the plan runs again.
  const unsigned spread = 2 << random() % 3;
  const double noise = 1.0 / double(1 << random() % 3);
  for (uint32_t op : full)
    if (random() % spread == 0)
      (op < reserved.operations.size() ? reserved.operations[op] : reserved.reruns[op - reserved.operations.size()])
          .workspaceBytes = plain.workspace(op) + lackBytes;
  std::optional<FittedSchedule> plan;
  if (isAnew) {
    EvictionPolicy policy;
    policy.distance = double(random() % 3) / 2;
    policy.weights.resize(again.size());
    for (size_t value = 0; value < again.size(); ++value)
      policy.weights[value] = noise * (double(random() >> 11) * 0x1p-52 - 1) + (again[value] ? -2 : 2);
    plan = tryPolicy(reserved, order, peakBytes, {"with room for addresses", policy});
  } else {
    plan = shrinkPeak(reserved, peakBytes, packed.plan, /*tries=*/1, random());
  }
  if (!plan)
    return std::nullopt;
  plan->method = "with room for addresses";
  plan->timeline = evaluate(plain, plan->schedule).value_or(Timeline());
  plan->bodies = packed.plan.bodies;
  for (const FittedSchedule &body : plan->bodies)
    plan->timeline.recomputed += body.timeline.recomputed;
  return plan;
}

} // namespace

std::optional<PackedPlan> findPlanWithSlack(const StepGraph &graph, const PackedPlan &packed,
                                            const PackingOptions &options, double leastSeconds, double mostSeconds,
                                            unsigned room) {
  // Where bytes are few most draws do not get through, and end soon.
  const auto draws = unsigned(std::clamp<size_t>(120'000 / (packed.plan.schedule.size() + 1), 48, 400));
  RoomSearch search(graph, packed, options.seed, room);
  std::optional<PackedPlan> best;
  double bestSeconds = mostSeconds;
  // Packing takes long where it fails.
  unsigned packings = 16;
  for (unsigned i = 0; i < draws && packings > 0 && bestSeconds > leastSeconds * 1.005; ++i) {
    // The bytes that gaps take may as well be alive.
    const uint64_t peakBytes = i / 2 % 2 ? packed.arenaBytes - packed.arenaBytes / 200 : packed.plan.timeline.peakBytes;
    std::optional<FittedSchedule> plan = search.draw(peakBytes, /*isAnew=*/i % 2 == 0);
    if (!plan || plan->timeline.seconds < leastSeconds || plan->timeline.seconds > bestSeconds)
      continue;
    Packing packing = packOnce(listBuffers(graph, *plan), options);
    --packings;
    PackedPlan drawn{std::move(*plan), packing.arenaBytes, packing.boundBytes, true};
    if (!drawn.isNear() || drawn.arenaBytes >= packed.arenaBytes)
      continue;
    bestSeconds = drawn.plan.timeline.seconds;
    best = std::move(drawn);
  }
  return best;
}

} // namespace lowtide::solve
