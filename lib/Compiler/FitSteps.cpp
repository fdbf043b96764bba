//===- FitSteps.cpp - into kernels, within the budget -----------*- C++ -*-===//
//
// The stage `fitted`. Under a budget a loss head may be parted as its rule says, as finely as its tiles allow, or
// between; segments of steps may compute what they would keep; and all parts of a batch may pass a block of the model
// before the next. Each form is planned, the cheapest stays. None changes a bit of what is computed.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "Offload.h"
#include "lowtide/Analysis/CostModel.h"
#include "lowtide/Analysis/RefusedBudget.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Analysis/StepStorage.h"

using namespace mlir;
using namespace lowtide;

namespace {

/// A module on its way through the stage, with what was said about it.
struct Attempt {
  OwningOpRef<ModuleOp> module;
  Failure failure = {};
  std::vector<Diagnostic> said = {};
  std::vector<std::string> pipeline = {};
};

/// Of the parameters, a block reads at most one in so many shares: few enough that what lies between blocks is small,
/// enough that what is wanted at once is.
constexpr unsigned blocksOfLoops = 8;

} // namespace

std::vector<StepForm> Compilation::listFurtherParts(FitStageOptions stage) {
  if (stage.headChunks != 0)
    return {};
  // Rounds of the loops.
  auto withChunks = [&](int64_t chunks) {
    OwningOpRef<ModuleOp> copy = module->clone();
    stage.headChunks = chunks;
    PassManager passes(&context);
    addLossHeads(passes, stage);
    SmallVector<int64_t> rounds;
    if (succeeded(passes.run(*copy)))
      copy->walk([&](RepeatInterface loop) {
        if (!loop->hasTrait<OpTrait::IsIsolatedFromAbove>()) // those are loops over steps
          rounds.push_back(int64_t(loop.getRounds()));
      });
    return rounds;
  };
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  // One chunk a tile, and one count between that and the rule's.
  const SmallVector<int64_t> coarse = withChunks(0), fine = withChunks(-1);
  if (coarse == fine || fine.empty())
    return {};
  // A head that is whole by its rule has no loop.
  int64_t least = 1, most = llvm::max_element(fine)[0];
  if (coarse.size() == fine.size())
    std::tie(least, most) =
        *llvm::find_if(llvm::zip_equal(coarse, fine), [](auto pair) { return std::get<0>(pair) != std::get<1>(pair); });
  int64_t between = least;
  while (between * between < least * most)
    between *= 2;
  std::vector<StepForm> further{{-1, most}};
  if (between > least && between < most)
    further.push_back({between, between});
  return further;
}

std::vector<RecomputedSteps> Compilation::listRecomputedSteps(FitStageOptions stage) {
  const bool hasSegments =
      module
          ->walk([](RepeatInterface loop) {
            return loop->getParentOfType<RepeatInterface>() && loop->hasTrait<OpTrait::IsIsolatedFromAbove>()
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          })
          .wasInterrupted();
  if (!hasSegments)
    return {};
  std::vector<RecomputedSteps> levels;
  std::vector<uint64_t> kept;
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  for (RecomputedSteps level : {RecomputedSteps::None, RecomputedSteps::Products, RecomputedSteps::All}) {
    OwningOpRef<ModuleOp> copy = module->clone();
    stage.recomputedSteps = level;
    PassManager passes(&context);
    addRecomputedSteps(passes, stage);
    if (failed(passes.run(*copy)))
      return {};
    // Bytes that loops lay down for others.
    uint64_t bytes = 0;
    copy->walk([&](RepeatInterface loop) {
      for (Value rows : loop->getResults().drop_front(loop.getNumCarried()))
        bytes += getTensorBytes(rows.getType()).value_or(0);
    });
    if (kept.empty() || bytes < kept.back()) {
      kept.push_back(bytes);
      levels.insert(levels.begin(), level);
    }
  }
  levels.pop_back();
  return levels;
}

static size_t countLoops(ModuleOp steps) {
  size_t loops = 0;
  for (auto step : steps.getOps<func::FuncOp>())
    loops += llvm::range_size(step.getBody().front().getOps<RepeatInterface>());
  return loops;
}

bool Compilation::mayCutLoops(FitStageOptions stage, unsigned blocks) {
  const size_t given = countLoops(*module);
  if (!given)
    return false;
  OwningOpRef<ModuleOp> copy = module->clone();
  stage.loopBlocks = blocks;
  PassManager passes(&context);
  addLoopBlocks(passes, stage);
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  return succeeded(passes.run(*copy)) && countLoops(*copy) > given;
}

void Compilation::warnOfWholeLoops(const FitStageOptions &stage) {
  if (stage.loopBlocks < 2 || mayCutLoops(stage, stage.loopBlocks))
    return;
  diagnostics.say(Severity::Warning, "--micro-batch-blocks=" + options.microBatchBlocks + " has no effect",
                  {countLoops(*module)
                       ? "each part of the batch passes all of the model: nothing cuts it into blocks of "
                         "about equal parameters"
                       : "blocks are passed by the parts of a batch, which --micro-batches=K makes"});
}

