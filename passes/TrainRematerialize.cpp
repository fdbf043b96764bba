//===- TrainRematerialize.cpp - makes a step fit a budget -----------------===//
//
// 1. What outlives the instructions is counted first (PlanLayout); the rest of
//    the budget is for the transient arena.
// 2. Each step is posed (Analysis/StepProblem) and solved (Solve/Fit). A
//    schedule is taken only if its buffers, packed as plan-place will pack them,
//    stay within the budget.
// 3. The schedule becomes the step's order, with what runs again cloned.
//
//===----------------------------------------------------------------------===//
#include "Passes.h"
#include "PlanLayout.h"
#include "StepFacts.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Solve/Comparison.h"
#include "lowtide/Solve/LinearProgram.h"
#include "lowtide/Solve/LoopFit.h"
#include "lowtide/Solve/RecomputationBound.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowtide;

namespace lowtide {
#define GEN_PASS_DEF_TRAINREMATERIALIZE
#include "Passes.h.inc"
} // namespace lowtide

namespace {

class TrainRematerialize : public lowtide::impl::TrainRematerializeBase<TrainRematerialize> {
public:
  using TrainRematerializeBase::TrainRematerializeBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    codegen::KernelModule::registerDialects(registry);
  }

  void runOnOperation() override {
    if (budget.empty())
      return;
    if (failed(fitModule())) {
      getOperation()->setAttr("lowtide.failure", StringAttr::get(&getContext(), "budget"));
      signalPassFailure();
    }
    markAnalysesPreserved<StepFacts>();
  }

private:
  /// One entry, posed, and its schedules.
  struct Entry {
    func::FuncOp step;
    StepProblem problem;
    std::unique_ptr<solve::LoopFront> front;
  };

  LogicalResult fitModule();
  LogicalResult fitEntry(Entry &entry, uint64_t transientBytes, uint64_t staticBytes, FactsTable &facts);
  /// The schedule of the strategy for so many bytes of arena; nothing if it has none.
  std::optional<solve::FittedSchedule> choose(Entry &entry, uint64_t transientBytes);
  /// Says how much less any other plan could recompute.
  void remarkBound(Entry &entry, const solve::FittedSchedule &chosen, uint64_t transientBytes, uint64_t bytes);
  LogicalResult refuse(Entry &entry, uint64_t transientBytes, uint64_t staticBytes);
  /// Bytes of the arena that plan-place will make.
  uint64_t pack(Entry &entry, const solve::FittedSchedule &plan);
};

} // namespace

uint64_t TrainRematerialize::pack(Entry &entry, const solve::FittedSchedule &plan) {
  solve::PackingOptions options;
  options.alignment = planAlignment;
  return solve::pack(solve::listBuffers(entry.problem.getGraph(), plan), options).arenaBytes;
}

std::optional<solve::FittedSchedule> TrainRematerialize::choose(Entry &entry, uint64_t transientBytes) {
  const solve::StepGraph &graph = entry.problem.getGraph();
  const solve::FittedSchedule &largest = entry.front->getLargest();
  if (largest.timeline.peakBytes <= transientBytes)
    return largest;
  if (strategy == "fit") {
    const solve::FittedSchedule *plan = entry.front->find(transientBytes);
    return plan ? std::optional(*plan) : std::nullopt;
  }
  return solve::Baselines(graph, largest.schedule).find(*solve::parseMethod(strategy.getValue()), transientBytes);
}

