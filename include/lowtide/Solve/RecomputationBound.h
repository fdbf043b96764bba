//===- RecomputationBound.h - how little can be recomputed ------*- C++ -*-===//
//
// A lower bound on the time that any schedule of a step in a given order spends
// on recomputation under a budget, by linear programming.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Fit.h"

namespace lowtide::solve {

struct BoundOptions {
  /// Instructions at which bytes are counted, at most. The bound holds for every choice; fewer make it looser.
  unsigned moments = 160;
  /// Whole numbers: as good as exact, for small steps.
  bool integral = false;
  /// Time for the solver. When it is over, what is known by then is the bound.
  double seconds = 120;
};

struct RecomputationBound {
  /// Any schedule that runs the operations for the first time in this order and stays within the budget spends at least
  /// so many seconds on running some of them again.
  double seconds = 0;
  /// Bytes were counted at so many of so many instructions.
  unsigned moments = 0, instructions = 0;
  /// No schedule in this order stays within the budget.
  bool isInfeasible = false;
  /// The solver came to its end; otherwise the bound holds, but a better one may.
  bool isSolved = false;
  /// Of whole numbers: the schedule that costs as much as the bound, if its exact peak is within the budget. Then none
  /// is cheaper.
  std::optional<FittedSchedule> plan;
};

/// The bound for `order` (every operation once, valid) under `budgetBytes` of transient arena. Needs a solver
/// (hasLinearSolver); without one the bound is 0 and not solved.
RecomputationBound boundRecomputation(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                      const BoundOptions &options = {});

} // namespace lowtide::solve
