//===- StepTrial.cpp - one graph, trained under many budgets ----*- C++ -*-===//
//
// 1. The text becomes a training step, once.
// 2. Copies of it are fitted: without a budget, and at budgets between the
//    smallest and the largest plan; all share one set of kernels, what was
//    searched for other budgets, and, where the loss head is in one piece,
//    everything before recomputation.
// 3. Each runs on the same batches; losses, parameters and state are compared
//    as bytes.
//
//===----------------------------------------------------------------------===//
#include "StepTrial.h"
#include "Passes.h"
#include "PlanLower.h"
#include "StepRun.h"
#include "TrainRematerialize.h"
#include "lowtide/Analysis/RefusedBudget.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Analysis/ValueEquivalence.h"
#include "lowtide/Codegen/KernelModule.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Target.h"
#include "lowtide/InitAll.h"
#include "lowtide/Pipeline.h"
#include "lowtide/Serialize/PlanProto.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/KernelStatements.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <deque>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::test;

namespace {

/// A fitted and placed step, ready to be written.
struct Plan {
  plan::Plan proto;
  uint64_t budget = 0; ///< bytes; 0: none was given
  std::string flag;    ///< as it was given
};

class Trial {
public:
  Trial(const std::string &text, const TrialOptions &options, codegen::KernelModule &kernels);
  /// Fits the step and adds its kernels.
  void plan();
  /// Runs what was planned, if nothing went wrong; `code` is that of the kernels.
  void run(const FailureOr<std::vector<char>> &code);
  /// What its plans state of kernels, in lines.
  std::string stateKernels() const;

  TrialOutcome outcome;

private:
  bool parse();
  /// forward → step; a step whose samples depend on one another is not cut into parts.
  bool makeStep();
  /// Budgets to ask for, as flags with their bytes.
  bool chooseBudgets(std::vector<std::pair<std::string, uint64_t>> &budgets);
  /// The step in kernels and in order, without a budget.
  bool makeKernels();
  /// A copy of the step within the budget, as far as passes go; whether they did.
  bool fitCopy(OwningOpRef<ModuleOp> &module, const std::string &budget, int64_t chunks);
  /// Fits a copy of the step and plans it; false when it failed. `mayRefuse`: a budget that cannot be met is no
  /// failure.
  bool fit(const std::string &budget, uint64_t bytes, int64_t chunks, bool mayRefuse);
  bool runPlans(const std::vector<char> &code);
  bool compareReference();

  bool runPasses(ModuleOp module, llvm::function_ref<void(OpPassManager &)> build);
  bool fail(StringRef kind, const llvm::Twine &text) {
    if (outcome.isGood()) {
      outcome.kind = kind.str();
      outcome.text = text.str();
    }
    return false;
  }
  int64_t setting(StringRef name) const { return settings.getAs<IntegerAttr>(name).getInt(); }
  std::string textSetting(StringRef name) const { return settings.getAs<StringAttr>(name).str(); }

  const TrialOptions &options;
  MLIRContext &context;
  /// What the compiler said last.
  std::string said;
  std::string text;
  OwningOpRef<ModuleOp> step, inKernels;
  DictionaryAttr settings;
  RunInputs inputs;
  codegen::KernelModule &kernels;
  std::shared_ptr<solve::SolvedSteps> solved = makeSolvedSteps();
  std::vector<Plan> plans;
  RunResult whole;
};

} // namespace

/// One for all trials: a process that was forked has it from its parent.
static MLIRContext &getContext() {
  static MLIRContext *const context = [] {
    DialectRegistry registry;
    registerAllDialects(registry);
    auto *made = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    made->loadAllAvailableDialects();
    made->printOpOnDiagnostic(false);
    return made;
  }();
  return *context;
}

void lowtide::test::prepareTrials() { getContext(); }

namespace {

/// Takes what the compiler says while it lives.
class Listener {
public:
  Listener(MLIRContext &context, std::string &said)
      : engine(context.getDiagEngine()), handler(engine.registerHandler([&said](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
            return;
          said += diagnostic.str() + "\n";
          for (Diagnostic &note : diagnostic.getNotes())
            said += "  " + note.str() + "\n";
        })) {}
  ~Listener() { engine.eraseHandler(handler); }

private:
  DiagnosticEngine &engine;
  DiagnosticEngine::HandlerID handler;
};

} // namespace