std::vector<StepForm> Compilation::listFurtherForms(const FitStageOptions &stage) {
  std::vector<StepForm> heads = listFurtherParts(stage), further;
  heads.push_back({stage.headChunks});
  std::vector<RecomputedSteps> levels = listRecomputedSteps(stage);
  levels.push_back(RecomputedSteps::None);
  for (RecomputedSteps level : levels)
    for (StepForm head : heads) {
      head.recomputedSteps = level;
      head.loopBlocks = stage.loopBlocks;
      further.push_back(std::move(head));
    }
  further.pop_back();
  if (options.microBatchBlocks == "auto" && mayCutLoops(stage, blocksOfLoops))
    further.push_back({.headChunks = stage.headChunks, .loopBlocks = blocksOfLoops});
  return further;
}

static double estimateSeconds(ModuleOp module, const CostModel &costs) {
  double seconds = 0;
  for (auto step : module.getOps<func::FuncOp>())
    // Where values wait elsewhere, with its lanes.
    if (const std::optional<StepEstimate> estimate = StepEstimate::get(step))
      seconds += estimate->seconds;
    else
      seconds += costs.getSeconds(step.getBody().front());
  return seconds;
}

/// Bytes of the smallest plan that was found where a budget was refused.
static uint64_t countSmallest(ModuleOp module) {
  const std::optional<RefusedBudget> refused = getRefusedBudget(module);
  return refused ? refused->smallestBytes : std::numeric_limits<uint64_t>::max();
}

Failure Compilation::runFitStage(const FitStageOptions &stage) {
  return run("fitted", [&](OpPassManager &passes) { buildFitStage(passes, stage); }, FailureKind::Internal);
}

Failure Compilation::fitSteps(FitStageOptions stage, FormsAsked asked) {
  // Of what only has an answer, no refusal is read.
  const bool wantsRefusal = asked == FormsAsked::ForPlan;
  stage.isRefusalRead = wantsRefusal;
  const std::vector<StepForm> further = stage.deviceBudget.empty() ? std::vector<StepForm>() : listFurtherForms(stage);
  if (further.empty())
    return runFitStage(stage);
  const unsigned givenBlocks = stage.loopBlocks;
  // Other budgets are planned of the form that stays.
  const bool wantsFlips = std::exchange(stage.flips, false);
  const std::vector<std::string> before = pipeline;
  auto attempt = [&](OwningOpRef<ModuleOp> candidate, const FitStageOptions &form) {
    Attempt made;
    pipeline = before;
    ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
      made.said.push_back(std::move(diagnostic));
      return success();
    });
    module = std::move(candidate);
    made.failure = runFitStage(form);
    made.module = std::move(module);
    made.pipeline = std::move(pipeline);
    return made;
  };
  // Whether the form takes at least `seconds` without a budget, of which copies and recomputation make more.
  auto isSlower = [&](ModuleOp steps, FitStageOptions form, double seconds) {
    constexpr double rounding = 1e-9; // of the sum of so many times
    form.deviceBudget.clear();
    Attempt whole = attempt(steps.clone(), form);
    return whole.failure || estimateSeconds(*whole.module, CostModel::get(target)) >= seconds * (1 - rounding);
  };
  OwningOpRef<ModuleOp> given = module->clone();
  Attempt best = attempt(std::move(module), stage);
  FitStageOptions bestStage = stage;
  auto budget = (*best.module)->getAttrOfType<IntegerAttr>(deviceBudgetAttrName);
  const std::optional<RefusedBudget> refused = getRefusedBudget(*best.module);
  const bool isDone = asked == FormsAsked::ForFirst && !best.failure;
  if (((budget && !best.failure) || refused || !wantsRefusal) && !isDone) {
    // A part of what the step takes is a part of what it takes by the rule.
    if (refused || budget)
      stage.deviceBudget = std::to_string(refused ? refused->budgetBytes : uint64_t(budget.getInt()));
    const CostModel costs = CostModel::get(target);
    for (const StepForm &form : further) {
      form.take(stage);
      // What another form lacks is read where none fits.
      stage.isRefusalRead = wantsRefusal && best.failure;
      // The one form that computes more in any case: no search where that alone takes too long.
      if (form.loopBlocks != givenBlocks && !best.failure &&
          isSlower(given.get(), stage, estimateSeconds(*best.module, costs)))
        continue;
      OwningOpRef<ModuleOp> copy = given->clone();
      setUnplannedBytes(*copy, refused ? refused->largestBytes : 0);
      Attempt other = attempt(std::move(copy), stage);
      setUnplannedBytes(*other.module, 0);
      // Where none fits, the one that needs the least says what is needed.
      const bool isBetter =
          other.failure ? best.failure && countSmallest(*other.module) < countSmallest(*best.module)
                        : best.failure || estimateSeconds(*other.module, costs) < estimateSeconds(*best.module, costs);
      if (isBetter) {
        best = std::move(other);
        bestStage = stage;
      }
      if (asked == FormsAsked::ForFirst && !best.failure)
        break;
    }
  }
  if (wantsFlips && !best.failure) {
    bestStage.flips = true;
    bestStage.isRefusalRead = true;
    best = attempt(std::move(given), bestStage);
  }
  module = std::move(best.module);
  pipeline = std::move(best.pipeline);
  for (Diagnostic &diagnostic : best.said)
    context.getDiagEngine().emit(std::move(diagnostic));
  return best.failure;
}
