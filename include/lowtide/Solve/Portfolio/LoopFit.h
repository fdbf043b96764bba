//===- LoopFit.h - the cheapest schedule of a step with loops ---*- C++ -*-===//
//
// The trade of time for bytes of a step whose loops have trades of their own: a
// body's plans are what the loop may take, the step's plans are made around it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Portfolio/Fit.h"

#include <functional>
#include <map>
#include <memory>

namespace lowtide::solve {

/// Schedules of one step with its loops; of a step without, those of `Front`.
/// What a budget gets depends on the graph only, and more bytes never cost time.
class LoopFront {
public:
  /// The order of the program is the plan without recomputation.
  explicit LoopFront(const StepGraph &graph, const FitOptions &options = {});
  LoopFront(LoopFront &&) = default;

  /// Whether the order of the program is valid, bodies included.
  bool isValid() const { return !largest.timeline.live.empty(); }
  /// The cheapest schedule found whose peak is within `budgetBytes`; null if there is none.
  const FittedSchedule *find(uint64_t budgetBytes);
  /// The schedule with the smallest peak that was found.
  const FittedSchedule &getSmallest();
  /// The one with which the search begins; the smallest may stand apart from it.
  const FittedSchedule &getFirst();
  /// The one without recomputation.
  const FittedSchedule &getLargest() const { return largest; }
  /// Plans of every peak, without those that cost more and need more.
  std::vector<const FittedSchedule *> getPareto();

private:
  /// The step around one plan of each body.
  struct Variant {
    std::vector<FittedSchedule> bodies;
    StepGraph graph;
    FittedSchedule plain;
    std::unique_ptr<Front> front;
  };

  bool isChoice();
  uint64_t getBodyBudget(size_t loop, unsigned level);
  /// The variant of a level, the same as that below where no body changes; null if the bodies' plans are not within
  /// `limit` bytes.
  Variant *getVariant(unsigned level, uint64_t limit);
  Variant makeVariant(std::vector<FittedSchedule> bodies);
  Front &getFront(Variant &variant);
  /// Adds the bodies to a plan of the step around them.
  const FittedSchedule *complete(const Variant &variant, const FittedSchedule *plan);

  const StepGraph &graph;
  FitOptions options;
  std::vector<LoopFront> bodies;
  FittedSchedule largest;
  unsigned levels = 1;
  /// Every so many levels the step around the bodies recomputes too.
  unsigned stride = 1;
  /// By level; several levels share one.
  std::vector<std::shared_ptr<Variant>> variants;
  std::map<const FittedSchedule *, std::unique_ptr<FittedSchedule>> completed;
};

/// Plans one timeline in the given order within a budget; nothing if it finds none.
using Planner = std::function<std::optional<FittedSchedule>(const StepGraph &, std::span<const uint32_t> order,
                                                            uint64_t budgetBytes)>;

/// A step with loops by a method that knows no loops: the bodies within what the budget leaves them next to the loop's
/// operands and results (as they are where the method finds nothing), then the step around them.
std::optional<FittedSchedule> planAroundLoops(const StepGraph &graph, uint64_t budgetBytes, const Planner &planner);

} // namespace lowtide::solve
