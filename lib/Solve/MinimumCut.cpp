//===- MinimumCut.cpp - what to save, as a cut of bytes -------------------===//
//
// PyTorch's min-cut partitioner and its knapsack (functorch/partitioners.py):
// every forward value is an edge from "computed" to "saved" of its bytes; what
// may not run again hangs on the source, what backward reads on the sink.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Baselines.h"

#include <algorithm>
#include <limits>

namespace lowtide::solve {

namespace {

/// Maximum flow after Dinic (1970).
class FlowNetwork {
public:
  explicit FlowNetwork(uint32_t nodes) : heads(nodes) {}

  void addEdge(uint32_t from, uint32_t to, int64_t capacity) {
    heads[from].push_back(edges.size());
    edges.push_back({to, capacity});
    heads[to].push_back(edges.size());
    edges.push_back({from, 0});
  }

  /// Nodes on the source's side of a minimum cut.
  std::vector<char> cut(uint32_t source, uint32_t sink) {
    while (findLevels(source, sink)) {
      next.assign(heads.size(), 0);
      while (push(source, sink, infinity))
        ;
    }
    std::vector<char> side(heads.size());
    for (size_t node = 0; node < heads.size(); ++node)
      side[node] = level[node] >= 0;
    return side;
  }

  static constexpr int64_t infinity = std::numeric_limits<int64_t>::max() / 4;

private:
  struct Edge {
    uint32_t to;
    int64_t capacity;
  };

  bool findLevels(uint32_t source, uint32_t sink) {
    level.assign(heads.size(), -1);
    level[source] = 0;
    std::vector<uint32_t> queue{source};
    for (size_t i = 0; i < queue.size(); ++i)
      for (uint32_t edge : heads[queue[i]])
        if (edges[edge].capacity > 0 && level[edges[edge].to] < 0) {
          level[edges[edge].to] = level[queue[i]] + 1;
          queue.push_back(edges[edge].to);
        }
    return level[sink] >= 0;
  }

  int64_t push(uint32_t node, uint32_t sink, int64_t most) {
    if (node == sink)
      return most;
    for (uint32_t &i = next[node]; i < heads[node].size(); ++i) {
      const uint32_t edge = heads[node][i];
      if (edges[edge].capacity <= 0 || level[edges[edge].to] != level[node] + 1)
        continue;
      if (int64_t pushed = push(edges[edge].to, sink, std::min(most, edges[edge].capacity))) {
        edges[edge].capacity -= pushed;
        edges[edge ^ 1].capacity += pushed;
        return pushed;
      }
    }
    return 0;
  }

  std::vector<std::vector<uint32_t>> heads;
  std::vector<Edge> edges;
  std::vector<int> level;
  std::vector<uint32_t> next;
};

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
  // Dear operations do more than four times as much per byte as the median.
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
  const double dear = 4 * sorted[sorted.size() / 2];
  std::vector<char> mayRun(graph.operations.size(), false);
  std::vector<uint32_t> banned;
  for (uint32_t op = 0; op < graph.operations.size(); ++op)
    if (graph.operations[op].isForward && findRerun(graph, op)) {
      mayRun[op] = intensity[op] <= dear;
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
