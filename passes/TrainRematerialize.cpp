//===- TrainRematerialize.cpp - makes a step fit a budget -----------------===//
//
// 1. What outlives the instructions is counted first (PlanLayout); the rest of
//    the budget is for the transient arena.
// 2. Each step is posed (Analysis/StepProblem) and solved (Solve/Fit). A
//    schedule is taken only if its buffers, packed as plan-place will pack them,
//    stay within the budget.
// 3. The schedule becomes the step's order, with what runs again cloned. The
//    step that was made is counted and packed once more: should it need more
//    than its schedule, everything starts over with that much in reserve.
//
//===----------------------------------------------------------------------===//
#include "TrainRematerialize.h"
#include "BudgetRefusal.h"
#include "PlanLayout.h"
#include "StepFacts.h"
#include "StepPass.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Solve/Comparison.h"
#include "lowtide/Solve/LinearProgram.h"
#include "lowtide/Solve/RecomputationBound.h"
#include "lowtide/Support/Failure.h"
#include "lowtide/Support/OptionChoices.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_TRAINREMATERIALIZE
#include "Passes.h.inc"
} // namespace lowtide

namespace {

class TrainRematerialize : public StepPass<lowtide::impl::TrainRematerializeBase<TrainRematerialize>> {
public:
  using StepPass::StepPass;
  TrainRematerialize(const TrainRematerializeOptions &options, std::shared_ptr<solve::SolvedSteps> solved)
      : StepPass(options), solved(std::move(solved)) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    codegen::KernelModule::registerDialects(registry);
  }

  void runOnSteps() override {
    if (failed(
            checkOptions(getOperation(), {{"remat-strategy", strategy}, {"device-budget", budget}, {"bound", bound}})))
      return signalPassFailure();
    if (budget.empty())
      return;
    if (!solved)
      solved = makeSolvedSteps();
    for (uint64_t reserve = 0;;) {
      OwningOpRef<ModuleOp> given = getOperation().clone();
      FailureOr<uint64_t> beyond = fitModule(reserve);
      if (failed(beyond)) {
        setFailure(getOperation(), FailureKind::Budget);
        signalPassFailure();
      }
      if (failed(beyond) || !*beyond)
        break;
      reserve += *beyond;
      getAnalysis<StepFacts>().clear();
      getOperation().getBodyRegion().takeBody(given->getBodyRegion());
    }
    markAnalysesPreserved<StepFacts>();
  }

private:
  /// Fits every entry with `reserve` bytes less than there are; bytes by which what was made goes beyond the budget.
  FailureOr<uint64_t> fitModule(uint64_t reserve);
  /// Makes the plan of an entry; bytes by which what was made goes beyond the budget.
  FailureOr<uint64_t> fitEntry(PosedEntry &entry, const MemoryProfile &unfitted, solve::PackedPlan packed,
                               const BudgetRoom &room, FactsTable &facts);
  /// The plan of the pass's strategy in so many bytes of arena; nothing if it has none.
  std::optional<solve::PackedPlan> findPlan(PosedEntry &entry, uint64_t transientBytes);
  /// The schedule of a published strategy for so many bytes of arena; nothing if it has none.
  std::optional<solve::FittedSchedule> choose(PosedEntry &entry, uint64_t transientBytes);
  /// Says how much less any other plan could recompute.
  void remarkBound(PosedEntry &entry, const solve::FittedSchedule &chosen, uint64_t transientBytes, uint64_t bytes);

  std::shared_ptr<solve::SolvedSteps> solved;
};

} // namespace

std::shared_ptr<solve::SolvedSteps> lowtide::makeSolvedSteps() {
  return std::make_shared<solve::SolvedSteps>(getPlanPacking());
}

std::unique_ptr<Pass> lowtide::createTrainRematerialize(const TrainRematerializeOptions &options,
                                                        std::shared_ptr<solve::SolvedSteps> solved) {
  return std::make_unique<TrainRematerialize>(options, std::move(solved));
}

