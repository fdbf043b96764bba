//===- PriceSearch.cpp - prices under which eviction does well ------------===//
#include "PriceSearch.h"

#include <algorithm>

namespace lowtide::solve {

std::span<const NamedPolicy> listPolicies() {
  static const NamedPolicy policies[] = {
      {"evicting by time / (bytes x distance)", {1, 1, 1}},
      {"evicting by time / bytes", {1, 1, 0}},
      {"evicting by time / (bytes x distance^1/2)", {1, 1, 0.5}},
      {"evicting by 1 / (bytes x distance)", {0, 1, 1}},
      {"evicting by distance", {0, 0, 1}},
  };
  return policies;
}

std::optional<FittedSchedule> tryPolicy(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                        const NamedPolicy &candidate) {
  std::optional<Schedule> schedule = evictUnder(graph, order, budgetBytes, candidate.policy);
  std::optional<Timeline> timeline = schedule ? evaluate(graph, *schedule) : std::nullopt;
  if (!timeline || timeline->peakBytes > budgetBytes)
    return std::nullopt;
  dropRecomputations(graph, budgetBytes, *schedule, *timeline);
  return FittedSchedule{std::move(*schedule), std::move(*timeline), candidate.name};
}

/// Per value, the seconds that the schedule spends on making it again.
static std::vector<double> listAgainSeconds(const StepGraph &graph, const Schedule &schedule) {
  std::vector<double> seconds(graph.values.size(), 0);
  std::vector<char> ran(graph.operations.size() + graph.reruns.size(), false);
  for (uint32_t op : schedule) {
    if (ran[op] || op >= graph.operations.size())
      for (uint32_t value : graph.at(op).writes)
        seconds[value] += graph.at(op).seconds + 1e-12;
    ran[op] = true;
  }
  return seconds;
}

std::vector<char> listRemade(const StepGraph &graph, const Schedule &schedule) {
  std::vector<char> remade;
  for (double seconds : listAgainSeconds(graph, schedule))
    remade.push_back(seconds > 0);
  return remade;
}

FittedSchedule climbPrices(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                           const FittedSchedule &start, unsigned rounds, uint64_t seed) {
  FittedSchedule best = start;
  if (!start.timeline.recomputed)
    return best;
  std::mt19937_64 random(seed);
  auto uniform = [&] { return double(random() >> 11) * 0x1p-53; };
  auto draw = [&](const std::vector<double> &shares) {
    double sum = 0;
    for (double share : shares)
      sum += share;
    double at = sum * uniform();
    for (uint32_t i = 0; i < shares.size(); ++i)
      if (shares[i] > 0 && (at -= shares[i]) <= 0)
        return i;
    return uint32_t(shares.size());
  };
  double seconds = 1e300;
  std::vector<double> weights(graph.values.size()), again = listAgainSeconds(graph, start.schedule), stays(weights);
  for (uint32_t value = 0; value < weights.size(); ++value)
    weights[value] = again[value] > 0 ? -2 : 2;
  auto listStays = [&] {
    for (uint32_t value = 0; value < weights.size(); ++value)
      stays[value] =
          again[value] > 0 || graph.values[value].placed || graph.values[value].kept || !findMaker(graph, value)
              ? 0
              : double(graph.size(value));
  };
  listStays();
  for (unsigned round = 0; round < rounds; ++round) {
    NamedPolicy disturbed{"evicting by prices that were climbed", {1, 1, 1, weights}};
    std::vector<double> &changed = disturbed.policy.weights;
    for (unsigned k = round ? 1 + random() % 3 : 0; k > 0; --k)
      if (uint32_t value = draw(again); value < changed.size())
        changed[value] += 1 + 3 * uniform();
    for (unsigned k = round ? 1 + random() % 4 : 0; k > 0; --k)
      if (uint32_t value = draw(stays); value < changed.size())
        changed[value] -= 1 + 3 * uniform();
    std::optional<FittedSchedule> plan = tryPolicy(graph, order, budgetBytes, disturbed);
    // A little worse is taken at first: prices that lead nowhere are left.
    const double patience = 0.01 * double(rounds - round) / double(rounds);
    if (!plan || plan->timeline.seconds > seconds * (1 + patience))
      continue;
    seconds = plan->timeline.seconds;
    weights = std::move(changed);
    again = listAgainSeconds(graph, plan->schedule);
    listStays();
    if (seconds < best.timeline.seconds)
      best = std::move(*plan);
  }
  return best;
}

} // namespace lowtide::solve
