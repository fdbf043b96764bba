//===- ClimbedPrices.cpp - prices under which eviction does well ----------===//
//
// Climbs from a plan's own prices: in each round, some values that are recomputed at a high cost in the last plan get
// more expensive to evict and some that stay get cheaper; prices stay changed where the plan got no worse.
//
//===----------------------------------------------------------------------===//
#include "Method.h"

#include <algorithm>
#include <random>

namespace lowtide::solve {

static FittedSchedule climbPrices(const StepGraph &graph, std::span<const uint32_t> order, const Improvement &given) {
  const auto &[budgetBytes, start, rounds, seed, mayKeepSources] = given;
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
  std::vector<double> weights(graph.values.size()), again = listRecomputedSeconds(graph, start.schedule),
                                                    stays(weights);
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
    again = listRecomputedSeconds(graph, plan->schedule);
    listStays();
    if (seconds < best.timeline.seconds)
      best = std::move(*plan);
  }
  return best;
}

namespace {

class ClimbedPrices : public Method {
public:
  using Method::Method;
  FittedSchedule improveAtLevel(const Improvement &improvement) override {
    return climbPrices(task.graph, task.order, improvement);
  }
};

} // namespace

std::vector<MethodRow> listClimbedPricesRows() {
  return {
      {50, "climbed-prices", "eviction under prices that are climbed from those of a plan", makeMethod<ClimbedPrices>}};
}

} // namespace lowtide::solve