Trial::Trial(const std::string &text, const TrialOptions &options, codegen::KernelModule &kernels)
    : options(options), context(getContext()), text(text), kernels(kernels) {}

bool Trial::parse() {
  step = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!step)
    return fail("compile", "the text does not parse: " + said);
  TargetInfo target = getDefaultTarget();
  target.threadsMax = 8;
  train::setTarget(*step, target);
  settings = (*step)->getAttrOfType<DictionaryAttr>("test.settings");
  auto forward = step->lookupSymbol<func::FuncOp>("forward");
  if (!settings || !forward)
    return fail("compile", "the file holds no @forward with test.settings");
  (*step)->removeAttr("test.settings");
  inputs.seed = static_cast<uint64_t>(setting("seed"));
  for (unsigned i = 0; i < forward.getNumArguments(); ++i)
    if (auto low = forward.getArgAttrOfType<FloatAttr>(i, "test.low")) {
      auto binding = forward.getArgAttrOfType<BindingInterface>(i, train::bindingAttrName);
      inputs.ranges[binding.getName().str()] = {low.getValueAsDouble(),
                                                forward.getArgAttrOfType<FloatAttr>(i, "test.high").getValueAsDouble()};
      forward.removeArgAttr(i, "test.low");
      forward.removeArgAttr(i, "test.high");
    }
  return true;
}

bool Trial::runPasses(ModuleOp module, llvm::function_ref<void(OpPassManager &)> build) {
  PassManager passes(&context);
  build(passes);
  bool violated = false;
  addEquivalenceChecks(passes, violated);
  said.clear();
  return succeeded(passes.run(module)) && !violated;
}

bool Trial::makeStep() {
  OptionValues graph;
  graph.lossHeadChunks = settings.getAs<BoolAttr>("loss_head").getValue() ? "auto" : "off";
  if (!runPasses(*step, [&](OpPassManager &passes) { buildGraphStage(passes, graph); }))
    return fail("compile", "nn: " + said);
  OptionValues stage;
  stage.entries = {"train"};
  stage.optimizer = textSetting("optimizer");
  stage.lr = textSetting("lr");
  if (std::string precision = textSetting("precision"); !precision.empty())
    stage.precision = std::move(precision);
  stage.lossScale = textSetting("loss_scale");
  stage.clipNorm = settings.getAs<FloatAttr>("clip_norm").getValueAsDouble();
  stage.microBatches = setting("micro_batches");
  OwningOpRef<ModuleOp> forward = step->clone();
  if (runPasses(*step, [&](OpPassManager &passes) { buildTrainStage(passes, stage); })) {
    outcome.parts = stage.microBatches > 1;
    return true;
  }
  if (stage.microBatches == 1)
    return fail("compile", "train: " + said);
  // Some graphs mix their samples: that is said, and the step computed as a whole.
  stage.microBatches = 1;
  step = std::move(forward);
  return runPasses(*step, [&](OpPassManager &passes) { buildTrainStage(passes, stage); }) ||
         fail("compile", "train: " + said);
}

bool Trial::makeKernels() {
  inKernels = step->clone();
  FitStageOptions stage;
  stage.headChunks = 1;
  return runPasses(*inKernels, [&](OpPassManager &passes) { buildFitStage(passes, stage); }) || fail("compile", said);
}

bool Trial::fitCopy(OwningOpRef<ModuleOp> &module, const std::string &budget, int64_t chunks) {
  FitStageOptions stage;
  stage.deviceBudget = budget;
  stage.headChunks = chunks;
  module = (chunks == 1 ? inKernels : step)->clone();
  return runPasses(*module, [&](OpPassManager &passes) {
    if (chunks != 1)
      return buildFitStage(passes, stage);
    TrainRematerializeOptions options;
    options.deviceBudget = stage.deviceBudget;
    options.rematStrategy = stage.rematStrategy;
    passes.addPass(createTrainRematerialize(options, solved));
  });
}

