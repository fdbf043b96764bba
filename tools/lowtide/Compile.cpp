//===- Compile.cpp - from a model to an artifact ----------------*- C++ -*-===//
//
// One direction: onnx → nn → train → fitted → plan → artifact. Each stage can be the first and the last. The stages up
// to `fitted` are here, what becomes of a fitted step in WriteArtifact.cpp, texts in StageText.cpp.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "Choices.h"
#include "OptionChecks.h"
#include "PassLog.h"
#include "StepUpdates.h"
#include "VerifyModel.h"
#include "lowtide/Analysis/ValueEquivalence.h"
#include "lowtide/Codegen/Chips.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Import/ImportFlags.h"
#include "lowtide/InitAll.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Legalize/Legalize.h"
#include "lowtide/Pipeline.h"
#include "lowtide/Solve/LinearProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include <cstdlib>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::driver;

static MLIRContext::Threading threading() { return MLIRContext::Threading::DISABLED; }
static DialectRegistry allDialects() {
  DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

Compilation::Compilation(const Options &options)
    : options(options), context(allDialects(), threading()), diagnostics(context, options.verbosity, options.log) {
  context.loadAllAvailableDialects();
  // A message about a step names the place; the step itself is thousands of lines.
  context.printOpOnDiagnostic(false);
  registerAllPasses(); // the checks around passes look up what a pass says of itself
}

ImportOptions Compilation::importOptions(int &code) const {
  ImportOptions result;
  code = exitOk;
  auto read = [&](const std::vector<std::string> &texts, std::string (*parse)(StringRef, ImportOptions &)) {
    for (const std::string &text : texts)
      if (std::string fault = parse(text, result); !fault.empty()) {
        printError(fault);
        code = exitUsage;
      }
  };
  read(options.dims, parseDimFlag);
  read(options.shapes, parseShapeFlag);
  read(options.rename, parseRenameFlag);
  read(options.set, parseSetFlag);
  if (options.batch)
    result.batch = options.batch;
  if (samples) {
    result.batch = samples;
    result.batchOverrides = true;
  }
  for (const Options::Selection &selection : options.selections)
    result.selections.push_back({selection.trains, selection.text});
  if (!options.lora.empty())
    result.frozenBy = "--lora trains low-rank pairs instead";
  return result;
}

int Compilation::open(ImportOptions &import) {
  file = std::make_unique<OnnxFile>(context, options.input);
  if (failed(options.watched.empty() ? file->load() : loadWatched(*file, options)))
    return file->getExitCode();
  int code;
  import = importOptions(code);
  return code;
}

int Compilation::load() {
  ImportOptions import;
  if (int code = open(import))
    return code;
  auto infos = classifyInitializers(*file, import);
  if (failed(infos))
    return file->getExitCode();
  initializers = std::move(*infos);
  return exitOk;
}

int Compilation::import() {
  const config::Stopwatch watch;
  if (int code = load())
    return code;
  int code;
  auto imported = importOnnx(*file, initializers, importOptions(code));
  if (failed(imported))
    return file->getExitCode();
  module = std::move(*imported);
  if (options.command == Command::Compile || options.command == Command::Verify)
    noteDigest();
  diagnostics.setModel(module->getLoc());
  options.log.info("import", options.input + ": " + std::to_string(initializers.size()) + " initializers, read in " +
                                 watch.text());
  const bool writesWeights =
      (options.emit == "artifact" && options.weights) || (options.emit == "onnx-model" && options.onnxWeights);
  return options.command == Command::Compile && writesWeights ? checkWeightFiles() : exitOk;
}

int Compilation::checkWeightFiles() {
  auto model = module->lookupSymbol<func::FuncOp>("model");
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (auto initializer = model.getArgAttrOfType<StringAttr>(i, "onnx.initializer"))
      if (failed(file->checkInitializer(initializer)))
        return file->getExitCode();
  return exitOk;
}

LegalizeOptions Compilation::legalizeOptions(StringRef mode) const {
  LegalizeOptions result;
  result.mode = mode == "as-is" ? TrainingMode::AsIs : mode == "eval" ? TrainingMode::Eval : TrainingMode::Train;
  if (options.dropout >= 0)
    result.dropout = options.dropout;
  result.frozenNorms = llvm::join(options.freezeNorms, ",");
  result.loss = options.loss;
  return result;
}

int Compilation::legalize() {
  auto model = module->lookupSymbol<func::FuncOp>("model");
  if (!model) {
    printError("'" + options.input + "' has no function @model");
    return exitBadInput;
  }
  auto entry = [&](StringRef mode, StringRef name, bool requireLoss) {
    LegalizeOptions legalizeOptions = this->legalizeOptions(mode);
    legalizeOptions.entry = name.str();
    legalizeOptions.requireLoss = requireLoss;
    LegalizeFailure failure = LegalizeFailure::None;
    if (succeeded(legalizeModel(model, legalizeOptions, &failure)))
      return exitOk;
    switch (failure) {
    case LegalizeFailure::Unsupported:
      return exitUnsupported;
    case LegalizeFailure::Usage:
      return exitUsage;
    default:
      return exitBadInput;
    }
  };
  bool eval = llvm::is_contained(options.entries, "eval");
  bool trains = llvm::is_contained(options.entries, "train") || llvm::is_contained(options.entries, "gradient");
  if (auto settings = model->getAttrOfType<DictionaryAttr>("onnx.step")) {
    // The file holds the whole step: there is nothing to differentiate, and no evaluation to take out of it.
    holdsStep = true;
    if (!trains) {
      printError("'" + options.input + "' holds a training step; it has no other entry");
      printNote("compile it with --entries=train");
      return exitUsage;
    }
    if (int code = checkForwardFlags())
      return code;
    if (int code = entry("as-is", "train", false))
      return code;
    if (int code = checkStepFlags())
      return code;
    if (int code = checkStepWeights())
      return code;
    auto step = module->lookupSymbol<func::FuncOp>("train");
    if (model->hasAttr("onnx.given_gradients"))
      step->setAttr(givenGradientsAttrName, UnitAttr::get(&context));
    // What updates read is shown to train-scale-loss, and to nobody else.
    if (options.lossScale == "none" && options.clipNorm == 0.0 && options.clipValue == 0.0)
      train::eraseResults(step, [](Attribute binding) {
        auto output = dyn_cast_or_null<train::OutputAttr>(binding);
        return output && output.getName().getValue().starts_with("grad/");
      });
    if (llvm::Error error = setStepSettings(settings)) {
      printError(llvm::toString(std::move(error)));
      return exitUsage;
    }
    model.erase();
    return keepOutputs("train");
  }
  if (trains)
    if (int code = entry(options.mode, "forward", /*requireLoss=*/true); code || (code = keepOutputs("forward")))
      return code;
  if (eval)
    if (int code = entry(options.mode == "as-is" ? "as-is" : "eval", "eval", false);
        code || (code = keepOutputs("eval")))
      return code;
  model.erase();
  return exitOk;
}

int Compilation::run(StringRef area, llvm::function_ref<void(OpPassManager &)> build, int code) {
  diagnostics.enter(area.str());
  PassManager passes(&context);
  if (options.log.shows(config::LogLevel::Debug, area.str()))
    passes.addInstrumentation(logPasses(options.log, area.str()));
  build(passes);
  if (passes.empty())
    return exitOk;
  // What a pass that calls itself exact does to the values of a step is looked at in every compile.
  bool violated = false;
  addEquivalenceChecks(passes, violated);
  const config::Stopwatch watch;
  bool isExplained = false;
  ScopedDiagnosticHandler listen(&context, [&](Diagnostic &diagnostic) {
    isExplained |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return failure(); // somebody else prints it
  });
  bool passed = succeeded(passes.run(*module));
  options.log.info(area.str(), (passed ? "done in " : "failed after ") + watch.text());
  if (violated) {
    printNote("this is a defect of the compiler: the step would not compute what the model says");
    return exitVerification;
  }
  if (passed) {
    pipeline.push_back(describePipeline(passes));
    return exitOk;
  }
  if (!isExplained)
    printError("a pass failed without saying why; rerun with lowtide-opt on the stage before");
  // A pass that knows whose mistake it is leaves the kind behind.
  auto kind = (*module)->getAttrOfType<StringAttr>("lowtide.failure");
  return llvm::StringSwitch<int>(kind ? kind.getValue() : "")
      .Case("usage", exitUsage)
      .Case("unsupported", exitUnsupported)
      .Case("malformed", exitBadInput)
      .Default(code == exitInternal && isText() ? int(exitBadInput) : code); // whoever wrote the text may be wrong
}

static std::string join(ArrayRef<std::string> parts, StringRef separator) { return llvm::join(parts, separator); }

int64_t lowtide::driver::countSamples(ModuleOp module) {
  for (auto step : module.getOps<func::FuncOp>())
    if (int64_t samples = train::countSamples(step))
      return samples;
  return 0;
}

static TrainStageOptions trainStage(const Options &options) {
  TrainStageOptions stage;
  stage.optimizer = options.optimizer;
  stage.convention = options.convention;
  stage.lr = options.lr;
  stage.schedule = options.schedule;
  stage.warmupSteps = options.warmupSteps;
  stage.totalSteps = options.totalSteps;
  stage.minLr = options.minLr;
  auto joinSettings = [](const std::map<std::string, std::string> &values) {
    SmallVector<std::string> settings;
    for (const auto &[key, value] : values)
      settings.push_back(key + "=" + value);
    return join(settings, ";");
  };
  stage.settings = joinSettings(options.optimizerOptions);
  stage.scheduleSettings = joinSettings(options.scheduleOptions);
  stage.fallback = options.fallback;
  stage.groups = join(options.groups, ";");
  stage.sparseUpdates = options.sparseUpdates;
  stage.moments = options.moments;
  stage.master = options.master;
  stage.entries = options.entries;
  if (options.precision != "f32" && options.precision != "f64")
    stage.precision = options.precision;
  stage.precisionOverrides = join(options.precisionOverrides, ";");
  stage.frozenWeights = options.frozenWeights == "auto" ? "" : options.frozenWeights;
  stage.lossScale = options.lossScale;
  stage.clipNorm = options.clipNorm;
  stage.clipValue = options.clipValue;
  stage.microBatches = options.microBatches;
  stage.target = options.target == "reference" ? "" : codegen::getFullTarget(options.target);
  return stage;
}

FitStageOptions Compilation::fitStageOptions() const {
  FitStageOptions stage;
  bool reference = options.target == "reference";
  stage.fuse = options.fuse && !reference;
  stage.library = !reference;
  stage.widen = options.precision == "f64" ? "f64" : "";
  stage.target = codegen::getFullTarget(options.target);
  stage.threadsMax = static_cast<unsigned>(options.threadsMax);
  stage.budget = options.deviceBudget;
  stage.strategy = options.rematStrategy;
  stage.bound = options.bound;
  stage.convLayout = options.convLayout;
  stage.partLossHeads = options.lossHeadChunks != "off";
  if (options.lossHeadChunks != "auto" && options.lossHeadChunks != "off")
    stage.lossHeadChunks = std::stol(options.lossHeadChunks);
  return stage;
}

GraphStageOptions Compilation::graphStageOptions() const {
  GraphStageOptions stage;
  stage.adapters = join(options.lora, ";");
  if (options.mode == "eval")
    stage.adapterDropout = "0";
  else if (options.dropout >= 0)
    stage.adapterDropout = std::to_string(options.dropout);
  return stage;
}

int Compilation::checkTarget() const {
  const std::vector<std::string> targets = codegen::listTargets();
  if (!llvm::is_contained(targets, options.target)) {
    const StringRef target = options.target;
    unsigned capability = 0;
    const bool isChip = target.starts_with("cuda:sm_") &&
                        !target.drop_front(strlen("cuda:sm_")).take_while(llvm::isDigit).getAsInteger(10, capability);
    printError("unknown target '" + options.target + "'" + (isChip ? "" : config::suggest(options.target, targets)));
    if (isChip && capability < 80)
      printNote("kernels need bf16 numbers, which GPUs have from sm_80 (A100, RTX 30) on");
    else if (isChip)
      printNote("a GPU that is newer than a target takes its PTX: the nearest older target of the list");
    std::string chips;
    for (const codegen::Chip &chip : codegen::listChips())
      chips += (", cuda:" + chip.name + " (" + chip.cards + ")").str();
    printNote("targets: cpu (the same as cpu:x86-64-v3), cpu:x86-64-v4, reference, cuda (the same as cuda:sm_90)" +
              chips + ", cuda-emulated");
    return exitUsage;
  }
  if (options.precision == "f64" && options.target != "reference") {
    printError("--precision=f64 computes everything in f64, which only --target=reference does");
    return exitUsage;
  }
  const bool needsSolver = options.bound || options.rematStrategy == "lp-rounding";
  const char *solver = std::getenv("LOWTIDE_HIGHS");
  if ((needsSolver || options.baselines) && solver && *solver && !solve::hasLinearSolver()) {
    printError("LOWTIDE_HIGHS=" + llvm::Twine(solver) + " could not be loaded as a solver for linear programs");
    printNote("it names HiGHS's libhighs.so.1; where it is not set, what 'tools/dev setup' or the system has is taken");
    return exitUnsupported;
  }
  if (needsSolver && !solve::hasLinearSolver()) {
    printError("no solver for linear programs is installed, which --bound and --remat-strategy=lp-rounding need");
    printNote("'tools/dev setup' brings HiGHS; or LOWTIDE_HIGHS=/path/to/libhighs.so.1");
    return exitUnsupported;
  }
  return exitOk;
}

int Compilation::lowerTo(int last, const std::string &budget) {
  const int first = stageNumber(options.from);
  if (int code = first < 0 ? import() : parse())
    return code;
  if (int code = first < 0 ? exitOk : checkWeightsKnown())
    return code;
  if (first < stageNumber("nn") && last >= stageNumber("nn"))
    if (int code = makeGraph())
      return code;
  if (first < stageNumber("train") && last >= stageNumber("train")) {
    if (int code = makeSteps(options.microBatches))
      return code;
    if (int code = options.lastBatch ? addLastBatch() : exitOk)
      return code;
  }
  if (first >= stageNumber("fitted") || last < stageNumber("fitted"))
    return exitOk;
  FitStageOptions stage = fitStageOptions();
  stage.budget = budget;
  return fitSteps(stage);
}

int Compilation::compile() {
  if (int code = checkTarget())
    return code;
  const bool asModel = options.emit == "onnx-model";
  const int first = stageNumber(options.from), last = stageNumber(asModel ? options.onnxStage : options.emit);
  if (first > last) {
    printError("--from=" + options.from + " comes after --emit=" + options.emit);
    return exitUsage;
  }
  if (options.emit == "artifact" && options.output.empty()) {
    printError("where should the artifact go?");
    printNote("for example -o step.tide; or stop at a stage with --emit=nn");
    return exitUsage;
  }
  if (asModel && options.output.empty()) {
    printError("where should the model go?");
    printNote("for example -o step.onnx");
    return exitUsage;
  }
  int code = lowerTo(last, options.deviceBudget);
  if (!code && last > stageNumber("fitted"))
    code = planAndWrite();
  else if (!code)
    code = asModel ? writeModel() : print();
  if (!code && options.dumpPassPipeline)
    llvm::errs() << "builtin.module(" << join(pipeline, ",") << ")\n";
  return code;
}

int Compilation::makeGraph() {
  if (int code = legalize())
    return code;
  GraphStageOptions stage = graphStageOptions();
  stage.lossHead = options.lossHeadChunks != "off";
  stage.lossHeadAlways = stage.lossHead && options.lossHeadChunks != "auto";
  return run("nn", [&](OpPassManager &passes) { buildGraphStage(passes, stage); }, exitBadInput);
}

int Compilation::makeSteps(int64_t microBatches, StringRef precision) {
  TrainStageOptions stage = trainStage(options);
  stage.microBatches = microBatches;
  if (!precision.empty())
    stage.precision = precision == "f32" ? "" : precision.str();
  return run(
      "train",
      [&](OpPassManager &passes) { holdsStep ? buildStepStage(passes, stage) : buildTrainStage(passes, stage); },
      exitBadInput);
}

int Compilation::addLastBatch() {
  int64_t whole = countSamples(*module);
  if (isText() || holdsStep || !options.shapes.empty() || options.lastBatch >= whole) {
    printError(options.lastBatch >= whole && !isText()
                   ? "--last-batch=" + llvm::Twine(options.lastBatch) + " is not below the batch of " +
                         llvm::Twine(whole) + " samples"
                   : llvm::Twine("--last-batch needs an ONNX model whose batch is a symbol"));
    printNote("bind the batch with --batch=8 or --dim batch=8; --last-batch is the rest of the data divided by it");
    return exitUsage;
  }
  OwningOpRef<ModuleOp> steps = std::move(module);
  samples = options.lastBatch;
  int code;
  auto imported = importOnnx(*file, initializers, importOptions(code));
  if (code || failed(imported))
    return code ? code : file->getExitCode();
  module = std::move(*imported);
  if ((code = makeGraph()))
    return code;
  // Parts that are no larger than those of a whole batch.
  int64_t parts = 1;
  while (samples % parts || samples / parts > whole / options.microBatches)
    ++parts;
  if ((code = makeSteps(parts)))
    return code;
  for (StringRef entry : {"train", "eval"})
    if (module->lookupSymbol(entry) && failed(train::moveEntry(*module, entry, *steps, (entry + "_last").str())))
      return exitInternal;
  module = std::move(steps);
  samples = 0;
  return exitOk;
}

/// "1.50 GFLOP".
static std::string flopText(uint64_t flops) {
  const char *const units[] = {"", "k", "M", "G", "T", "P"};
  double value = static_cast<double>(flops);
  unsigned unit = 0;
  for (; value >= 1000 && unit < 5; ++unit)
    value /= 1000;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(unit ? "%.2f " : "%.0f ", value) << units[unit] << "FLOP";
  return text;
}

void Compilation::reportCost() {
  // What is missing was said by the report; this only adds what can be known.
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  auto count = [&](StringRef entry) {
    auto step = module->lookupSymbol<func::FuncOp>(entry);
    uint64_t flops = 0;
    if (step)
      step.walk([&](FactsInterface op) { flops += op.getFlops(); });
    return flops;
  };
  auto failsQuietly = [&](llvm::function_ref<void(OpPassManager &)> build) {
    PassManager passes(&context);
    build(passes);
    return failed(passes.run(*module));
  };
  if (import() || legalize() ||
      failsQuietly([&](OpPassManager &passes) { buildGraphStage(passes, graphStageOptions()); }))
    return;
  llvm::outs() << "\narithmetic of one step: ";
  if (holdsStep) {
    llvm::outs() << flopText(count("train")) << " with gradients and updates\n";
    return;
  }
  llvm::outs() << flopText(count("forward")) << " forward";
  if (!failsQuietly([&](OpPassManager &passes) { buildTrainStage(passes, trainStage(options)); }) && count("train"))
    llvm::outs() << ", " << flopText(count("train")) << " with gradients and updates";
  llvm::outs() << "\n";
}
