//===- Fit.h - the cheapest schedule under a budget -------------*- C++ -*-===//
//
// The trade of time for bytes as a whole: schedules from the smallest peak that
// was found to the peak without recomputation.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

#include <deque>
#include <memory>
#include <string>

namespace lowtide::solve {

class Method;
struct MethodTask;

struct FitOptions {
  /// Budgets between the smallest and the largest peak at which the search is
  /// made anew.
  unsigned levels = 48;
  /// Searches with disturbed prices at each level.
  unsigned rounds = 4;
  /// Operations, all rounds together, of the search for prices at the smallest budget; at the expensive budgets after
  /// it a part of that.
  size_t climbed = 60'000;
  /// Operations, times those that run again, of all rounds of exchanging recomputations at the smallest budget; at each
  /// after it a part of that.
  size_t exchanged = 24'000'000;
  /// Methods that are not asked, by name (Methods.h).
  std::vector<std::string> without = {};
};

/// Schedules of one step. What a level holds depends on the graph and the order
/// only, and each level starts from the one below: more bytes never cost time.
/// Methods (Methods.h) propose plans; budgets, effort and the choice between plans are decided here.
class Front {
public:
  /// `order` runs every operation once; it is the plan without recomputation.
  Front(const StepGraph &graph, Schedule order, const FitOptions &options = {});
  Front(const Front &) = delete;
  ~Front();

  /// The cheapest schedule found whose peak is within `budgetBytes`; null if
  /// there is none.
  const FittedSchedule *find(uint64_t budgetBytes);
  /// The schedule with the smallest peak that was found.
  const FittedSchedule &getSmallest() const;
  /// The one with which the search begins; the smallest may stand apart from it.
  const FittedSchedule &getFirst() const { return found.front(); }
  /// The one without recomputation.
  const FittedSchedule &getLargest() const { return largest; }
  /// All levels from the smallest to the largest peak, without those that cost
  /// more and need more.
  std::vector<const FittedSchedule *> getPareto();

private:
  /// Rungs from the smallest peak of the search to the one without recomputation.
  unsigned getRungs() const { return options.levels * rungsPerLevel; }
  /// Budget of a rung; the last one is the peak without recomputation.
  uint64_t getBudget(unsigned rung) const;
  /// Budget of a level of the search.
  uint64_t getSearchBudget(unsigned level) const { return getBudget(rungsBelow + level * rungsPerLevel); }
  /// Rounds of the search for prices at a level, from a schedule on.
  unsigned getClimbs(unsigned level, const FittedSchedule &start) const;
  /// Rounds of exchanging recomputations at a rung, from a schedule on.
  unsigned getExchanges(unsigned rung, const FittedSchedule &start) const;
  /// Makes the plan of a rung, or of a level of the search, cheaper.
  FittedSchedule improve(unsigned rung, uint64_t budgetBytes, const FittedSchedule &plan) const;
  FittedSchedule improveLevel(unsigned level, uint64_t budgetBytes, FittedSchedule plan) const;
  std::optional<FittedSchedule> shrink(const FittedSchedule &plan) const;
  /// Leaves those that are worth their bytes, by peak.
  void dropUseless(std::vector<FittedSchedule> &plans) const;
  void findSmallest();
  void climb();
  /// Takes `searched` one level up.
  void search();
  /// What was found at a rung.
  std::vector<const FittedSchedule *> listRung(unsigned rung) const;

  const StepGraph &graph;
  Schedule order;
  FitOptions options;
  FittedSchedule largest;
  /// Schedules that depend on no budget, by peak; more expensive ones with a larger peak are left out. What blocks
  /// keep, and a cheaper one with the smallest peak, stand apart: the search goes its own way without them.
  std::vector<FittedSchedule> seeds, apart;
  /// In the order in which they are asked.
  std::vector<std::unique_ptr<Method>> methods;
  /// By rung, so far; of a small step all that are worth their bytes, by peak.
  std::deque<FittedSchedule> found;
  /// What was found without blocks, by level from its smallest peak on. There the ladder of rungs begins, of which each
  /// level has `rungsPerLevel`; as many as `rungsBelow` below it hold plans of blocks, and what was squeezed.
  std::deque<FittedSchedule> searched;
  unsigned rungsPerLevel, rungsBelow = 0;
  bool isExact = false;
};

} // namespace lowtide::solve
