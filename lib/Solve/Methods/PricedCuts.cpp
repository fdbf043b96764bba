//===- PricedCuts.cpp - saved sets for all prices of bytes ----------------===//
//
// What is saved when bytes have a price is a plan to start from, and a guide for eviction: what a cut saves goes last,
// what it does not goes first.
//
//===----------------------------------------------------------------------===//
#include "../Searches/PricedCut.h"
#include "Method.h"
#include "lowtide/Solve/Searches/Baselines.h"

namespace lowtide::solve {
namespace {

class PricedCuts : public Method {
public:
  using Method::Method;

  std::vector<FittedSchedule> listSeeds() override {
    std::vector<FittedSchedule> seeds;
    for (const std::vector<SavedSet> &family : listPricedCuts(task.graph, task.order)) {
      for (const SavedSet &saved : family)
        seeds.push_back(planFromSaved(task.graph, task.order, saved, "cut by price"));
      // Neighbours tell the doubtful from the sure.
      Guides &line = guides.emplace_back();
      for (size_t i = 0; i < family.size(); ++i) {
        std::vector<double> &weights = line.weights.emplace_back(task.graph.values.size(), 0);
        for (size_t k : {i ? i - 1 : 0, i, i, std::min(i + 1, family.size() - 1)})
          for (uint32_t value = 0; value < weights.size(); ++value)
            if (task.graph.values[value].isForward)
              weights[value] += family[k][value] ? 1.5 : -1.5;
      }
      line.at = line.weights.size() - 1;
    }
    return seeds;
  }

  std::vector<NamedPolicy> listPolicies() override {
    std::vector<NamedPolicy> policies;
    for (const Guides &line : guides)
      policies.push_back(guide(line.weights.back()));
    return policies;
  }

  void search(Level &level) override {
    for (Guides &line : guides) {
      // Towards lower prices, since there are more bytes than at the level below; one step back.
      double least = 0;
      size_t start = std::min(line.at + 1, line.weights.size() - 1), at = line.at;
      for (size_t i = start + 1; i-- > 0 && i + 2 >= at;) {
        std::optional<FittedSchedule> plan =
            tryPolicy(task.graph, task.order, level.budgetBytes, guide(line.weights[i]));
        if (plan && (!least || plan->timeline.seconds < least)) {
          least = plan->timeline.seconds;
          at = i;
        }
        level.consider(std::move(plan));
      }
      line.at = at;
    }
  }

private:
  /// Weights for policies, of which a line goes from low prices of bytes to high ones; and where on its line the level
  /// below found its best.
  struct Guides {
    std::vector<std::vector<double>> weights;
    size_t at = 0;
  };
  static NamedPolicy guide(const std::vector<double> &weights) { return {"evicting by price", {1, 1, 1, weights}}; }

  std::vector<Guides> guides;
};

} // namespace

std::vector<MethodRow> listPricedCutsRows() {
  return {
      {25, "priced-cuts", "what to save when bytes have a price, and eviction guided by it", makeMethod<PricedCuts>}};
}

} // namespace lowtide::solve
