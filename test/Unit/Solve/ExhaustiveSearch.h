//===- ExhaustiveSearch.h - the cheapest schedule, by trying all -*- C++ -*-===//
//
// An oracle for small steps: shortest path over (how far the order is, what is
// there), with nothing in common with the search and the programs that it
// judges but the rules of the count.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

#include <map>
#include <queue>

namespace lowtide::solve {

/// Least seconds of any schedule in `order` whose peak is within the budget; nothing if none is. For steps of at most
/// 24 values that operations make.
class ExhaustiveSearch {
public:
  ExhaustiveSearch(const StepGraph &graph, const Schedule &order, uint64_t budget)
      : graph(graph), order(order), budget(budget), bit(graph.values.size(), 0) {
    unsigned count = 0;
    for (uint32_t v = 0; v < graph.values.size(); ++v)
      if (graph.values[v].producer >= 0 && !graph.values[v].placed)
        bit[v] = 1u << count++;
  }

  std::optional<double> run() {
    queue.push({0, {0, 0}});
    least[{0, 0}] = 0;
    while (!queue.empty()) {
      auto [seconds, state] = queue.top();
      queue.pop();
      if (least[state] < seconds)
        continue;
      if (state.first == order.size())
        return seconds;
      const auto [position, there] = state;
      // Forget anything that may be forgotten.
      for (uint32_t v = 0; v < graph.values.size(); ++v)
        if ((there & bit[v]) && !graph.values[v].kept)
          offer(seconds, position, there & ~bit[v]);
      step(seconds, position, there, order[position], position + 1);
      std::vector<char> updated(graph.values.size(), false);
      for (uint32_t p = 0; p < position; ++p)
        for (uint32_t v : graph.operations[order[p]].updates)
          updated[v] = true;
      for (uint32_t p = 0; p < position; ++p) {
        std::vector<uint32_t> all;
        for (uint32_t part : graph.operations[order[p]].reruns)
          all.push_back(graph.operations.size() + part);
        if (isRecomputable(graph, order[p]))
          all.push_back(order[p]);
        for (uint32_t op : all) {
          bool possible = true;
          for (uint32_t v : graph.at(op).reads)
            possible &= graph.values[v].producer >= 0 || !updated[v];
          if (possible)
            step(seconds, position, there, op, position);
        }
      }
    }
    return std::nullopt;
  }

private:
  using State = std::pair<uint32_t, uint32_t>;

  uint64_t sizeOf(uint32_t mask) const {
    uint64_t bytes = 0;
    for (uint32_t v = 0; v < graph.values.size(); ++v)
      if (mask & bit[v])
        bytes += graph.size(v);
    return bytes;
  }

  void offer(double seconds, uint32_t position, uint32_t there) {
    auto [it, isNew] = least.try_emplace({position, there}, seconds);
    if (!isNew && it->second <= seconds)
      return;
    it->second = seconds;
    queue.push({seconds, {position, there}});
  }

  /// Runs `op`; which of its operands die there is tried in every way.
  void step(double seconds, uint32_t position, uint32_t there, uint32_t op, uint32_t next) {
    const StepOperation &operation = graph.at(op);
    uint32_t reads = 0, writes = 0;
    for (uint32_t v : operation.reads)
      reads |= bit[v];
    for (uint32_t v : operation.writes)
      writes |= bit[v];
    if ((there & reads) != reads)
      return;
    there &= ~writes; // an older result is of no use
    uint32_t mortal = 0;
    for (uint32_t v : operation.reads)
      if (!graph.values[v].kept)
        mortal |= bit[v];
    for (uint32_t dying = mortal;; dying = (dying - 1) & mortal) {
      uint32_t taken = 0;
      uint64_t bytes = sizeOf(there) + graph.workspace(op);
      for (size_t i = 0; i < operation.writes.size(); ++i) {
        const uint32_t result = operation.writes[i];
        if (!bit[result])
          continue;
        bool over = false;
        for (uint32_t v : operation.overwrites[i])
          if (!over && (dying & bit[v]) && !(taken & bit[v]) && graph.values[v].bytes == graph.values[result].bytes &&
              graph.values[v].bytes) {
            taken |= bit[v];
            over = true;
          }
        if (!over)
          bytes += graph.size(result);
      }
      if (bytes <= budget)
        offer(seconds + operation.seconds, next, (there & ~dying) | writes);
      if (!dying)
        break;
    }
  }

  struct Later {
    bool operator()(const std::pair<double, State> &a, const std::pair<double, State> &b) const {
      return a.first > b.first;
    }
  };

  const StepGraph &graph;
  const Schedule &order;
  const uint64_t budget;
  std::vector<uint32_t> bit;
  std::map<State, double> least;
  std::priority_queue<std::pair<double, State>, std::vector<std::pair<double, State>>, Later> queue;
};

} // namespace lowtide::solve