bool Trial::fit(const std::string &budget, uint64_t bytes, int64_t chunks, bool mayRefuse) {
  OwningOpRef<ModuleOp> module;
  PlanLowerSettings settings;
  bool good = fitCopy(module, budget, chunks);
  bool recomputes = false;
  if (good) {
    mayRefuse = false; // what was fitted fits
    module->walk([&](Operation *op) { recomputes |= op->hasAttr(recomputedAttrName); });
    good = runPasses(*module, [&](OpPassManager &passes) { buildPlanStage(passes, kernels, settings); });
  }
  if (!good) {
    if (mayRefuse && getRefusedBudget(*module)) {
      ++outcome.refused;
      return true;
    }
    return fail(budget.empty() ? "compile" : "budget", (budget.empty() ? "" : "at " + budget + ": ") + said);
  }
  Plan plan;
  plan.budget = bytes;
  plan.flag = budget.empty() ? "no budget" : budget;
  if (chunks > 1)
    plan.flag += ", " + std::to_string(chunks) + " chunks";
  if (failed(exportPlan(*module->getOps<plan::ModuleOp>().begin(), plan.proto)))
    return fail("compile", "export: " + said);
  plans.push_back(std::move(plan));
  outcome.recomputed += recomputes;
  return true;
}

bool Trial::chooseBudgets(std::vector<std::pair<std::string, uint64_t>> &budgets) {
  uint64_t fixed = 0, most = 0;
  for (const plan::Arena &arena : plans.front().proto.arenas()) {
    const uint64_t bytes = arena.space() == plan::Arena::DEVICE ? arena.bytes() : 0;
    most += bytes;
    fixed += arena.role() == plan::Arena::TRANSIENT ? 0 : bytes;
  }
  // What cannot be met is refused, and the refusal says what can.
  OwningOpRef<ModuleOp> module;
  if (fitCopy(module, std::to_string(fixed + 1), 1)) {
    // Loops are left as they are.
    for (unsigned i = 0; i < options.budgets; ++i)
      budgets.push_back({std::to_string(100 - 12 * i) + "%", 0});
    return true;
  }
  const std::optional<RefusedBudget> refused = getRefusedBudget(*module);
  if (!refused)
    return fail("budget", "a refusal names no budget that can be met: " + said);
  const uint64_t smallest = refused->smallestBytes;
  for (unsigned i = 0; i < options.budgets; ++i) {
    uint64_t bytes = smallest + (most > smallest ? (most - smallest) * i / options.budgets : 0);
    budgets.push_back({std::to_string(bytes), bytes});
  }
  return true;
}

std::string Trial::stateKernels() const {
  std::string lines;
  for (const Plan &plan : plans)
    lines += rt::stateKernels(plan.proto);
  return lines;
}

bool Trial::runPlans(const std::vector<char> &code) {
  for (const auto &[i, plan] : llvm::enumerate(plans)) {
    RunOptions run;
    run.steps = options.steps;
    run.threads = i == 1 ? 2 : 1;
    run.poison = i > 0;
    run.path = options.scratch + "/step.tide";
    RunResult result = runStep(plan.proto, code, inputs, run);
    if (!result.complaint.empty())
      return fail("run", plan.flag + ": " + result.complaint);
    if (result.plannedBytes != result.allocatedBytes)
      return fail("bytes", plan.flag + ": planned " + llvm::Twine(result.plannedBytes) + ", allocated " +
                               llvm::Twine(result.allocatedBytes));
    if (plan.budget && result.allocatedBytes > plan.budget)
      return fail("bytes", plan.flag + ": allocated " + llvm::Twine(result.allocatedBytes));
    if (i == 0) {
      whole = std::move(result);
      outcome.infinite = llvm::any_of(whole.losses, [](double loss) { return !std::isfinite(loss); });
      continue;
    }
    ++outcome.plans;
    if (std::string difference = whole.differenceTo(result); !difference.empty())
      return fail("bits", plan.flag + ": " + difference);
  }
  return true;
}

