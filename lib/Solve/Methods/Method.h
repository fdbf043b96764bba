//===- Method.h - one way to find plans -------------------------*- C++ -*-===//
//
// What the portfolio (Fit) asks of methods. Budgets, effort and the choice between plans are its own; a method answers
// what it can and leaves the rest. Each source of this folder has the rows of its methods; the build collects them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Searches/Policies.h"

#include <memory>

namespace lowtide::solve {

/// The step whose plans are looked for. Graph and order outlive the method.
struct MethodTask {
  const StepGraph &graph;
  /// Every operation once, as the program has them.
  const Schedule &order;
  /// The peak of that order, without recomputation.
  uint64_t mostBytes;
  /// Budgets of the ladder, and searches with disturbed prices at each (FitOptions).
  unsigned levels, rounds;
};

/// One budget of the ladder, and what was found there so far.
struct Level {
  /// Counts from 0, at the smallest peak.
  unsigned number = 0;
  uint64_t budgetBytes = 0;
  FittedSchedule best;
  /// Policies that know nothing of the step, as far as they were tried here; which of them found the cheapest plan.
  std::vector<const NamedPolicy *> policies = {};
  const NamedPolicy *leader = nullptr;
  double leaderSeconds = 0;

  /// Takes a plan that takes less time than the best.
  void consider(std::optional<FittedSchedule> plan) {
    if (plan && plan->timeline.seconds < best.timeline.seconds)
      best = std::move(*plan);
  }
};

/// A plan that is to take less time, or fewer bytes.
struct Improvement {
  uint64_t budgetBytes;
  const FittedSchedule &start;
  /// Effort; the same seed gives the same plan.
  unsigned rounds;
  uint64_t seed;
  /// Whether plans are welcome that are full for long: where bytes are fewest they rarely pack.
  bool mayKeepSources = true;
};

/// Of each question the answer of a method that has none is written here.
class Method {
public:
  explicit Method(const MethodTask &task) : task(task) {}
  virtual ~Method() = default;

  /// Every plan that is worth its bytes, with which the search ends; nothing if the step is too large for it.
  virtual std::optional<std::vector<FittedSchedule>> solve() { return std::nullopt; }
  /// Plans that depend on no budget, from which searches start.
  virtual std::vector<FittedSchedule> listSeeds() { return {}; }
  /// Plans that depend on no budget and from which no search starts: it might end above what it finds alone.
  virtual std::vector<FittedSchedule> listFinished() { return {}; }
  /// Policies of eviction under which the smallest peak is looked for.
  virtual std::vector<NamedPolicy> listPolicies() { return {}; }
  /// Looks for plans at a level, and then for others near the best.
  virtual void search(Level &) {}
  virtual void vary(Level &) {}
  /// A cheaper plan within the budget, or the one that was given: at every level of the search, and at every budget of
  /// the front.
  virtual FittedSchedule improveAtLevel(const Improvement &improvement) { return improvement.start; }
  virtual FittedSchedule improveAtBudget(const Improvement &improvement) { return improvement.start; }
  /// A plan within a budget below the peak of the one that was given, whatever its time; nothing if none is found.
  virtual std::optional<FittedSchedule> shrink(const Improvement &) { return std::nullopt; }

protected:
  const MethodTask task;
};

/// A row of the table.
struct MethodRow {
  /// Rows are asked in this order.
  unsigned rank;
  const char *name, *summary;
  std::unique_ptr<Method> (*make)(const MethodTask &task);
};

/// `make` of a row whose method needs nothing else.
template <typename Kind> std::unique_ptr<Method> makeMethod(const MethodTask &task) {
  return std::make_unique<Kind>(task);
}

/// All rows by rank.
const std::vector<MethodRow> &listMethodRows();

// Of every source of this folder.
#define LOWTIDE_METHODS_OF(SOURCE) std::vector<MethodRow> list##SOURCE##Rows();
#include "lowtide/Solve/Methods.inc"
#undef LOWTIDE_METHODS_OF

} // namespace lowtide::solve
