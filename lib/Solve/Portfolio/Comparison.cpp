//===- Comparison.cpp - other methods at one budget -----------------------===//
#include "lowtide/Solve/Portfolio/Comparison.h"
#include "lowtide/Solve/Portfolio/LoopFit.h"

#include <algorithm>

namespace lowtide::solve {

std::optional<Strategy> parseStrategy(std::string_view name) {
  auto it = std::find(strategyNames.begin(), strategyNames.end(), name);
  return it == strategyNames.end() ? std::nullopt : std::optional(Strategy(it - strategyNames.begin()));
}

static const FittedSchedule *findCheapest(const std::vector<FittedSchedule> &plans, uint64_t budgetBytes) {
  const FittedSchedule *best = nullptr;
  for (const FittedSchedule &plan : plans)
    if (plan.timeline.peakBytes <= budgetBytes && (!best || plan.timeline.seconds < best->timeline.seconds))
      best = &plan;
  return best;
}

const FittedSchedule *Baselines::findRounded(uint64_t budgetBytes) const { return findCheapest(rounded, budgetBytes); }

std::optional<FittedSchedule> Baselines::find(Strategy strategy, uint64_t budgetBytes) {
  auto remember = [&](std::optional<FittedSchedule> plan) {
    if (plan && strategy == Strategy::Rounding)
      rounded.push_back(*plan);
    return plan;
  };
  if (!graph.loops.empty())
    return remember(planAroundLoops(
        graph, budgetBytes, [&](const StepGraph &plain, std::span<const uint32_t> given, uint64_t bytes) {
          return Baselines(plain, Schedule(given.begin(), given.end()), secondsOfProgram).find(strategy, bytes);
        }));
  auto cheapest = [&](std::optional<std::vector<FittedSchedule>> &plans, auto &make) -> std::optional<FittedSchedule> {
    if (!plans)
      plans = make(graph, order);
    const FittedSchedule *best = findCheapest(*plans, budgetBytes);
    return best ? std::optional(*best) : std::nullopt;
  };
  switch (strategy) {
  case Strategy::None: {
    std::optional<Timeline> timeline = evaluate(graph, order);
    if (!timeline || timeline->peakBytes > budgetBytes)
      return std::nullopt;
    return FittedSchedule{order, std::move(*timeline), "no recomputation"};
  }
  case Strategy::Segments:
    return cheapest(segments, planSegments);
  case Strategy::Cut:
    return cheapest(cuts, planCuts);
  case Strategy::Greedy:
    return planGreedily(graph, order, budgetBytes);
  case Strategy::Rounding:
    return remember(planByRounding(graph, order, budgetBytes, secondsOfProgram));
  }
  return std::nullopt;
}

} // namespace lowtide::solve