/// The first loss in f64, op by op: what the step means. Types of 16 bits in the graph are rounded there too, so that
/// kinks and comparisons fall the same way only nearly: the bound is wide where there are any.
bool Trial::compareReference() {
  OwningOpRef<ModuleOp> module = step->clone();
  train::setTarget(*module, *findTarget("reference"));
  FitStageOptions stage;
  stage.fuse = stage.library = false;
  stage.widen = "f64";
  stage.headChunks = 1;
  codegen::KernelModule reference(&context, codegen::CodegenOptions::get(*findTarget("reference")));
  PlanLowerSettings lower;
  if (!runPasses(*module, [&](OpPassManager &passes) { buildFitStage(passes, stage); }) ||
      !runPasses(*module, [&](OpPassManager &passes) { buildPlanStage(passes, reference, lower); }))
    return fail("compile", "reference: " + said);
  plan::Plan proto;
  if (failed(exportPlan(*module->getOps<plan::ModuleOp>().begin(), proto)))
    return fail("compile", "reference: " + said);
  FailureOr<codegen::KernelCode> code = reference.link(rt::stateKernels(proto));
  if (failed(code))
    return fail("compile", "reference: " + said);
  RunOptions run;
  run.steps = 1;
  run.path = options.scratch + "/reference.tide";
  RunResult exact = runStep(proto, code->object, inputs, run);
  if (!exact.complaint.empty())
    return fail("run", "reference: " + exact.complaint);
  double wanted = exact.losses[0], found = whole.losses[0];
  bool narrow = StringRef(text).contains("bf16") || StringRef(text).contains("f16");
  double bound = narrow ? 0.1 : 2e-3;
  if (std::isfinite(wanted) && !(std::abs(found - wanted) <= bound * std::max(1.0, std::abs(wanted))))
    return fail("reference", llvm::formatv("loss {0:E9}, in f64 {1:E9}", found, wanted).str());
  outcome.references = 1;
  return true;
}

void Trial::plan() {
  Listener listener(context, said);
  std::vector<std::pair<std::string, uint64_t>> budgets;
  if (!parse() || !makeStep() || !makeKernels() || !fit("", 0, 1, false) || !chooseBudgets(budgets))
    return;
  // Bits do not depend on the number of chunks, so each plan has another one.
  bool head = settings.getAs<BoolAttr>("loss_head").getValue();
  for (const auto &[i, budget] : llvm::enumerate(budgets))
    if (!fit(budget.first, head ? 0 : budget.second, head ? static_cast<int64_t>(i) + 1 : 1,
             head || budget.second == 0))
      return;
}

void Trial::run(const FailureOr<std::vector<char>> &code) {
  if (!outcome.isGood())
    return;
  if (failed(code)) {
    fail("compile", "the kernels have no machine code");
    return;
  }
  Listener listener(context, said);
  // What autocast rounds has no f64 counterpart.
  if (runPlans(*code) && options.compareReference && textSetting("precision").empty())
    compareReference();
}

std::vector<TrialOutcome> lowtide::test::tryGraphs(const std::vector<std::string> &texts, const TrialOptions &options) {
  codegen::CodegenOptions codegenOptions = codegen::CodegenOptions::get(getDefaultTarget());
  codegenOptions.isPlain = !options.optimize;
  codegen::KernelModule kernels(&getContext(), codegenOptions);
  std::deque<Trial> trials;
  for (const std::string &text : texts)
    trials.emplace_back(text, options, kernels).plan();
  FailureOr<std::vector<char>> code = std::vector<char>();
  if (kernels.getNumKernels()) {
    std::string statements;
    for (const Trial &trial : trials)
      statements += trial.stateKernels();
    FailureOr<codegen::KernelCode> linked = kernels.link(statements);
    if (failed(linked))
      code = failure();
    else
      code = std::move(linked->object);
  }
  std::vector<TrialOutcome> outcomes;
  for (Trial &trial : trials) {
    trial.run(code);
    outcomes.push_back(std::move(trial.outcome));
  }
  return outcomes;
}

TrialOutcome lowtide::test::tryGraph(const std::string &text, const TrialOptions &options) {
  return tryGraphs({text}, options).front();
}
