//===- FlowNetwork.h - minimum cuts -----------------------------*- C++ -*-===//
//
// Maximum flow after Dinic (1970); what its residual network reaches is one
// side of a minimum cut.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace lowtide::solve {

class FlowNetwork {
public:
  /// No cut goes through an edge of it.
  static constexpr int64_t infinity = std::numeric_limits<int64_t>::max() / 4;

  explicit FlowNetwork(uint32_t nodes) : heads(nodes) {}

  void addEdge(uint32_t from, uint32_t to, int64_t capacity);
  /// Nodes on the source's side of a minimum cut. Uses up the capacities: once.
  std::vector<char> cut(uint32_t source, uint32_t sink);

private:
  struct Edge {
    uint32_t to;
    int64_t capacity;
  };

  bool findLevels(uint32_t source, uint32_t sink);
  int64_t push(uint32_t node, uint32_t sink, int64_t most);

  std::vector<std::vector<uint32_t>> heads;
  std::vector<Edge> edges;
  std::vector<int> level;
  std::vector<uint32_t> next;
};

} // namespace lowtide::solve