/// The instruction of a bound, in a loop if need be; null where the outputs decide.
static Operation *findForced(const StepProblem &problem, const solve::LowerBound &bound) {
  if (bound.operation >= problem.getOperations().size())
    return nullptr;
  for (auto [loop, body] : llvm::zip_equal(problem.getGraph().loops, problem.getBodies()))
    if (loop.operation == bound.operation)
      if (Operation *inside = findForced(body, solve::findLowerBound(loop.body)))
        return inside;
  return problem.getOperations()[bound.operation];
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

/// A remark for each loop in which something runs again.
static void remarkLoops(const StepProblem &problem, const solve::FittedSchedule &before,
                        const solve::FittedSchedule &after) {
  for (auto [loop, then, now, body] :
       llvm::zip_equal(problem.getGraph().loops, before.bodies, after.bodies, problem.getBodies())) {
    if (now.timeline.recomputed)
      problem.getOperations()[loop.operation]->emitRemark()
          << "each of " << loop.rounds << " rounds: " << compareFigures(then, now);
    remarkLoops(body, then, now);
  }
}

/// Says what stands in the way: the instruction that needs the most, and what would help.
LogicalResult TrainRematerialize::refuse(Entry &entry, uint64_t transientBytes, uint64_t staticBytes) {
  const solve::StepGraph &graph = entry.problem.getGraph();
  const solve::FittedSchedule &smallest = entry.front->getSmallest();
  solve::LowerBound bound = solve::findLowerBound(graph);
  // What its buffers take when they are packed.
  const uint64_t smallestBytes = staticBytes + pack(entry, smallest);
  const uint64_t asked = staticBytes + transientBytes, least = staticBytes + bound.bytes;
  auto exact = [](uint64_t bytes) { return llvm::formatv("{0} ({1} bytes)", formatBytes(bytes), bytes).str(); };
  InFlightDiagnostic error = entry.step.emitError();
  error << "@" << entry.step.getSymName() << " cannot fit " << exact(asked) << ": ";
  if (bound.bytes > transientBytes)
    error << "at least " << exact(least) << " are needed whatever is recomputed";
  else
    error << (strategy == "fit" ? "" : "strategy '" + strategy + "' found no plan; by --remat-strategy=fit ")
          << "the smallest plan found needs " << exact(smallestBytes) << ", and none is below " << exact(least);
  error.attachNote() << formatBytes(staticBytes) << " of that are parameters, optimizer state and batch";
  if (Operation *op = findForced(entry.problem, bound)) {
    Diagnostic &note = error.attachNote(op->getLoc());
    note << "one instruction needs " << formatBytes(bound.bytes) << " at once";
    if (std::string place = getResponsiblePlace(op->getLoc()); !place.empty())
      note << " (" << place << ")";
    SmallVector<std::pair<uint64_t, Type>> tensors;
    for (Value value : op->getOperands())
      if (uint32_t bytes = 0; !isa<BlockArgument>(StepStorage::getRoot(value)))
        tensors.push_back({getTensorBytes(value.getType()).value_or(bytes), value.getType()});
    for (Value value : op->getResults())
      tensors.push_back({getTensorBytes(value.getType()).value_or(0), value.getType()});
    // The largest, in the order in which they stand.
    for (unsigned i = 0; i < 4 && !tensors.empty(); ++i) {
      auto *most = llvm::max_element(tensors, llvm::less_first());
      note << (i ? ", " : ": ") << most->second << " of " << formatBytes(most->first);
      tensors.erase(most);
    }
  }
  error.attachNote() << "the smallest plan found needs " << exact(smallestBytes) << "; without recomputation it is "
                     << formatBytes(staticBytes + entry.front->getLargest().timeline.peakBytes);
  error.attachNote() << "what helps: a smaller batch, an optimizer with less state (--optimizer=sgd), a larger budget";
  return failure();
}

void TrainRematerialize::remarkBound(Entry &entry, const solve::FittedSchedule &chosen, uint64_t transientBytes,
                                     uint64_t bytes) {
  const solve::FittedSchedule &before = entry.front->getLargest();
  solve::RecomputationBound least =
      solve::boundRecomputation(entry.problem.getGraph(), before.schedule, transientBytes);
  const double whole = before.timeline.seconds > 0 ? before.timeline.seconds : 1;
  std::string text =
      llvm::formatv("recomputes +{0:F1} %; no plan for this kernel graph in this order at {1} recomputes less than "
                    "+{2:F1} %",
                    100 * (chosen.timeline.seconds / whole - 1), formatBytes(bytes), 100 * least.seconds / whole);
  if (least.moments < least.instructions)
    text += llvm::formatv(" (bytes counted at {0} of {1} kernels)", least.moments, least.instructions);
  if (!least.isSolved)
    text += " (as far as two minutes of the solver tell)";
  entry.step.emitRemark() << text;
}

LogicalResult TrainRematerialize::fitEntry(Entry &entry, uint64_t transientBytes, uint64_t staticBytes,
                                           FactsTable &facts) {
  // A packing may need more than the bytes alive: then ask for less.
  std::optional<solve::FittedSchedule> chosen;
  for (uint64_t ask = transientBytes;;) {
    chosen = choose(entry, ask);
    if (!chosen)
      return refuse(entry, transientBytes, staticBytes);
    uint64_t arena = pack(entry, *chosen);
    if (arena <= transientBytes)
      break;
    ask = chosen->timeline.peakBytes - 1;
  }
  const solve::FittedSchedule &before = entry.front->getLargest();
  auto anchor = [](OpBuilder &builder, Location loc, Value value, Value cotangent) -> Value {
    return train::RematOp::create(builder, loc, value.getType(), value, cotangent);
  };
  // What a report draws beside the fitted step.
  FailureOr<MemoryProfile> unfitted = MemoryProfile::compute(entry.step, facts);
  if (failed(unfitted))
    return failure();
  if (chosen->timeline.peakBytes < unfitted->getPeakBytes())
    entry.step->setAttr(beforeBudgetAttrName, unfitted->sampleLive(&getContext()));
  entry.problem.apply(*chosen, facts, anchor);
  numRecomputed += chosen->timeline.recomputed;
  entry.step.emitRemark() << compareFigures(before, *chosen);
  remarkLoops(entry.problem, before, *chosen);
  const solve::StepGraph &graph = entry.problem.getGraph();
  if (uint64_t saved = solve::countSaved(graph, before))
    entry.step.emitRemark() << "saved activations " << formatBytes(saved) << " → "
                            << formatBytes(solve::countSaved(graph, *chosen));
  if (bound)
    remarkBound(entry, *chosen, transientBytes, transientBytes + staticBytes);
  // The exact count, once more, on what was made.
  FailureOr<MemoryProfile> profile = MemoryProfile::compute(entry.step, facts);
  if (failed(profile))
    return failure();
  if (profile->getPeakBytes() > transientBytes)
    return entry.step.emitError("the schedule was counted as ")
           << chosen->timeline.peakBytes << " bytes, the step needs " << profile->getPeakBytes();
  return success();
}

LogicalResult TrainRematerialize::fitModule() {
  llvm::Expected<ByteSize> size = parseByteSize(budget);
  if (!size)
    return getOperation().emitError("device budget: ") << llvm::toString(size.takeError());
  if (strategy != "fit" && !solve::parseMethod(strategy.getValue()))
    return getOperation().emitError("unknown strategy '")
           << strategy << "'; there are fit, none, sqrt, greedy-xla, min-cut and lp-rounding";
  if ((strategy == "lp-rounding" || bound) && !solve::hasLinearSolver())
    return getOperation().emitError("there is no solver for linear programs; 'tools/dev setup' brings HiGHS");
  auto steps = llvm::to_vector(getOperation().getOps<func::FuncOp>());
  FailureOr<PlanLayout> layout = PlanLayout::compute(steps);
  auto &facts = getAnalysis<StepFacts>();
  if (failed(layout) || failed(facts.update(target, cpu, threadsMax)))
    return failure();
  uint64_t staticBytes = 0, largest = 0;
  for (const PlanLayout::Arena &arena : layout->getArenas())
    staticBytes += arena.bytes;

  std::vector<Entry> entries;
  for (func::FuncOp step : steps) {
    FailureOr<StepProblem> problem = StepProblem::pose(step, facts.getTable(), CostModel::get(target));
    if (failed(problem))
      return failure();
    entries.push_back({step, std::move(*problem), nullptr});
  }
  for (Entry &entry : entries) {
    const solve::StepGraph &graph = entry.problem.getGraph();
    entry.front = std::make_unique<solve::LoopFront>(graph);
    if (!entry.front->isValid())
      return entry.step.emitError("its order is not valid: run train-order first");
    largest = std::max(largest, entry.front->getLargest().timeline.peakBytes);
  }
  const uint64_t bytes = size->resolve(staticBytes + largest);
  if (bytes < staticBytes)
    return getOperation().emitError("cannot fit ")
           << formatBytes(bytes) << ": parameters, optimizer state and batch alone are " << formatBytes(staticBytes);
  getOperation()->setAttr(deviceBudgetAttrName, Builder(&getContext()).getI64IntegerAttr(int64_t(bytes)));
  for (Entry &entry : entries)
    if (failed(fitEntry(entry, bytes - staticBytes, staticBytes, facts.getTable())))
      return failure();
  return success();
}