std::optional<solve::FittedSchedule> TrainRematerialize::choose(PosedEntry &entry, uint64_t transientBytes) {
  const solve::StepGraph &graph = entry.problem.getGraph();
  const solve::FittedSchedule &largest = entry.solved->front.getLargest();
  if (largest.timeline.peakBytes <= transientBytes)
    return largest;
  return solve::Baselines(graph, largest.schedule).find(*solve::parseMethod(strategy.getValue()), transientBytes);
}

/// Figures of a plan beside those of another, for remarks.
static std::string compareFigures(const solve::FittedSchedule &before, const solve::FittedSchedule &after) {
  auto percent = [](double now, double then) {
    return llvm::formatv("{0:F1} %", then > 0 ? 100 * (now / then - 1) : 0).str();
  };
  return llvm::formatv("peak {0} → {1} ({2} values recomputed, +{3} FLOPs, +{4} time; {5})",
                       formatBytes(before.timeline.peakBytes), formatBytes(after.timeline.peakBytes),
                       after.timeline.recomputed, percent(double(after.timeline.flops), double(before.timeline.flops)),
                       percent(after.timeline.seconds, before.timeline.seconds), after.method)
      .str();
}

/// A note for each loop in which something runs again.
static void noteLoops(InFlightDiagnostic &remark, const StepProblem &problem, const solve::FittedSchedule &before,
                      const solve::FittedSchedule &after) {
  for (auto [loop, then, now, body] :
       llvm::zip_equal(problem.getGraph().loops, before.bodies, after.bodies, problem.getBodies())) {
    if (now.timeline.recomputed)
      remark.attachNote(problem.getOperations()[loop.operation]->getLoc())
          << "each of " << loop.rounds << " rounds: " << compareFigures(then, now);
    noteLoops(remark, body, then, now);
  }
}

void TrainRematerialize::remarkBound(PosedEntry &entry, const solve::FittedSchedule &chosen, uint64_t transientBytes,
                                     uint64_t bytes) {
  const solve::FittedSchedule &before = entry.solved->front.getLargest();
  const double whole = before.timeline.seconds > 0 ? before.timeline.seconds : 1;
  const solve::RecomputationBound least = solve::findTightestBound(
      entry.problem.getGraph(), before.schedule, transientBytes, chosen.timeline.seconds - before.timeline.seconds);
  std::string text =
      llvm::formatv("recomputes +{0:F1} %; no plan for this kernel graph in this order at {1} recomputes less than "
                    "+{2:F1} % ({3})",
                    100 * (chosen.timeline.seconds / whole - 1), formatBytes(bytes), 100 * least.seconds / whole,
                    solve::describe(least));
  entry.step.emitRemark("@") << entry.step.getSymName() << ": " << text;
}

std::optional<solve::PackedPlan> TrainRematerialize::findPlan(PosedEntry &entry, uint64_t transientBytes) {
  if (strategy == "fit") {
    const solve::PackedPlan *found = entry.solved->plans.find(transientBytes);
    return found ? std::optional(*found) : std::nullopt;
  }
  // A packing may need more than the bytes alive: then ask for less.
  for (uint64_t ask = transientBytes;;) {
    std::optional<solve::FittedSchedule> plan = choose(entry, ask);
    if (!plan)
      return std::nullopt;
    solve::PackedPlan packed = solve::packPlan(entry.problem.getGraph(), *plan, getPlanPacking());
    if (packed.arenaBytes <= transientBytes)
      return packed;
    ask = plan->timeline.peakBytes - 1;
  }
}

