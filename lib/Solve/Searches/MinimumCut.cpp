//===- MinimumCut.cpp - what to save, as a cut of bytes -------------------===//
//
// PyTorch's min-cut partitioner and its knapsack (functorch/partitioners.py):
// every forward value is an edge from "computed" to "saved" of its bytes; what
// may not run again hangs on the source, what backward reads on the sink.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Algorithms/FlowNetwork.h"
#include "lowtide/Solve/Searches/Baselines.h"

#include <algorithm>

namespace lowtide::solve {

namespace {

/// Forward values that are saved if only operations of `mayRun` run again.
std::vector<char> cutSaved(const StepGraph &graph, const std::vector<char> &mayRun) {
  const uint32_t numValues = graph.values.size(), source = 2 * numValues, sink = source + 1;
  FlowNetwork network(2 * numValues + 2);
  auto isForward = [&](uint32_t value) {
    const int32_t producer = graph.values[value].producer;
    return producer >= 0 && graph.operations[uint32_t(producer)].isForward && !graph.values[value].placed;
  };
  for (uint32_t op = 0; op < graph.operations.size(); ++op) {
    const StepOperation &operation = graph.operations[op];
    for (uint32_t result : operation.writes) {
      if (!isForward(result))
        continue;
      // What stays anyhow costs nothing to save.
      network.addEdge(2 * result, 2 * result + 1, graph.values[result].kept ? 0 : int64_t(graph.size(result)));
      if (!mayRun[op])
        network.addEdge(source, 2 * result, FlowNetwork::infinity);
      for (uint32_t read : operation.reads)
        if (isForward(read))
          network.addEdge(2 * read + 1, 2 * result, FlowNetwork::infinity);
    }
    if (!operation.isForward)
      for (uint32_t read : operation.reads)
        if (isForward(read))
          network.addEdge(2 * read + 1, sink, FlowNetwork::infinity);
  }
  std::vector<char> side = network.cut(source, sink), saved(numValues, false);
  for (uint32_t value = 0; value < numValues; ++value)
    saved[value] = isForward(value) && side[2 * value] && !side[2 * value + 1];
  return saved;
}

} // namespace

std::vector<FittedSchedule> planCuts(const StepGraph &graph, std::span<const uint32_t> order) {
  // Expensive operations do more than four times as much per byte as the median.
  std::vector<double> intensity(graph.operations.size(), 0);
  std::vector<double> sorted;
  for (uint32_t op = 0; op < graph.operations.size(); ++op) {
    uint64_t bytes = 1;
    for (uint32_t value : graph.operations[op].writes)
      bytes += graph.size(value);
    intensity[op] = graph.operations[op].seconds / double(bytes);
    if (graph.operations[op].isForward)
      sorted.push_back(intensity[op]);
  }
  if (sorted.empty())
    return {};
  std::sort(sorted.begin(), sorted.end());
  const double expensive = 4 * sorted[sorted.size() / 2];
  std::vector<char> mayRun(graph.operations.size(), false);
  std::vector<uint32_t> banned;
  for (uint32_t op = 0; op < graph.operations.size(); ++op)
    if (graph.operations[op].isForward && !listReruns(graph, op).empty()) {
      mayRun[op] = intensity[op] <= expensive;
      if (!mayRun[op])
        banned.push_back(op);
    }
  std::sort(banned.begin(), banned.end(),
            [&](uint32_t a, uint32_t b) { return std::pair(intensity[a], a) < std::pair(intensity[b], b); });
  std::vector<FittedSchedule> plans;
  plans.push_back(
      planFromSaved(graph, order, cutSaved(graph, std::vector<char>(graph.operations.size(), false)), "minimum cut"));
  const unsigned levels = 16;
  for (unsigned level = 0; level <= levels; ++level) {
    for (size_t i = 0; i < banned.size() * level / levels; ++i)
      mayRun[banned[i]] = true;
    plans.push_back(planFromSaved(graph, order, cutSaved(graph, mayRun), "minimum cut"));
  }
  return plans;
}

} // namespace lowtide::solve
