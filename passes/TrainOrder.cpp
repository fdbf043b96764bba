//===- TrainOrder.cpp - the order in which a step needs few bytes ---------===//
//
// Poses each step as a scheduling problem, asks Solve/Ordering for few bytes
// alive and Solve/PackedPlans for an order that packs, and moves the
// instructions.
//
//===----------------------------------------------------------------------===//
#include "PlanLayout.h"
#include "StepFacts.h"
#include "StepPass.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Solve/Portfolio/PackedPlans.h"
#include "lowtide/Solve/Searches/Ordering.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_TRAINORDER
#include "Passes.h.inc"
} // namespace lowtide

namespace {

class TrainOrder : public StepPass<lowtide::impl::TrainOrderBase<TrainOrder>> {
public:
  using StepPass::StepPass;

  void getDependentDialects(DialectRegistry &registry) const override {
    codegen::KernelModule::registerDialects(registry);
  }

  void runOnSteps() override {
    auto &facts = getAnalysis<StepFacts>();
    if (failed(facts.update(target)))
      return signalPassFailure();
    for (auto step : getOperation().getOps<func::FuncOp>())
      if (failed(order(step, facts.getTable())))
        return signalPassFailure();
    markAnalysesPreserved<StepFacts>();
  }

private:
  LogicalResult order(func::FuncOp step, FactsTable &facts);
};

} // namespace

/// Whether a loop's rounds get an order of their own: it needs fewer bytes than the one that they have.
static bool isBodyChanged(const solve::Ordering &order) {
  return llvm::any_of(order.bodies, [](const solve::Ordering &body) {
    return StringRef(body.method) != "as given" || isBodyChanged(body);
  });
}

LogicalResult TrainOrder::order(func::FuncOp step, FactsTable &facts) {
  FailureOr<MemoryProfile> before = MemoryProfile::compute(step, facts);
  FailureOr<StepProblem> problem = StepProblem::pose(step, facts, CostModel::get(target));
  if (failed(before) || failed(problem))
    return failure();
  solve::Ordering best = solve::findOrder(problem->getGraph());
  if (best.schedule.empty())
    return success();
  const uint64_t givenBytes = before->getPeakBytes();
  const solve::StepGraph &graph = problem->getGraph();
  // An argument may be updated in front of its last reader: then the given order is none that a budget could begin
  // with.
  const bool isGivenValid = solve::evaluate(graph, solve::originalSchedule(graph)).has_value();
  const bool isLower = !isGivenValid || best.timeline.peakBytes < givenBytes || isBodyChanged(best);
  solve::PackingOptions options = getPlanPacking();
  options.nearness = 250; // plan-place looks for the rest
  solve::PackedPlan packed;
  // Where no budget follows, this order is the plan's.
  if (isLower || StringRef(best.method) == "as given")
    packed = solve::packPlan(graph, best, options, /*mostOrders=*/64);
  if (!isLower && !packed.isReordered) {
    step.emitRemark("@") << step.getSymName() << ": peak " << formatBytes(givenBytes)
                         << " as given: no order that was tried needs less";
    return success();
  }
  problem->apply(packed.plan, facts);
  ++numReordered;
  InFlightDiagnostic remark = step.emitRemark("@") << step.getSymName() << ": peak " << formatBytes(givenBytes);
  if (isLower)
    remark << " → " << formatBytes(best.timeline.peakBytes) << " by order (" << best.method << ")";
  if (packed.isReordered)
    remark << "; moved instructions for an arena of " << formatBytes(packed.arenaBytes) << ", "
           << formatBytes(packed.boundBytes) << " of it alive at once";
  for (const solve::Ordering &body : best.bodies)
    remark.attachNote() << "a round of a loop in it has a peak of " << formatBytes(body.timeline.peakBytes) << " ("
                        << body.method << ")";
  return success();
}
