//===- OnDemand.h - recompute what is missing when it is read ---*- C++ -*-===//
//
// Writes a schedule from decisions about what is forgotten when.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

#include <functional>

namespace lowtide::solve {

/// Runs an order; what was forgotten is recomputed, with all that it needs, directly before its next reader.
class OnDemand {
public:
  OnDemand(const StepGraph &graph, std::span<const uint32_t> order)
      : graph(graph), order(order), there(graph.values.size(), true), updated(graph.values.size(), false) {}

  /// `forget` sees each position before it runs, and clears the marks of values that it forgets. Such a value must have
  /// a maker (findMaker). False if an argument that is needed was updated: `missing` must not be forgotten.
  bool run(const std::function<void(uint32_t position, std::vector<char> &there)> &forget);

  /// Makes the value again if it was forgotten, with all that it needs; false as above. For use by `forget`.
  bool provide(uint32_t value);

  Schedule schedule;
  uint32_t missing = 0;

private:
  const StepGraph &graph;
  std::span<const uint32_t> order;
  std::vector<char> there, updated;
};

} // namespace lowtide::solve
