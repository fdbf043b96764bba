//===- Comparison.h - other methods at one budget ---------------*- C++ -*-===//
//
// The published methods by name, each asked for its schedule at a budget.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Searches/Baselines.h"
#include <array>
#include <string_view>

namespace lowtide::solve {

/// What --remat-strategy takes next to `fit`, in the order of the names.
enum class Strategy { None, Segments, Greedy, Cut, Rounding };
inline constexpr std::array<const char *, 5> strategyNames = {"none", "sqrt", "greedy-xla", "min-cut", "lp-rounding"};

/// Schedules of the baselines for one step and order; those that depend on no budget are made once.
class Baselines {
public:
  /// `secondsOfProgram`: time for the solver of one linear program; what it came to by then is rounded.
  Baselines(const StepGraph &graph, Schedule order, double secondsOfProgram = 120)
      : graph(graph), order(std::move(order)), secondsOfProgram(secondsOfProgram) {}

  /// Its cheapest schedule whose peak is within the budget; nothing if it has none. Rounding solves a linear
  /// program for this budget.
  std::optional<FittedSchedule> find(Strategy strategy, uint64_t budgetBytes);
  /// The cheapest within the budget of those that rounding has found so far, whatever budgets it was asked for.
  const FittedSchedule *findRounded(uint64_t budgetBytes) const;

private:
  const StepGraph &graph;
  Schedule order;
  double secondsOfProgram;
  std::optional<std::vector<FittedSchedule>> segments, cuts;
  std::vector<FittedSchedule> rounded;
};

/// The strategy of that name; nothing for other names.
std::optional<Strategy> parseStrategy(std::string_view name);

} // namespace lowtide::solve
