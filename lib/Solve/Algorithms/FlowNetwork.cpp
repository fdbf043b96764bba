//===- FlowNetwork.cpp - minimum cuts -------------------------------------===//
#include "lowtide/Solve/Algorithms/FlowNetwork.h"

#include <algorithm>

namespace lowtide::solve {

void FlowNetwork::addEdge(uint32_t from, uint32_t to, int64_t capacity) {
  heads[from].push_back(edges.size());
  edges.push_back({to, capacity});
  heads[to].push_back(edges.size());
  edges.push_back({from, 0});
}

std::vector<char> FlowNetwork::cut(uint32_t source, uint32_t sink) {
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

bool FlowNetwork::findLevels(uint32_t source, uint32_t sink) {
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

int64_t FlowNetwork::push(uint32_t node, uint32_t sink, int64_t most) {
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

} // namespace lowtide::solve
