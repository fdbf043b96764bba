//===- Policies.cpp - policies of eviction by name ------------------------===//
#include "Policies.h"
#include "../Model/Walk.h"

namespace lowtide::solve {

std::optional<FittedSchedule> tryPolicy(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                        const NamedPolicy &candidate) {
  std::optional<Schedule> schedule = evictUnder(graph, order, budgetBytes, candidate.policy);
  if (!schedule)
    return std::nullopt;
  Walk walk(graph);
  std::optional<Timeline> timeline = walk.evaluate(*schedule);
  if (!timeline || timeline->peakBytes > budgetBytes)
    return std::nullopt;
  dropRecomputations(graph, budgetBytes, *schedule, *timeline, walk);
  return FittedSchedule{std::move(*schedule), std::move(*timeline), candidate.name};
}

std::vector<double> listRecomputedSeconds(const StepGraph &graph, const Schedule &schedule) {
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

std::vector<char> listRecomputed(const StepGraph &graph, const Schedule &schedule) {
  std::vector<char> recomputed;
  for (double seconds : listRecomputedSeconds(graph, schedule))
    recomputed.push_back(seconds > 0);
  return recomputed;
}

} // namespace lowtide::solve
