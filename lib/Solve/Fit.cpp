//===- Fit.cpp - the cheapest schedule under a budget ---------------------===//
//
// 1. Seeds: what published methods save (Baselines), whatever the budget.
// 2. Bisect for the smallest budget under which a policy of eviction gets
//    through: the lowest level.
// 3. Climb: at each level the schedule of the level below, what every policy
//    finds there, also with disturbed prices, and the seeds that fit, lose the
//    recomputations that are not needed; the cheapest stays.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Fit.h"
#include "lowtide/Solve/Baselines.h"
#include "lowtide/Solve/Eviction.h"

#include <algorithm>
#include <random>

namespace lowtide::solve {

namespace {

struct NamedPolicy {
  const char *name;
  EvictionPolicy policy;
};

const NamedPolicy policies[] = {
    {"evicting by time / (bytes x distance)", {1, 1, 1}},
    {"evicting by time / bytes", {1, 1, 0}},
    {"evicting by time / (bytes x distance^1/2)", {1, 1, 0.5}},
    {"evicting by 1 / (bytes x distance)", {0, 1, 1}},
    {"evicting by distance", {0, 0, 1}},
};

/// Runs the policy and takes out what is not needed; nothing if it does not get through.
std::optional<FittedSchedule> tryPolicy(const StepGraph &graph, const Schedule &order, uint64_t budget,
                                        const NamedPolicy &candidate) {
  std::optional<Schedule> schedule = evictUnder(graph, order, budget, candidate.policy);
  std::optional<Timeline> timeline = schedule ? evaluate(graph, *schedule) : std::nullopt;
  if (!timeline || timeline->peakBytes > budget)
    return std::nullopt;
  dropRecomputations(graph, budget, *schedule, *timeline);
  return FittedSchedule{std::move(*schedule), std::move(*timeline), candidate.name};
}

} // namespace

Front::Front(const StepGraph &graph, Schedule given, const FitOptions &options)
    : graph(graph), order(std::move(given)), options(options) {
  largest = {order, evaluate(graph, order).value_or(Timeline()), "no recomputation"};
  if (largest.timeline.live.empty()) {
    found.push_back(largest);
    return;
  }
  for (auto *plan : {&planSegments, &planCuts})
    for (FittedSchedule &seed : (*plan)(graph, order))
      if (seed.timeline.peakBytes < largest.timeline.peakBytes)
        seeds.push_back(std::move(seed));
  // Only those that are cheaper than all with a smaller peak.
  std::sort(seeds.begin(), seeds.end(), [](const FittedSchedule &a, const FittedSchedule &b) {
    return std::pair(a.timeline.peakBytes, a.timeline.seconds) < std::pair(b.timeline.peakBytes, b.timeline.seconds);
  });
  std::vector<FittedSchedule> useful;
  for (FittedSchedule &seed : seeds)
    if (useful.empty() || seed.timeline.seconds < useful.back().timeline.seconds)
      useful.push_back(std::move(seed));
  seeds = std::move(useful);
  findSmallest();
}

void Front::findSmallest() {
  FittedSchedule best = largest;
  if (!seeds.empty())
    best = seeds.front();
  const uint64_t low = findLowerBound(graph).bytes;
  // One policy may fail where another gets through.
  for (const NamedPolicy &candidate : policies) {
    uint64_t fails = low ? low - 1 : 0, passes = best.timeline.peakBytes;
    for (unsigned step = 0; step < 10 && passes > fails + fails / 256 + graph.alignment; ++step) {
      // The first question is whether it improves at all.
      const uint64_t budget = step ? fails + (passes - fails) / 2 : passes - passes / 128 - 1;
      std::optional<Schedule> schedule = evictUnder(graph, order, budget, candidate.policy);
      std::optional<Timeline> timeline = schedule ? evaluate(graph, *schedule) : std::nullopt;
      if (!timeline || timeline->peakBytes >= passes) {
        fails = budget;
        if (!step)
          break;
        continue;
      }
      passes = timeline->peakBytes;
      best = {std::move(*schedule), std::move(*timeline), candidate.name};
    }
  }
  dropRecomputations(graph, best.timeline.peakBytes, best.schedule, best.timeline);
  found.push_back(std::move(best));
}

uint64_t Front::getBudget(unsigned level) const {
  const uint64_t low = found.front().timeline.peakBytes, high = largest.timeline.peakBytes;
  return level >= options.levels ? high : low + uint64_t(double(high - low) * level / options.levels);
}

void Front::climb() {
  const unsigned level = found.size();
  const uint64_t budget = getBudget(level);
  if (level >= options.levels) {
    found.push_back(largest);
    return;
  }
  FittedSchedule best = found.back();
  dropRecomputations(graph, budget, best.schedule, best.timeline);
  auto consider = [&](std::optional<FittedSchedule> plan) {
    if (plan && plan->timeline.seconds < best.timeline.seconds)
      best = std::move(*plan);
  };
  const NamedPolicy *leader = nullptr;
  double leaderSeconds = 0;
  for (const NamedPolicy &candidate : policies) {
    std::optional<FittedSchedule> plan = tryPolicy(graph, order, budget, candidate);
    if (plan && (!leader || plan->timeline.seconds < leaderSeconds)) {
      leader = &candidate;
      leaderSeconds = plan->timeline.seconds;
    }
    consider(std::move(plan));
  }
  for (const FittedSchedule &seed : seeds)
    if (seed.timeline.peakBytes <= budget && seed.timeline.peakBytes > getBudget(level - 1)) {
      FittedSchedule plan = seed;
      dropRecomputations(graph, budget, plan.schedule, plan.timeline);
      consider(std::move(plan));
    }
  // Prices disturbed by up to a factor of e: others are evicted. Small steps are searched longer, and with larger
  // factors.
  std::mt19937_64 random(level);
  const unsigned rounds = std::max<unsigned>(options.rounds, std::min<size_t>(60, 1500 / (order.size() + 1)));
  for (unsigned round = 0; leader && round < rounds; ++round) {
    NamedPolicy disturbed = round < options.rounds ? *leader : policies[random() % std::size(policies)];
    const double largest = round < options.rounds ? 1 : 1 + round % 4;
    disturbed.policy.weights.resize(graph.values.size());
    for (double &weight : disturbed.policy.weights)
      weight = largest * (double(random() >> 11) * 0x1p-52 - 1);
    consider(tryPolicy(graph, order, budget, disturbed));
  }
  found.push_back(std::move(best));
}

const FittedSchedule *Front::find(uint64_t budgetBytes) {
  if (found.front().timeline.peakBytes > budgetBytes)
    return nullptr;
  if (largest.timeline.peakBytes <= budgetBytes)
    return &largest;
  while (found.size() <= options.levels && getBudget(found.size()) <= budgetBytes)
    climb();
  const FittedSchedule *best = nullptr;
  auto consider = [&](const FittedSchedule &plan) {
    if (plan.timeline.peakBytes <= budgetBytes && (!best || plan.timeline.seconds < best->timeline.seconds))
      best = &plan;
  };
  for (unsigned level = 0; level < found.size() && getBudget(level) <= budgetBytes; ++level)
    consider(found[level]);
  for (const FittedSchedule &seed : seeds)
    consider(seed);
  return best;
}

std::vector<const FittedSchedule *> Front::getPareto() {
  while (found.size() <= options.levels)
    climb();
  std::vector<const FittedSchedule *> all, pareto;
  for (const FittedSchedule &plan : found)
    all.push_back(&plan);
  for (const FittedSchedule &plan : seeds)
    all.push_back(&plan);
  std::sort(all.begin(), all.end(), [](const FittedSchedule *a, const FittedSchedule *b) {
    return std::pair(a->timeline.peakBytes, a->timeline.seconds) <
           std::pair(b->timeline.peakBytes, b->timeline.seconds);
  });
  for (const FittedSchedule *plan : all)
    if (pareto.empty() || plan->timeline.seconds < pareto.back()->timeline.seconds)
      pareto.push_back(plan);
  return pareto;
}

} // namespace lowtide::solve
