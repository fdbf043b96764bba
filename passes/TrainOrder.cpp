//===- TrainOrder.cpp - the order in which a step needs few bytes ---------===//
//
// Poses each step as a scheduling problem, asks Solve/Ordering, and moves the
// instructions.
//
//===----------------------------------------------------------------------===//
#include "Passes.h"
#include "StepFacts.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Solve/Ordering.h"

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
    if (failed(facts.update(cpu, threadsMax)))
      return signalPassFailure();
    for (auto step : getOperation().getOps<func::FuncOp>())
      if (!hasLoops(step) && failed(order(step, facts.getTable())))
        return signalPassFailure();
    markAnalysesPreserved<StepFacts>();
  }

private:
  LogicalResult order(func::FuncOp step, FactsTable &facts);
};

} // namespace

LogicalResult TrainOrder::order(func::FuncOp step, FactsTable &facts) {
  FailureOr<MemoryProfile> before = MemoryProfile::compute(step, facts);
  FailureOr<StepProblem> problem = StepProblem::pose(step, facts, CostModel::get(target));
  if (failed(before) || failed(problem))
    return failure();
  solve::Ordering best = solve::findOrder(problem->getGraph());
  if (best.schedule.empty() || best.timeline.peakBytes >= before->getPeakBytes())
    return success();
  problem->apply(best.schedule, facts);
  ++numReordered;
  step.emitRemark() << "peak " << formatBytes(before->getPeakBytes()) << " → " << formatBytes(best.timeline.peakBytes)
                    << " by order (" << best.method << ")";
  return success();
}