FailureOr<uint64_t> TrainRematerialize::fitEntry(PosedEntry &entry, const MemoryProfile &unfitted,
                                                 solve::PackedPlan packed, const BudgetRoom &room, FactsTable &facts) {
  const solve::FittedSchedule &chosen = packed.plan, &before = entry.solved->front.getLargest();
  // What a report draws next to the fitted step.
  if (chosen.timeline.peakBytes < unfitted.getPeakBytes())
    entry.step->setAttr(beforeBudgetAttrName, unfitted.sampleLive(&getContext()));
  entry.apply(chosen, facts);
  // The exact count, once more, on what was made.
  FailureOr<MemoryProfile> profile = MemoryProfile::compute(entry.step, facts, room.statics);
  if (failed(profile))
    return failure();
  const solve::StepGraph &graph = entry.problem.getGraph();
  if (!solve::areSameProblem(profile->getBuffers(), solve::listBuffers(graph, chosen), planAlignment))
    packed.arenaBytes = solve::pack(profile->getBuffers(), getPlanPacking()).arenaBytes;
  if (packed.arenaBytes > room.transientBytes)
    return packed.arenaBytes - room.transientBytes;
  numRecomputed += chosen.timeline.recomputed;
  {
    InFlightDiagnostic remark = entry.step.emitRemark("@")
                                << entry.step.getSymName() << ": " << compareFigures(before, chosen);
    if (uint64_t saved = unfitted.getSavedBytes())
      remark << "; saved activations " << formatBytes(saved) << " → " << formatBytes(profile->getSavedBytes());
    noteLoops(remark, entry.problem, before, chosen);
  }
  if (isOn(bound))
    remarkBound(entry, chosen, room.getUsableBytes(), room.sum());
  return 0;
}

FailureOr<uint64_t> TrainRematerialize::fitModule(uint64_t reserve) {
  const ByteSize size = llvm::cantFail(parseByteSize(budget)); // checked above
  if ((strategy == "lp-rounding" || isOn(bound)) && !solve::hasLinearSolver())
    return getOperation().emitError("there is no solver for linear programs; 'tools/dev setup' brings HiGHS");
  auto steps = llvm::to_vector(getOperation().getOps<func::FuncOp>());
  FailureOr<PlanLayout> layout = PlanLayout::compute(steps, target);
  auto &facts = getAnalysis<StepFacts>();
  if (failed(layout) || failed(facts.update(target)))
    return failure();
  const StaticBytes statics = layout->getStaticBytes();
  uint64_t largest = 0;
  std::vector<PosedEntry> entries;
  std::vector<MemoryProfile> unfitted;
  for (func::FuncOp step : steps) {
    FailureOr<StepProblem> problem = StepProblem::pose(step, facts.getTable(), CostModel::get(target));
    if (failed(problem))
      return failure();
    entries.push_back({step, std::move(*problem), nullptr});
  }
  for (PosedEntry &entry : entries) {
    entry.solved = &solved->get(entry.problem.getGraph());
    if (!entry.solved->front.isValid())
      return entry.step.emitError("its order is not valid: run train-order first");
    // Results that are copies of others, or of arguments, are made after all instructions.
    FailureOr<MemoryProfile> profile = MemoryProfile::compute(entry.step, facts.getTable(), statics);
    if (failed(profile))
      return failure();
    largest = std::max({largest, entry.solved->front.getLargest().timeline.peakBytes, profile->getPeakBytes()});
    unfitted.push_back(std::move(*profile));
  }
  const uint64_t bytes = size.resolve(statics.sum() + largest);
  if (bytes < statics.sum())
    return refuseStatics(getOperation(), entries, bytes, statics);
  getOperation()->setAttr(deviceBudgetAttrName, Builder(&getContext()).getI64IntegerAttr(int64_t(bytes)));
  const BudgetRoom room{bytes - statics.sum(), statics, reserve};
  std::vector<solve::PackedPlan> plans;
  // What helps the entry that needs the most helps all.
  PosedEntry *refused = nullptr;
  for (PosedEntry &entry : entries) {
    if (std::optional<solve::PackedPlan> plan = findPlan(entry, room.getUsableBytes()))
      plans.push_back(std::move(*plan));
    else if (!refused || refused->getSmallestBytes() < entry.getSmallestBytes())
      refused = &entry;
  }
  if (refused)
    return refuseBudget(*refused, room, strategy, facts.getTable());
  uint64_t most = 0;
  for (auto [entry, profile, plan] : llvm::zip_equal(entries, unfitted, plans)) {
    FailureOr<uint64_t> beyond = fitEntry(entry, profile, std::move(plan), room, facts.getTable());
    if (failed(beyond))
      return failure();
    most = std::max(most, *beyond);
    // Less than nothing cannot be asked of the instructions.
    if (*beyond && !room.getUsableBytes())
      return refuseBudget(entry, {room.transientBytes, statics, room.transientBytes + *beyond}, strategy,
                          facts.getTable());
  }
  return most;
}
