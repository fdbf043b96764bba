//===- FitSteps.cpp - into kernels, within the budget -----------*- C++ -*-===//
//
// The stage `fitted`. Under a budget a loss head may be parted as its rule says or as finely as its tiles allow: both
// are planned, the cheaper one stays. Neither changes a bit of what is computed.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "Passes.h"
#include "lowtide/Analysis/CostModel.h"
#include "lowtide/Analysis/StepProblem.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::driver;

namespace {

/// A module on its way through the stage, with what was said about it.
struct Attempt {
  OwningOpRef<ModuleOp> module;
  int code = 0;
  std::vector<Diagnostic> said = {};
};

} // namespace

/// Whether tiles allow a loss head more parts than its rule gives it.
static bool hasFurtherParts(ModuleOp module) {
  auto withChunks = [&](int64_t chunks) -> OwningOpRef<ModuleOp> {
    OwningOpRef<ModuleOp> copy = module.clone();
    TrainChunkLossHeadOptions options;
    options.chunks = chunks;
    PassManager passes(module.getContext());
    passes.addNestedPass<func::FuncOp>(createTrainChunkLossHead(options));
    if (failed(passes.run(*copy)))
      return nullptr;
    return copy;
  };
  ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> coarse = withChunks(0), fine = withChunks(-1);
  return coarse && fine &&
         !OperationEquivalence::isRegionEquivalentTo(&coarse->getBodyRegion(), &fine->getBodyRegion(),
                                                     OperationEquivalence::IgnoreLocations);
}

/// Whether something runs again.
static bool recomputes(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return op->hasAttr(recomputedAttrName) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

static double estimateSeconds(ModuleOp module, const CostModel &costs) {
  double seconds = 0;
  for (auto step : module.getOps<func::FuncOp>())
    seconds += costs.getSeconds(step.getBody().front());
  return seconds;
}

int Compilation::runFitStage(const FitStageOptions &stage) {
  int code = run("fitted", [&](OpPassManager &passes) { buildFitStage(passes, stage); }, exitInternal);
  auto failure = (*module)->getAttrOfType<StringAttr>("lowtide.failure");
  return code && failure && failure.getValue() == "budget" ? int(exitBudget) : code;
}

int Compilation::fitSteps(FitStageOptions stage) {
  if (stage.budget.empty() || stage.lossHeadChunks != 0 || !hasFurtherParts(*module))
    return runFitStage(stage);
  auto attempt = [&](OwningOpRef<ModuleOp> candidate) {
    Attempt made;
    ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
      made.said.push_back(std::move(diagnostic));
      return success();
    });
    module = std::move(candidate);
    made.code = runFitStage(stage);
    made.module = std::move(module);
    return made;
  };
  auto choose = [&](Attempt &chosen) {
    module = std::move(chosen.module);
    for (Diagnostic &diagnostic : chosen.said)
      context.getDiagEngine().emit(std::move(diagnostic));
    return chosen.code;
  };
  OwningOpRef<ModuleOp> copy = module->clone();
  Attempt coarse = attempt(std::move(module));
  auto budget = (*coarse.module)->getAttrOfType<IntegerAttr>(deviceBudgetAttrName);
  if (!budget || (coarse.code && coarse.code != exitBudget) || (!coarse.code && !recomputes(*coarse.module)))
    return choose(coarse);
  // A part of what the step takes is a part of what it takes by the rule.
  stage.budget = std::to_string(budget.getInt());
  stage.lossHeadChunks = -1;
  Attempt fine = attempt(std::move(copy));
  const CostModel costs = CostModel::get(stage.target);
  const bool isFineBetter =
      coarse.code || (!fine.code && estimateSeconds(*fine.module, costs) < estimateSeconds(*coarse.module, costs));
  return choose(isFineBetter ? fine : coarse);
}
