//===- SolvedSteps.cpp - schedules of a step, for many budgets ------------===//
//
// Steps are few and differ early: they are compared one by one.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Portfolio/SolvedSteps.h"

namespace lowtide::solve {

SolvedStep &SolvedSteps::get(const StepGraph &graph) {
  for (const std::unique_ptr<SolvedStep> &step : steps)
    if (step->graph == graph)
      return *step;
  return *steps.emplace_back(std::make_unique<SolvedStep>(graph, packing, search));
}

} // namespace lowtide::solve
