//===- Evictions.cpp - policies that know nothing of the step -------------===//
#include "Method.h"

#include <random>

namespace lowtide::solve {
namespace {

/// Evicts by one policy at every level.
template <const NamedPolicy &policy> class Eviction : public Method {
public:
  using Method::Method;
  std::vector<NamedPolicy> listPolicies() override { return {policy}; }
  void search(Level &level) override {
    std::optional<FittedSchedule> plan = tryPolicy(task.graph, task.order, level.budgetBytes, policy);
    level.policies.push_back(&policy);
    if (plan && (!level.leader || plan->timeline.seconds < level.leaderSeconds)) {
      level.leader = &policy;
      level.leaderSeconds = plan->timeline.seconds;
    }
    level.consider(std::move(plan));
  }
};

/// Disturbs the prices of the policy that did best, and every other time those of the best plan.
class DisturbedPrices : public Method {
public:
  using Method::Method;
  void vary(Level &level) override {
    // Small steps are searched longer, and with larger factors.
    std::mt19937_64 random(level.number);
    auto draw = [&] { return double(random() >> 11) * 0x1p-52 - 1; };
    const unsigned rounds = std::max<unsigned>(task.rounds, std::min<size_t>(60, 1500 / (task.order.size() + 1)));
    for (unsigned round = 0; level.leader && round < rounds; ++round) {
      NamedPolicy disturbed = round < task.rounds ? *level.leader : *level.policies[random() % level.policies.size()];
      const double largest = round < task.rounds ? 1 : 1 + round % 4;
      disturbed.policy.weights.resize(task.graph.values.size());
      std::vector<char> recomputed(task.graph.values.size(), false);
      if (round % 2) {
        disturbed.name = "evicting as the best so far";
        recomputed = listRecomputed(task.graph, level.best.schedule);
      }
      for (uint32_t value = 0; value < recomputed.size(); ++value)
        disturbed.policy.weights[value] = largest * draw() + (round % 2 ? (recomputed[value] ? -2.0 : 2.0) : 0);
      level.consider(tryPolicy(task.graph, task.order, level.budgetBytes, disturbed));
    }
  }
};

constexpr NamedPolicy byAll{"evicting by time / (bytes x distance)", {1, 1, 1}};
constexpr NamedPolicy byBytes{"evicting by time / bytes", {1, 1, 0}};
constexpr NamedPolicy byRoot{"evicting by time / (bytes x distance^1/2)", {1, 1, 0.5}};
constexpr NamedPolicy withoutTime{"evicting by 1 / (bytes x distance)", {0, 1, 1}};
constexpr NamedPolicy byDistance{"evicting by distance", {0, 0, 1}};

} // namespace

std::vector<MethodRow> listEvictionsRows() {
  return {
      {20, "evict-time-bytes-distance", byAll.name, makeMethod<Eviction<byAll>>},
      {21, "evict-time-bytes", byBytes.name, makeMethod<Eviction<byBytes>>},
      {22, "evict-time-bytes-root", byRoot.name, makeMethod<Eviction<byRoot>>},
      {23, "evict-bytes-distance", withoutTime.name, makeMethod<Eviction<withoutTime>>},
      {24, "evict-distance", byDistance.name, makeMethod<Eviction<byDistance>>},
      {30, "disturbed-prices", "eviction under prices drawn near those of the best", makeMethod<DisturbedPrices>},
  };
}

} // namespace lowtide::solve
