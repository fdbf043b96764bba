//===- Check.cpp - what stands in a model's way ------------------*- C++ -*-===//
//
// The file is imported and legalized without its weights; whatever is refused on the way is listed, node by node.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Import/Check.h"
#include "Compilation.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Target.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/Legalize/Exports.h"
#include "lowtide/Legalize/Legalize.h"
#include "lowtide/Pipeline.h"
#include "lowtide/Serialize/CodedWeights.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace lowtide;

/// One entry for each operator and reason, in order of occurrence.
static std::vector<RefusedNodes> group(ArrayRef<Refusal> refusals) {
  std::vector<RefusedNodes> groups;
  for (const Refusal &refusal : refusals) {
    auto same = llvm::find_if(groups, [&](const RefusedNodes &nodes) {
      return nodes.domain == refusal.domain && nodes.name == refusal.op && nodes.reason == refusal.reason;
    });
    if (same == groups.end())
      same = groups.insert(same, {refusal.domain, refusal.op, refusal.version, refusal.reason, {}});
    same->places.push_back(refusal.place);
  }
  return groups;
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

std::optional<StepCost> Compilation::measureCost(const ImportOptions &bound, bool areExamples) {
  // What is missing was said by the report; this only adds what can be known.
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> judged = std::move(module);
  llvm::scope_exit giveBack([&] { module = std::move(judged); });
  auto count = [&](StringRef entry) -> std::optional<uint64_t> {
    auto step = module->lookupSymbol<func::FuncOp>(entry);
    if (!step || areExamples)
      return std::nullopt;
    uint64_t flops = 0;
    step.walk([&](FactsInterface op) { flops += op.getFlops(); });
    return flops;
  };
  auto fails = [&](llvm::function_ref<void(OpPassManager &)> build) {
    PassManager passes(&context);
    build(passes);
    return failed(passes.run(*module));
  };
  auto imported = importOnnx(*file, bound);
  if (failed(imported))
    return std::nullopt;
  module = std::move(*imported);
  train::setTarget(*module, target);
  if (legalize() || fails([&](OpPassManager &passes) { buildGraphStage(passes, options); }))
    return std::nullopt;
  StepCost cost;
  if (holdsStep) {
    cost.stepFlops = count("train");
    return cost;
  }
  cost.forwardFlops = count("forward");
  if (fails([&](OpPassManager &passes) { buildTrainStage(passes, options); }))
    return cost;
  cost.stepFlops = count("train");
  cost.stored = countStored();
  return cost;
}

static void printCost(const StepCost &cost, llvm::raw_ostream &os) {
  SmallVector<std::string> parts;
  if (cost.forwardFlops)
    parts.push_back(flopText(*cost.forwardFlops) + " forward");
  if (cost.stepFlops)
    parts.push_back(flopText(*cost.stepFlops) + " with gradients and updates");
  if (!parts.empty() || !cost.stored.isEmpty())
    os << "\n";
  if (!parts.empty())
    os << "arithmetic of one step: " << llvm::join(parts, ", ") << "\n";
  if (!cost.stored.isEmpty())
    cost.stored.print(os);
}

static llvm::json::Object toJson(const StepCost &cost) {
  llvm::json::Object object;
  if (cost.forwardFlops)
    object["forward_flops"] = static_cast<int64_t>(*cost.forwardFlops);
  if (cost.stepFlops)
    object["step_flops"] = static_cast<int64_t>(*cost.stepFlops);
  if (!cost.stored.isEmpty())
    object["stored"] = cost.stored.toJson();
  return object;
}

Failure Compilation::check(const CheckOptions &how, llvm::raw_ostream &os) {
  ImportOptions import;
  if (Failure failure = open(import))
    return failure;
  ImportOptions examples;
  std::vector<std::string> unbound;
  std::vector<Refusal> refusals;
  auto isMalformed = [](const Refusal &refusal) { return refusal.isMalformed; };
  bool isJudged = false, trains = false, fits = true;
  std::optional<std::string> missingLoss;
  std::string data;
  FailureKind failure = FailureKind::None;
  auto initializersOrFailure = classifyInitializers(*file, import);
  // Small examples first; images and windows may need larger ones.
  for (int64_t example : {8, 64, 224, 512}) {
    unbound = findUnboundDims(*file, import, example);
    refusals.clear();
    if (failed(initializersOrFailure))
      break;
    examples = bindExamples(*file, import, example);
    auto imported = importOnnx(*file, *initializersOrFailure, examples);
    if (failed(imported))
      break;
    module = std::move(*imported);
    eraseExports(*module);
    diagnostics.setModel(module->getLoc());
    auto model = module->lookupSymbol<func::FuncOp>("model");
    bool isStep = model->hasAttr("onnx.step"); // with its gradients
    LegalizeOptions legalizeOptions = this->legalizeOptions(isStep ? "as-is" : options.mode);
    legalizeOptions.refusals = &refusals;
    auto forward = legalizeModel(model, legalizeOptions, &failure);
    isJudged = succeeded(forward) || !refusals.empty();
    trains = succeeded(forward) && !isStep;
    fits = !llvm::any_of(refusals, isMalformed);
    if (succeeded(forward)) {
      func::FuncOp trained = *forward;
      if (trains)
        missingLoss = findMissingLoss(model, trained);
      data = describeData(trained);
      if (trained != *forward)
        trained.erase();
    }
    if (fits || unbound.empty())
      break;
  }
  // With sizes that are examples, what does not fit together may fit with others.
  if (unbound.empty())
    for (const RefusedNodes &nodes : group(llvm::to_vector(llvm::make_filter_range(refusals, isMalformed))))
      refuse(FailureKind::BadInput, "'" + nodes.name + "' at " + llvm::join(nodes.places, ", ") + ": " + nodes.reason);
  llvm::erase_if(refusals, isMalformed);
  std::vector<RefusedNodes> refused = group(refusals);
  const std::optional<CheckAdvice> advice =
      isJudged && fits ? std::optional(advise(unbound, missingLoss, data)) : std::nullopt;
  std::vector<CodedWeight> coded;
  if (options.codesFrozen() && refusals.empty() && isJudged && fits)
    if (Failure failed = measureFrozen(examples, coded))
      return failed;
  std::optional<StepCost> cost;
  if (isJudged && fits && refused.empty())
    cost = measureCost(examples, !unbound.empty());
  const FailureKind reported =
      how.json ? reportModelAsJson(*file, import, refused, coded, cost ? toJson(*cost) : llvm::json::Object(),
                                   advice ? &*advice : nullptr, os)
               : reportModel(*file, import, refused, os);
  os.flush();
  if (!unbound.empty() && isJudged)
    diagnostics.say(Severity::Note,
                    "operators are judged with " + llvm::join(unbound, " ") +
                        (fits ? "" : ", sizes that do not fit the model: bind them for a complete answer"));
  if (reported == FailureKind::None && failure == FailureKind::Usage)
    return failure;
  if (reported != FailureKind::None || !isJudged || (!fits && unbound.empty()))
    return reported != FailureKind::None ? reported : FailureKind::BadInput;
  if (Failure failed = trains ? checkDerivatives() : Failure())
    return failed;
  if (!how.json && !coded.empty())
    printCoded(coded, options.frozenWeights, os);
  if (cost && !how.json)
    printCost(*cost, os);
  if (!how.json && advice)
    printAdvice(*advice, os);
  os.flush();
  return how.strict ? refuseGuesses(*initializersOrFailure) : Failure();
}

Failure Compilation::measureFrozen(const ImportOptions &bound, std::vector<CodedWeight> &found) {
  OwningOpRef<ModuleOp> judged = std::move(module);
  llvm::scope_exit giveBack([&] { module = std::move(judged); });
  auto imported = importOnnx(*file, bound);
  if (failed(imported))
    return file->getFailure();
  module = std::move(*imported);
  eraseExports(*module);
  auto model = module->lookupSymbol<func::FuncOp>("model");
  FailureKind failure = FailureKind::None;
  if (failed(legalizeModel(model, legalizeOptions(model->hasAttr("onnx.step") ? "as-is" : options.mode), &failure)))
    return failure;
  model.erase();
  if (Failure failed =
          run("nn", [&](OpPassManager &passes) { buildGraphStage(passes, options); }, FailureKind::BadInput))
    return failed;
  for (auto step : module->getOps<func::FuncOp>())
    for (unsigned i = 0; i < step.getNumArguments(); ++i) {
      auto coded = step.getArgAttrOfType<DictionaryAttr>(i, train::codedAttrName);
      if (!coded || !coded.contains("scales"))
        continue;
      auto initializer = step.getArgAttrOfType<StringAttr>(i, "onnx.initializer");
      const StringRef name = train::getBindingName(train::getArgBinding(step, i)).getValue();
      std::string bytes;
      if (failed(readWeights(initializer, [&](ArrayRef<char> piece) { bytes.append(piece.begin(), piece.end()); })))
        return file->getFailure();
      CodedError error;
      if (std::string fault = measureCoded(coded, bytes, error); !fault.empty())
        return refuse(FailureKind::BadInput, "'" + name + "' " + fault);
      ArrayRef<int64_t> dims = coded.getAs<DenseI64ArrayAttr>("coded_dims").asArrayRef();
      found.push_back({name.str(), dims.vec(), error.bytesBefore, error.bytes, error.largest, error.rms});
    }
  return {};
}

Failure Compilation::checkDerivatives() {
  auto forward = module->lookupSymbol<func::FuncOp>("forward");
  auto isLoss = [&](unsigned i) {
    return static_cast<bool>(forward.getResultAttrOfType<train::MetricAttr>(i, train::bindingAttrName));
  };
  if (!forward || llvm::none_of(llvm::seq(forward.getNumResults()), isLoss))
    return {};
  module->lookupSymbol<func::FuncOp>("model").erase();
  if (Failure failure =
          run("nn", [&](OpPassManager &passes) { buildGraphStage(passes, options); }, FailureKind::BadInput))
    return failure;
  OptionValues stage;
  stage.entries = {"gradient"};
  return run("train", [&](OpPassManager &passes) { buildTrainStage(passes, stage); }, FailureKind::Unsupported);
}
