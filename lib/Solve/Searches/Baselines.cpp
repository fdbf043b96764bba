//===- Baselines.cpp - published ways to save memory ----------------------===//
//
// Segments, and XLA's greedy choice; the cut is in MinimumCut.cpp, the rounded
// linear program in LpRounding.cpp.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Searches/Baselines.h"
#include "../Model/Walk.h"
#include "OnDemand.h"

#include <algorithm>
#include <cmath>

namespace lowtide::solve {

FittedSchedule planFromSaved(const StepGraph &graph, std::span<const uint32_t> order, std::vector<char> saved,
                             const char *method) {
  // A value is forgotten after its last forward reader: what counts as backward may begin long before the loss.
  std::vector<uint32_t> lastForward(graph.values.size(), 0);
  auto forEachForward = [&](uint32_t position, auto visit) {
    const StepOperation &operation = graph.operations[order[position]];
    for (const std::vector<uint32_t> *values : {&operation.reads, &operation.writes})
      for (uint32_t value : *values)
        if (operation.isForward && graph.values[value].producer >= 0)
          visit(value);
  };
  for (uint32_t position = 0; position < order.size(); ++position)
    forEachForward(position, [&](uint32_t value) { lastForward[value] = position; });
  for (;;) {
    OnDemand writer(graph, order);
    auto forget = [&](uint32_t position, std::vector<char> &there) {
      if (position)
        forEachForward(position - 1, [&](uint32_t value) {
          if (lastForward[value] == position - 1)
            there[value] = saved[value] || !findMaker(graph, value);
        });
    };
    if (writer.run(forget)) {
      FittedSchedule plan{std::move(writer.schedule), {}, method};
      plan.timeline = evaluate(graph, plan.schedule).value_or(Timeline{UINT64_MAX});
      return plan;
    }
    saved[writer.missing] = true;
  }
}

std::vector<FittedSchedule> planSegments(const StepGraph &graph, std::span<const uint32_t> order) {
  std::vector<FittedSchedule> plans;
  std::vector<uint32_t> forward;
  uint64_t total = 0;
  for (uint32_t op : order)
    if (graph.operations[op].isForward) {
      forward.push_back(op);
      for (uint32_t value : graph.operations[op].writes)
        total += graph.size(value);
    }
  const unsigned most = std::min<unsigned>(forward.size(), 4 * unsigned(std::sqrt(double(forward.size()))) + 2);
  std::vector<uint32_t> segment(graph.operations.size(), UINT32_MAX);
  for (unsigned count = 1; count <= most; ++count) {
    uint64_t seen = 0;
    for (uint32_t op : forward) {
      segment[op] = total ? uint32_t(double(seen) * count / double(total + 1)) : 0;
      for (uint32_t value : graph.operations[op].writes)
        seen += graph.size(value);
    }
    std::vector<char> saved(graph.values.size(), false);
    for (uint32_t op : forward)
      for (uint32_t value : graph.operations[op].reads)
        if (graph.values[value].producer >= 0 && segment[uint32_t(graph.values[value].producer)] != segment[op])
          saved[value] = true;
    plans.push_back(planFromSaved(graph, order, std::move(saved), "segments"));
  }
  return plans;
}

std::optional<FittedSchedule> planGreedily(const StepGraph &graph, std::span<const uint32_t> order,
                                           uint64_t budgetBytes) {
  Schedule schedule(order.begin(), order.end());
  Walk walk(graph);
  std::optional<Timeline> timeline = walk.evaluate(schedule);
  std::vector<std::optional<uint32_t>> makers;
  for (uint32_t value = 0; value < graph.values.size(); ++value)
    makers.push_back(findMaker(graph, value));
  const size_t longest = 4 * order.size();
  uint32_t now = 0;
  while (timeline && schedule.size() < longest) {
    while (now < timeline->live.size() && timeline->live[now] <= budgetBytes)
      ++now;
    if (now >= schedule.size())
      break;
    // What is there now, when it is read next, and whether what it is made from is there then.
    std::vector<uint32_t> next(graph.values.size(), UINT32_MAX), last(graph.values.size(), 0);
    std::vector<char> made(graph.values.size(), false), readNow(graph.values.size(), false);
    for (uint32_t at = 0; at < schedule.size(); ++at) {
      const StepOperation &operation = graph.at(schedule[at]);
      for (uint32_t value : operation.reads) {
        if (at > now)
          next[value] = std::min(next[value], at);
        last[value] = at;
        readNow[value] = readNow[value] || at == now;
      }
      if (at < now)
        for (uint32_t value : operation.writes)
          made[value] = true;
    }
    int64_t mostReduced = 0;
    uint32_t best = UINT32_MAX;
    for (uint32_t value = 0; value < graph.values.size(); ++value) {
      const StepValue &facts = graph.values[value];
      if (!made[value] || readNow[value] || next[value] == UINT32_MAX || facts.placed || facts.kept || !makers[value])
        continue;
      int64_t reduced = int64_t(graph.size(value));
      for (uint32_t read : graph.at(*makers[value]).reads)
        if (!graph.values[read].placed && last[read] < next[value])
          reduced -= int64_t(graph.size(read));
      if (reduced > mostReduced) {
        mostReduced = reduced;
        best = value;
      }
    }
    if (best == UINT32_MAX) {
      ++now;
      continue;
    }
    Schedule longer = schedule;
    longer.insert(longer.begin() + next[best], *makers[best]);
    std::optional<Timeline> result = walk.evaluate(longer);
    if (!result || result->live[now] >= timeline->live[now]) {
      ++now;
      continue;
    }
    schedule = std::move(longer);
    timeline = std::move(result);
  }
  if (!timeline || timeline->peakBytes > budgetBytes)
    return std::nullopt;
  return FittedSchedule{std::move(schedule), std::move(*timeline), "greedy by bytes"};
}

} // namespace lowtide::solve
