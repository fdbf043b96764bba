//===- Published.cpp - what published methods save ------------------------===//
#include "../Model/Ladder.h"
#include "Method.h"
#include "lowtide/Solve/Searches/Baselines.h"

namespace lowtide::solve {
namespace {

class Segments : public Method {
public:
  using Method::Method;
  std::vector<FittedSchedule> listSeeds() override { return planSegments(task.graph, task.order); }
};

class MinimumCuts : public Method {
public:
  using Method::Method;
  std::vector<FittedSchedule> listSeeds() override { return planCuts(task.graph, task.order); }
};

class Greedy : public Method {
public:
  using Method::Method;
  std::vector<FittedSchedule> listSeeds() override {
    // Of a large step it takes long and is far from the others.
    const size_t length = task.order.size();
    if (length > 512)
      return {};
    std::vector<FittedSchedule> plans;
    const auto rungs = unsigned(std::clamp<size_t>(1'000'000 / (length * length + 1), 48, 512));
    const uint64_t low = findLowerBound(task.graph).bytes;
    for (unsigned rung = 0; rung < rungs; ++rung)
      if (std::optional<FittedSchedule> plan =
              planGreedily(task.graph, task.order, getRung(low, task.mostBytes, rung, rungs)))
        plans.push_back(std::move(*plan));
    return plans;
  }
};

} // namespace

std::vector<MethodRow> listPublishedRows() {
  return {
      {10, "segments", "segments of equal bytes (Chen et al. 2016)", makeMethod<Segments>},
      {11, "minimum-cuts", "cuts of the fewest saved bytes, as PyTorch's partitioner makes them",
       makeMethod<MinimumCuts>},
      {12, "greedy", "at the peak, what frees the most bytes, as XLA chooses", makeMethod<Greedy>},
  };
}

} // namespace lowtide::solve
