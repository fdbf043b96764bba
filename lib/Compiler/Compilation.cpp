//===- Compile.cpp - from a model to an artifact ----------------*- C++ -*-===//
//
// One direction: onnx → nn → train → fitted → plan → artifact. Each stage can be the first and the last. The stages up
// to `fitted` are here, what becomes of a fitted step in WriteArtifact.cpp, texts in StageText.cpp.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "PassLog.h"
#include "StepUpdates.h"
#include "Stopwatch.h"
#include "lowtide/Analysis/ValueEquivalence.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/Train/Target.h"
#include "lowtide/Import/ImportFlags.h"
#include "lowtide/InitAll.h"
#include "lowtide/Legalize/Exports.h"
#include "lowtide/Legalize/Legalize.h"
#include "lowtide/Pipeline.h"
#include "lowtide/Solve/Algorithms/LinearProgram.h"
#include "lowtide/Support/NameList.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>
#include <mutex>

using namespace mlir;
using namespace lowtide;

static MLIRContext::Threading threading() { return MLIRContext::Threading::DISABLED; }
static DialectRegistry allDialects() {
  DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

Compilation::Compilation(const Request &options, const Sources &sources, Listener *listener,
                         std::shared_ptr<codegen::KernelTrials> trials)
    : options(options), sources(sources), context(allDialects(), threading()), diagnostics(context, listener) {
  context.loadAllAvailableDialects();
  codegen::shareKernelTrials(context, std::move(trials));
  // A message about a step names the place; the step itself is thousands of lines.
  context.printOpOnDiagnostic(false);
  // The checks around passes look up what a pass says of itself, in a table of the process.
  static std::once_flag isRegistered;
  std::call_once(isRegistered, registerAllPasses);
}

Compilation::~Compilation() = default;

Failure Compilation::refuse(FailureKind kind, const llvm::Twine &message, ArrayRef<std::string> notes) {
  diagnostics.say(Severity::Error, message, notes);
  return {kind, message.str()};
}

ImportOptions Compilation::importOptions(Failure &failure) {
  ImportOptions result;
  failure = {};
  auto read = [&](const std::vector<std::string> &texts, std::string (*parse)(StringRef, ImportOptions &)) {
    for (const std::string &text : texts)
      if (std::string fault = parse(text, result); !fault.empty())
        failure = refuse(FailureKind::Usage, fault);
  };
  read(options.dims, parseDimFlag);
  read(options.shapes, parseShapeFlag);
  read(options.rename, parseRenameFlag);
  read(options.set, parseSetFlag);
  if (options.batch)
    result.batch = options.batch;
  if (samples) {
    result.batch = samples;
    result.wholeBatch = wholeSamples;
  }
  for (const Request::Selection &selection : options.selections)
    result.selections.push_back({selection.trains, selection.text});
  if (!options.lora.empty())
    result.frozenBy = "--lora trains low-rank pairs instead";
  return result;
}

Failure Compilation::open(ImportOptions &import) {
  Failure failure;
  import = importOptions(failure);
  if (failure)
    return failure;
  file = std::make_unique<OnnxFile>(context, sources.model);
  file->fixInputs(import.fixed);
  return failed(loadModel()) ? file->getFailure() : FailureKind::None;
}

Failure Compilation::load() {
  ImportOptions import;
  if (Failure failure = open(import))
    return failure;
  auto infos = classifyInitializers(*file, import);
  if (failed(infos))
    return file->getFailure();
  initializers = std::move(*infos);
  return {};
}

Failure Compilation::import() {
  const Stopwatch watch;
  if (Failure failure = load())
    return failure;
  Failure failure;
  auto imported = importOnnx(*file, initializers, importOptions(failure));
  if (failed(imported))
    return file->getFailure();
  module = std::move(*imported);
  train::setTarget(*module, target);
  if (isWritten)
    noteDigest();
  diagnostics.setModel(module->getLoc());
  diagnostics.log(LogLevel::Info, "import",
                  sources.model + ": " + llvm::Twine(initializers.size()) + " initializers, read in " + watch.text());
  const bool writesWeights =
      (options.emit == "artifact" && options.weights) || (options.emit == "onnx-model" && options.onnxWeights);
  return isWritten && writesWeights ? checkWeightFiles() : Failure();
}

Failure Compilation::checkWeightFiles() {
  auto model = module->lookupSymbol<func::FuncOp>("model");
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (auto initializer = model.getArgAttrOfType<StringAttr>(i, "onnx.initializer"))
      if (failed(file->checkInitializer(initializer)))
        return file->getFailure();
  return {};
}

LegalizeOptions Compilation::legalizeOptions(StringRef mode) const {
  LegalizeOptions result;
  result.mode = mode == "as-is" ? TrainingMode::AsIs : mode == "eval" ? TrainingMode::Eval : TrainingMode::Train;
  if (options.dropout >= 0)
    result.dropout = options.dropout;
  result.frozenNorms = llvm::join(options.freezeNorms, ",");
  result.loss = options.loss;
  result.watched = addedOutputs;
  return result;
}

Failure Compilation::legalize() {
  auto model = module->lookupSymbol<func::FuncOp>("model");
  if (!model)
    return refuse(FailureKind::BadInput, "'" + sources.model + "' has no function @model");
  auto entry = [&](StringRef mode, StringRef name, bool requireLoss) -> Failure {
    LegalizeOptions legalizeOptions = this->legalizeOptions(mode);
    legalizeOptions.entry = name.str();
    legalizeOptions.requireLoss = requireLoss;
    FailureKind failure = FailureKind::None;
    (void)legalizeModel(model, legalizeOptions, &failure);
    return failure;
  };
  bool eval = llvm::is_contained(options.entries, "eval");
  bool trains = llvm::is_contained(options.entries, "train") || llvm::is_contained(options.entries, "gradient");
  if (auto settings = model->getAttrOfType<DictionaryAttr>("onnx.step")) {
    // The file holds the whole step: there is nothing to differentiate, and no evaluation to take out of it.
    holdsStep = true;
    if (!trains)
      return refuse(FailureKind::Usage, "'" + sources.model + "' holds a training step; it has no other entry",
                    {"compile it with --entries=train"});
    if (Failure failure = checkForwardFlags())
      return failure;
    if (Failure failure = entry("as-is", "train", false))
      return failure;
    if (Failure failure = checkStepFlags())
      return failure;
    if (Failure failure = checkStepWeights())
      return failure;
    auto step = module->lookupSymbol<func::FuncOp>("train");
    if (model->hasAttr("onnx.given_gradients"))
      step->setAttr(givenGradientsAttrName, UnitAttr::get(&context));
    // What updates read is shown to train-scale-loss alone.
    if (options.lossScale == "none" && options.clipNorm == 0.0 && options.clipValue == 0.0)
      train::eraseResults(step, [](Attribute binding) { return isa_and_nonnull<train::GradientAttr>(binding); });
    if (llvm::Error error = setStepSettings(settings))
      return refuse(FailureKind::Usage, llvm::toString(std::move(error)));
    model.erase();
    if (Failure failure = makeExports())
      return failure;
    return keepOutputs("train");
  }
  if (trains)
    if (Failure failure = entry(options.mode, "forward", /*requireLoss=*/true);
        failure || (failure = keepOutputs("forward")))
      return failure;
  if (eval)
    if (Failure failure = entry(options.mode == "as-is" ? "as-is" : "eval", "eval", false);
        failure || (failure = keepOutputs("eval")))
      return failure;
  model.erase();
  return makeExports();
}

Failure Compilation::makeExports() {
  // A model that is written is the user's own.
  if (isModel()) {
    eraseExports(*module);
    return {};
  }
  FailureKind failure = FailureKind::None;
  (void)legalizeExports(*module, &failure);
  return failure;
}

Failure Compilation::run(StringRef area, llvm::function_ref<void(OpPassManager &)> build, FailureKind otherwise) {
  diagnostics.enter(area.str());
  PassManager passes(&context);
  if (diagnostics.wantsLog(LogLevel::Debug, area))
    passes.addInstrumentation(logPasses(diagnostics, area.str()));
  build(passes);
  if (passes.empty())
    return {};
  // What a pass that calls itself exact does to the values of a step is looked at in every compile.
  bool violated = false;
  addEquivalenceChecks(passes, violated);
  const Stopwatch watch;
  bool isExplained = false;
  ScopedDiagnosticHandler listen(&context, [&](Diagnostic &diagnostic) {
    isExplained |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return failure(); // somebody else prints it
  });
  bool passed = succeeded(passes.run(*module));
  diagnostics.log(LogLevel::Info, area, (passed ? "done in " : "failed after ") + watch.text());
  if (violated) {
    diagnostics.say(Severity::Note, "this is a defect of the compiler: the step would not compute what the model says");
    return FailureKind::Verification;
  }
  if (passed) {
    pipeline.push_back(describePipeline(passes));
    return {};
  }
  if (!isExplained)
    refuse(FailureKind::Internal, "a pass failed without saying why; rerun with lowtide-opt on the stage before");
  // A pass that knows whose mistake it is has left the kind on the module.
  if (const FailureKind kind = getFailure(*module); kind != FailureKind::None)
    return kind;
  // Whoever wrote the text may be wrong.
  return otherwise == FailureKind::Internal && isText() ? FailureKind::BadInput : otherwise;
}

int64_t lowtide::countSamples(ModuleOp module) {
  for (auto step : module.getOps<func::FuncOp>())
    if (int64_t samples = train::countSamples(step))
      return samples;
  return 0;
}

FitStageOptions Compilation::fitStageOptions() const {
  FitStageOptions stage(options);
  bool reference = target.kind == TargetKind::Reference;
  stage.fuse = options.fuse && !reference;
  stage.library = !reference;
  stage.widen = options.precision == "f64" ? "f64" : "";
  stage.isForGpu = target.isGpu();
  stage.partLossHeads = options.lossHeadChunks != "off";
  if (options.lossHeadChunks != "auto" && options.lossHeadChunks != "off")
    stage.headChunks = std::stol(options.lossHeadChunks);
  if (options.microBatchBlocks != "auto" && options.microBatchBlocks != "off")
    stage.loopBlocks = unsigned(std::stoul(options.microBatchBlocks));
  return stage;
}

Failure Compilation::checkTarget(bool comparesMethods) {
  if (Failure failure = findOptionsTarget())
    return failure;
  if (options.precision == "f64" && target.isGpu())
    return refuse(FailureKind::Usage,
                  "--precision=f64 computes everything in f64, which --target=cpu and --target=reference do");
  const bool needsSolver = options.bound || options.rematStrategy == "lp-rounding";
  const char *solver = std::getenv("LOWTIDE_HIGHS");
  if ((needsSolver || comparesMethods) && solver && *solver && !solve::hasLinearSolver())
    return refuse(
        FailureKind::Unsupported,
        "LOWTIDE_HIGHS=" + llvm::Twine(solver) + " could not be loaded as a solver for linear programs",
        {"it names HiGHS's libhighs.so.1; where it is not set, what 'tools/dev setup' or the system has is taken"});
  if (needsSolver && !solve::hasLinearSolver())
    return refuse(FailureKind::Unsupported,
                  "no solver for linear programs is installed, which --bound and --remat-strategy=lp-rounding need",
                  {"'tools/dev setup' brings HiGHS; or LOWTIDE_HIGHS=/path/to/libhighs.so.1"});
  return {};
}

Failure Compilation::lowerTo(int last, const std::string &budget) {
  const int first = getStageNumber(options.from);
  if (Failure failure = first < 0 ? import() : parse())
    return failure;
  if (Failure failure = first < 0 ? Failure() : agreeOnTarget())
    return failure;
  if (Failure failure = first < 0 ? Failure() : checkWeightsKnown())
    return failure;
  if (first < getStageNumber("nn") && last >= getStageNumber("nn"))
    if (Failure failure = makeGraph())
      return failure;
  if (first < getStageNumber("train") && last >= getStageNumber("train")) {
    if (Failure failure = makeSteps(options.microBatches))
      return failure;
    for (const EntryVariant &variant : options.variants)
      if (Failure failure = addVariant(variant, {{"", 0, options.microBatches}}))
        return failure;
  }
  isFitted = first >= getStageNumber("fitted");
  if (isFitted || last < getStageNumber("fitted"))
    return {};
  FitStageOptions stage = fitStageOptions();
  stage.deviceBudget = budget;
  warnOfWholeLoops(stage);
  Failure failure = fitSteps(stage);
  isFitted = !failure;
  return failure;
}

Failure Compilation::compile() {
  isWritten = true;
  if (Failure failure = checkTarget())
    return failure;
  const int first = getStageNumber(options.from), last = getStageNumber(isModel() ? options.onnxStage : options.emit);
  if (first > last)
    return refuse(FailureKind::Usage, "--from=" + options.from + " comes after --emit=" + options.emit);
  if (Failure failure = lowerTo(last, options.deviceBudget))
    return failure;
  if (isModel())
    return exportModel();
  if (last <= getStageNumber("fitted"))
    return {};
  if (Failure failure = makePlan())
    return failure;
  return options.emit == "plan" ? Failure() : openPlan();
}

Failure Compilation::makeGraph() {
  if (Failure failure = legalize())
    return failure;
  return run("nn", [&](OpPassManager &passes) { buildGraphStage(passes, options); }, FailureKind::BadInput);
}

Failure Compilation::makeSteps(int64_t microBatches, StringRef precision, StringRef moments) {
  OptionValues stage = options;
  stage.microBatches = microBatches;
  if (!precision.empty())
    stage.precision = precision.str();
  if (!moments.empty())
    stage.moments = moments.str();
  if (isModel())
    (*module)->setAttr(train::inModelAttrName, UnitAttr::get(&context));
  if (!options.variants.empty())
    (*module)->setAttr(entryVariantsAttrName, UnitAttr::get(&context));
  Failure failure = run(
      "train",
      [&](OpPassManager &passes) { holdsStep ? buildStepStage(passes, stage) : buildTrainStage(passes, stage); },
      FailureKind::BadInput);
  // Parameters lie in the order of the first entry.
  for (func::FuncOp entry : findExports(*module))
    entry->moveBefore(module->getBody(), module->getBody()->end());
  return failure;
}

Failure Compilation::addVariants(const Variation &of) {
  for (const EntryVariant &variant : options.variants)
    if (!variant.batch || variant.batch < countSamples(*module))
      if (Failure failure = addVariant(variant, of))
        return failure;
  return {};
}

Failure Compilation::addVariant(const EntryVariant &variant, const Variation &of) {
  const int64_t whole = countSamples(*module);
  const bool isLast = variant.name == "last";
  if (isText() || holdsStep || !options.shapes.empty() || (isLast && variant.batch >= whole)) {
    const std::string flag = isLast ? "--last-batch" : "entry variant '" + variant.name + "'";
    return refuse(
        FailureKind::Usage,
        isLast && variant.batch >= whole && !isText()
            ? "--last-batch=" + llvm::Twine(variant.batch) + " is not below the batch of " + llvm::Twine(whole) +
                  " samples"
            : flag + llvm::Twine(" needs an ONNX model whose batch is a symbol"),
        {"bind the batch with --batch=8 or --dim batch=8; --last-batch is the rest of the data divided by it"});
  }
  OwningOpRef<ModuleOp> steps = std::move(module);
  samples = variant.batch ? variant.batch : of.batch;
  wholeSamples = given ? countSamples(*given) : whole;
  // Parts that are no larger than those of a whole batch.
  const int64_t batch = samples ? samples : whole;
  int64_t parts = std::max<int64_t>(1, variant.parts);
  while (!variant.parts && (batch % parts || batch / parts > whole / of.parts))
    ++parts;
  Failure failure;
  auto imported = importOnnx(*file, initializers, importOptions(failure));
  if (!failure && failed(imported))
    failure = file->getFailure();
  if (!failure) {
    module = std::move(*imported);
    train::setTarget(*module, target);
    failure = makeGraph();
  }
  if (!failure)
    failure = makeSteps(parts, variant.precision.empty() ? of.precision : variant.precision, of.moments);
  if (failure) {
    if (isLast && !given) // the step itself was made
      diagnostics.say(Severity::Note, "so it is with --last-batch=" + llvm::Twine(variant.batch) +
                                          ": leave it out, or take more samples");
    return failure;
  }
  for (StringRef entry : {"train", "eval"})
    if (module->lookupSymbol(entry) &&
        failed(train::moveEntry(*module, entry, *steps, (entry + "_" + variant.name).str())))
      return FailureKind::Internal;
  module = std::move(steps);
  samples = 0;
  return {};
}
