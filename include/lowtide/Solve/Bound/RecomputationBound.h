//===- RecomputationBound.h - how little can be recomputed ------*- C++ -*-===//
//
// A lower bound on the time that any schedule of a step in a given order spends
// on recomputation under a budget, by linear programming.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

#include <limits>
#include <string>

namespace lowtide::solve {

/// Steps of at most so many instructions are also solved in whole numbers by findTightestBound.
inline constexpr unsigned mostKernelsOfWholeNumbers = 160;

struct BoundOptions {
  /// Instructions at which bytes are counted, at most; 0: at all of a step that is solved in whole numbers too, at 64
  /// of others. The bound holds for every choice. Fewer make the program looser, but leave the solver time for cuts,
  /// which tighten it more.
  unsigned points = 0;
  /// Whole numbers: as good as exact, for small steps. Holds within the solver's tolerance, 1e-6 of a step.
  bool integral = false;
  /// Values may wait in another memory (addLoads): the bound is of the step's time with its lanes, beyond that of its
  /// operations. Not with whole numbers.
  bool countsLanes = false;
  /// Time for the solver. When it is over, what is known by then is the bound.
  double seconds = 120;
};

/// What a bound is.
enum class BoundKind {
  /// Shares of values are kept: the cheapest schedule may cost more.
  Relaxation,
  /// Values are there or not; whether a schedule costs as little is not known.
  WholeNumbers,
  /// A schedule within the budget costs as much, or there is none at all.
  Exact,
};

struct RecomputationBound {
  /// Any schedule that runs the operations for the first time in this order and stays within the budget spends at least
  /// so many seconds on running some of them again.
  double seconds = 0;
  /// Bytes were counted at so many of so many instructions.
  unsigned points = 0, instructions = 0;
  /// No schedule in this order stays within the budget.
  bool isInfeasible = false;
  /// The solver came to its end; otherwise the bound holds, but a better one may.
  bool isSolved = false;
  /// The step has loops, in whose rounds nothing was counted.
  bool leavesOutLoops = false;
  BoundKind kind = BoundKind::Relaxation;
  /// Of whole numbers: the schedule that costs as much as the bound, if its exact peak is within the budget. Then none
  /// is cheaper.
  std::optional<FittedSchedule> plan;
};

/// The bound for `order` (every operation once, valid) under `budgetBytes` of transient arena. Needs a solver
/// (hasLinearSolver); without one the bound is 0 and not solved.
RecomputationBound boundRecomputation(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                      const BoundOptions &options = {});

/// The relaxation's bound, and where that is below `knownSeconds` and the step is small, for at most two minutes
/// the integer program's: the larger of both. `knownSeconds`: what a schedule within the budget is known to spend.
RecomputationBound findTightestBound(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                     double knownSeconds = std::numeric_limits<double>::infinity());

/// What no schedule with `order`, loads and stores that stays within `budgetBytes` does without: seconds of the step
/// with its lanes beyond those of its operations. `knownSeconds`: what a schedule is known to take beyond them.
RecomputationBound boundLanes(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                              double knownSeconds = std::numeric_limits<double>::infinity(),
                              const BoundOptions &options = {});

/// What the bound stands on, in words: "exact", or "relaxation; bytes counted at 64 of 571 kernels; the solver's time
/// was over".
std::string describe(const RecomputationBound &bound);

} // namespace lowtide::solve
