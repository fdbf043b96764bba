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
#include "PlanLayout.h"
#include "StepFacts.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Solve/Comparison.h"
#include "lowtide/Solve/LinearProgram.h"
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
  TrainRematerialize(const TrainRematerializeOptions &options, std::shared_ptr<solve::SolvedSteps> solved)
      : TrainRematerializeBase(options), solved(std::move(solved)) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    codegen::KernelModule::registerDialects(registry);
  }

  void runOnOperation() override {
    if (budget.empty())
      return;
    if (!solved)
      solved = makeSolvedSteps();
    for (uint64_t reserve = 0;;) {
      OwningOpRef<ModuleOp> given = getOperation().clone();
      FailureOr<uint64_t> beyond = fitModule(reserve);
      if (failed(beyond)) {
        getOperation()->setAttr("lowtide.failure", StringAttr::get(&getContext(), "budget"));
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
  /// Bytes of the budget: for the transient arena, for everything else, and of the former what no schedule may use.
  struct Room {
    uint64_t transientBytes, staticBytes, reserveBytes;
  };
  /// One entry, posed, and its schedules.
  struct Entry {
    func::FuncOp step;
    StepProblem problem;
    solve::SolvedStep *solved;
  };

  /// Fits every entry with `reserve` bytes less than there are; bytes by which what was made goes beyond the budget.
  FailureOr<uint64_t> fitModule(uint64_t reserve);
  FailureOr<uint64_t> fitEntry(Entry &entry, const Room &room, FactsTable &facts);
  /// The schedule of a published strategy for so many bytes of arena; nothing if it has none.
  std::optional<solve::FittedSchedule> choose(Entry &entry, uint64_t transientBytes);
  /// Says how much less any other plan could recompute.
  void remarkBound(Entry &entry, const solve::FittedSchedule &chosen, uint64_t transientBytes, uint64_t bytes);
  LogicalResult refuse(Entry &entry, const Room &room);
  /// Refuses a budget that what lies outside the transient arena exceeds.
  LogicalResult refuseStatic(MutableArrayRef<Entry> entries, uint64_t budgetBytes, uint64_t staticBytes);

  std::shared_ptr<solve::SolvedSteps> solved;
};

} // namespace

static solve::PackingOptions packingOptions() {
  solve::PackingOptions options;
  options.alignment = planAlignment;
  return options;
}

std::shared_ptr<solve::SolvedSteps> lowtide::makeSolvedSteps() {
  return std::make_shared<solve::SolvedSteps>(packingOptions());
}

std::unique_ptr<Pass> lowtide::createTrainRematerialize(const TrainRematerializeOptions &options,
                                                        std::shared_ptr<solve::SolvedSteps> solved) {
  return std::make_unique<TrainRematerialize>(options, std::move(solved));
}

std::optional<solve::FittedSchedule> TrainRematerialize::choose(Entry &entry, uint64_t transientBytes) {
  const solve::StepGraph &graph = entry.problem.getGraph();
  const solve::FittedSchedule &largest = entry.solved->front.getLargest();
  if (largest.timeline.peakBytes <= transientBytes)
    return largest;
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

/// Bytes to read and bytes to type.
static std::string formatExact(uint64_t bytes) {
  return llvm::formatv("{0} ({1} bytes)", formatBytes(bytes), bytes).str();
}

/// Says which budget would do, and what would let a smaller one do.
static void noteRemedies(InFlightDiagnostic &error, uint64_t smallestBytes, uint64_t largestBytes) {
  error.attachNote() << "the smallest plan found needs " << formatExact(smallestBytes)
                     << "; without recomputation it is " << formatBytes(largestBytes);
  error.attachNote() << "what helps: a smaller batch, an optimizer with less state (--optimizer=sgd), a larger budget";
}

LogicalResult TrainRematerialize::refuseStatic(MutableArrayRef<Entry> entries, uint64_t budgetBytes,
                                               uint64_t staticBytes) {
  InFlightDiagnostic error = getOperation().emitError("cannot fit ")
                             << formatBytes(budgetBytes) << ": parameters, optimizer state and batch alone are "
                             << formatBytes(staticBytes);
  // Entries share tensors by their names.
  llvm::MapVector<StringAttr, uint64_t> tensors;
  uint64_t smallest = 0, largest = 0;
  for (Entry &entry : entries) {
    for (BlockArgument arg : entry.step.getArguments())
      if (auto facts = BindingFacts::get(entry.step.getArgAttr(arg.getArgNumber(), train::bindingAttrName)))
        tensors[facts->name] = getTensorBytes(arg.getType()).value_or(0);
    smallest = std::max(smallest, entry.solved->plans.getSmallest().arenaBytes);
    largest = std::max(largest, entry.solved->front.getLargest().timeline.peakBytes);
  }
  auto sorted = tensors.takeVector();
  llvm::stable_sort(sorted, [](const auto &a, const auto &b) { return a.second > b.second; });
  Diagnostic &note = error.attachNote();
  note << "the largest of them:";
  for (auto [number, tensor] : llvm::enumerate(ArrayRef(sorted).take_front(4)))
    note << (number ? ", " : " ") << tensor.first << " of " << formatBytes(tensor.second);
  noteRemedies(error, staticBytes + smallest, staticBytes + largest);
  return failure();
}

/// Says what stands in the way: the instruction that needs the most, and what would help.
LogicalResult TrainRematerialize::refuse(Entry &entry, const Room &room) {
  const solve::StepGraph &graph = entry.problem.getGraph();
  const uint64_t staticBytes = room.staticBytes, transientBytes = room.transientBytes;
  solve::LowerBound bound = solve::findLowerBound(graph);
  // What its buffers take when they are packed.
  const uint64_t smallestBytes = staticBytes + entry.solved->plans.getSmallest().arenaBytes + room.reserveBytes;
  const uint64_t asked = staticBytes + transientBytes, least = staticBytes + bound.bytes;
  InFlightDiagnostic error = entry.step.emitError();
  error << "@" << entry.step.getSymName() << " cannot fit " << formatExact(asked) << ": ";
  if (bound.bytes > transientBytes)
    error << "at least " << formatExact(least) << " are needed whatever is recomputed";
  else
    error << (strategy == "fit" ? "" : "strategy '" + strategy + "' found no plan; by --remat-strategy=fit ")
          << "the smallest plan found needs " << formatExact(smallestBytes) << ", and none is below "
          << formatExact(least);
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
  noteRemedies(error, smallestBytes, staticBytes + entry.solved->front.getLargest().timeline.peakBytes);
  return failure();
}

void TrainRematerialize::remarkBound(Entry &entry, const solve::FittedSchedule &chosen, uint64_t transientBytes,
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
  entry.step.emitRemark() << text;
}

FailureOr<uint64_t> TrainRematerialize::fitEntry(Entry &entry, const Room &room, FactsTable &facts) {
  const uint64_t transientBytes = room.transientBytes - std::min(room.reserveBytes, room.transientBytes);
  solve::PackedPlan packed;
  if (strategy == "fit") {
    solve::PackedPlans &plans = entry.solved->plans;
    const solve::PackedPlan *found = plans.find(transientBytes);
    if (!found)
      return refuse(entry, room);
    packed = *found;
  } else {
    // A packing may need more than the bytes alive: then ask for less.
    for (uint64_t ask = transientBytes;;) {
      std::optional<solve::FittedSchedule> plan = choose(entry, ask);
      if (!plan)
        return refuse(entry, room);
      packed = solve::packPlan(entry.problem.getGraph(), *plan, packingOptions());
      if (packed.arenaBytes <= transientBytes)
        break;
      ask = plan->timeline.peakBytes - 1;
    }
  }
  const solve::FittedSchedule &chosen = packed.plan, &before = entry.solved->front.getLargest();
  auto anchor = [](OpBuilder &builder, Location loc, Value value, Value cotangent) -> Value {
    return train::RematOp::create(builder, loc, value.getType(), value, cotangent);
  };
  // What a report draws beside the fitted step.
  FailureOr<MemoryProfile> unfitted = MemoryProfile::compute(entry.step, facts);
  if (failed(unfitted))
    return failure();
  if (chosen.timeline.peakBytes < unfitted->getPeakBytes())
    entry.step->setAttr(beforeBudgetAttrName, unfitted->sampleLive(&getContext()));
  entry.problem.apply(chosen, facts, anchor);
  // The exact count, once more, on what was made.
  FailureOr<MemoryProfile> profile = MemoryProfile::compute(entry.step, facts);
  if (failed(profile))
    return failure();
  const solve::StepGraph &graph = entry.problem.getGraph();
  if (!solve::areSameProblem(profile->getBuffers(), solve::listBuffers(graph, chosen), planAlignment))
    packed.arenaBytes = solve::pack(profile->getBuffers(), packingOptions()).arenaBytes;
  if (packed.arenaBytes > room.transientBytes)
    return packed.arenaBytes - room.transientBytes;
  numRecomputed += chosen.timeline.recomputed;
  entry.step.emitRemark() << compareFigures(before, chosen);
  remarkLoops(entry.problem, before, chosen);
  if (uint64_t saved = solve::countSaved(graph, before))
    entry.step.emitRemark() << "saved activations " << formatBytes(saved) << " → "
                            << formatBytes(solve::countSaved(graph, chosen));
  if (bound)
    remarkBound(entry, chosen, transientBytes, room.transientBytes + room.staticBytes);
  return 0;
}

FailureOr<uint64_t> TrainRematerialize::fitModule(uint64_t reserve) {
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
    entry.solved = &solved->get(entry.problem.getGraph());
    if (!entry.solved->front.isValid())
      return entry.step.emitError("its order is not valid: run train-order first");
    largest = std::max(largest, entry.solved->front.getLargest().timeline.peakBytes);
  }
  const uint64_t bytes = size->resolve(staticBytes + largest);
  if (bytes < staticBytes)
    return refuseStatic(entries, bytes, staticBytes);
  getOperation()->setAttr(deviceBudgetAttrName, Builder(&getContext()).getI64IntegerAttr(int64_t(bytes)));
  uint64_t most = 0;
  for (Entry &entry : entries) {
    FailureOr<uint64_t> beyond = fitEntry(entry, {bytes - staticBytes, staticBytes, reserve}, facts.getTable());
    if (failed(beyond))
      return failure();
    most = std::max(most, *beyond);
  }
  return most;
}
