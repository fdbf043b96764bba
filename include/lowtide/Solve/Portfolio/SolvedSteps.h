//===- SolvedSteps.h - schedules of a step, for many budgets ----*- C++ -*-===//
//
// What was searched for one budget answers the next: schedules and their arenas
// depend on the step only.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Portfolio/PackedPlans.h"

namespace lowtide::solve {

/// A step, its schedules and their arenas.
struct SolvedStep {
  SolvedStep(const StepGraph &graph, const PackingOptions &packing, const FitOptions &search = {})
      : graph(graph), front(this->graph, search), plans(this->graph, front, packing) {}
  SolvedStep(const SolvedStep &) = delete;

  const StepGraph graph;
  LoopFront front;
  PackedPlans plans;
};

/// Steps that were asked about.
class SolvedSteps {
public:
  explicit SolvedSteps(const PackingOptions &packing, FitOptions search = {})
      : packing(packing), search(std::move(search)) {}

  /// The same for equal graphs; stays where it is.
  SolvedStep &get(const StepGraph &graph);

private:
  const PackingOptions packing;
  const FitOptions search;
  std::vector<std::unique_ptr<SolvedStep>> steps;
};

} // namespace lowtide::solve
