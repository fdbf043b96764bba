//===- TrainOrder.cpp - the order in which a step needs few bytes ---------===//
//
// Poses each step as a scheduling problem, asks Solve/Ordering for few bytes
// alive and Solve/PackedPlans for an order that packs, and moves the
// instructions.
//
//===----------------------------------------------------------------------===//
#include "Passes.h"
#include "PlanLayout.h"
#include "StepFacts.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Solve/Ordering.h"
#include "lowtide/Solve/PackedPlans.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_TRAINORDER
#include "Passes.h.inc"
} // namespace lowtide

namespace {

class TrainOrder : public lowtide::impl::TrainOrderBase<TrainOrder> {
public:
  using TrainOrderBase::TrainOrderBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    codegen::KernelModule::registerDialects(registry);
  }

  void runOnOperation() override {
    auto &facts = getAnalysis<StepFacts>();
    if (failed(facts.update(target, cpu, threadsMax)))
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
  const bool isLower = best.timeline.peakBytes < before->getPeakBytes() || isBodyChanged(best);
  if (!isLower && StringRef(best.method) != "as given")
    return success();
  solve::PackingOptions options;
  options.alignment = planAlignment;
  options.nearness = 250; // plan-place looks for the rest
  // Where no budget follows, this order is the plan's.
  solve::PackedPlan packed = solve::packPlan(problem->getGraph(), best, options, /*mostOrders=*/64);
  if (!isLower && !packed.isReordered)
    return success();
  problem->apply(packed.plan, facts);
  ++numReordered;
  if (packed.isReordered)
    step.emitRemark() << "moved instructions for an arena of " << formatBytes(packed.arenaBytes) << ", "
                      << formatBytes(packed.boundBytes) << " of it alive at once";
  if (!isLower)
    return success();
  step.emitRemark() << "peak " << formatBytes(before->getPeakBytes()) << " → " << formatBytes(best.timeline.peakBytes)
                    << " by order (" << best.method << ")";
  for (const solve::Ordering &body : best.bodies)
    step.emitRemark() << "a round of a loop in it has a peak of " << formatBytes(body.timeline.peakBytes) << " ("
                      << body.method << ")";
  return success();
}
