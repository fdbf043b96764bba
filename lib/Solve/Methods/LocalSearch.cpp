//===- LocalSearch.cpp - recomputations exchanged -------------------------===//
#include "Method.h"
#include "lowtide/Solve/Searches/RematLocalSearch.h"

namespace lowtide::solve {
namespace {

class Exchange : public Method {
public:
  using Method::Method;
  FittedSchedule improveAtBudget(const Improvement &improvement) override {
    return searchRematNearby(task.graph, improvement.budgetBytes, improvement.start,
                             {improvement.rounds, improvement.seed, improvement.mayKeepSources});
  }
};

class Shrink : public Method {
public:
  using Method::Method;
  std::optional<FittedSchedule> shrink(const Improvement &improvement) override {
    return shrinkPeak(task.graph, improvement.budgetBytes, improvement.start, improvement.rounds, improvement.seed);
  }
};

} // namespace

std::vector<MethodRow> listLocalSearchRows() {
  return {
      {51, "exchange", "some recomputations out, others in, near a plan", makeMethod<Exchange>},
      {52, "shrink", "more recomputations until the smallest plan is smaller", makeMethod<Shrink>},
  };
}

} // namespace lowtide::solve
