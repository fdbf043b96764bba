//===- Check.cpp - what stands in a model's way ------------------*- C++ -*-===//
//
// The file is imported and legalized without its weights; whatever is refused on the way is listed, node by node.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Import/Check.h"
#include "Compile.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Legalize/Legalize.h"
#include "lowtide/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::driver;

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

int Compilation::check() {
  ImportOptions import;
  if (int code = open(import))
    return code;
  std::vector<std::string> unbound;
  std::vector<Refusal> refusals;
  auto isMalformed = [](const Refusal &refusal) { return refusal.isMalformed; };
  bool isJudged = false, trains = false, fits = true;
  std::optional<std::string> missingLoss;
  std::string data;
  LegalizeFailure failure = LegalizeFailure::None;
  auto initializersOrFailure = classifyInitializers(*file, import);
  // Small examples first; images and windows may need larger ones.
  for (int64_t example : {8, 64, 224, 512}) {
    unbound = findUnboundDims(*file, import, example);
    refusals.clear();
    if (failed(initializersOrFailure))
      break;
    auto imported = importOnnx(*file, *initializersOrFailure, bindExamples(*file, import, example));
    if (failed(imported))
      break;
    module = std::move(*imported);
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
      printError("'" + nodes.name + "' at " + llvm::join(nodes.places, ", ") + ": " + nodes.reason);
  llvm::erase_if(refusals, isMalformed);
  std::vector<RefusedNodes> refused = group(refusals);
  const std::optional<CheckAdvice> advice =
      isJudged && fits ? std::optional(advise(unbound, missingLoss, data)) : std::nullopt;
  int code = options.json ? reportModelAsJson(*file, import, refused, advice ? &*advice : nullptr, llvm::outs())
                          : reportModel(*file, import, refused, llvm::outs());
  llvm::outs().flush();
  if (!unbound.empty() && isJudged)
    printNote("operators are judged with " + llvm::join(unbound, " ") +
              (fits ? "" : ", sizes that do not fit the model: bind them for a complete answer"));
  if (!code && failure == LegalizeFailure::Usage)
    return exitUsage;
  if (code || !isJudged || (!fits && unbound.empty()))
    return code ? code : exitBadInput;
  if (int failed = trains ? checkDerivatives() : exitOk)
    return failed;
  if (!options.json && unbound.empty())
    reportCost();
  if (!options.json && advice)
    printAdvice(*advice, llvm::outs());
  llvm::outs().flush();
  return options.strict ? refuseGuesses(*initializersOrFailure) : exitOk;
}

int Compilation::checkDerivatives() {
  auto forward = module->lookupSymbol<func::FuncOp>("forward");
  auto isLoss = [&](unsigned i) {
    return static_cast<bool>(forward.getResultAttrOfType<train::MetricAttr>(i, train::bindingAttrName));
  };
  if (!forward || llvm::none_of(llvm::seq(forward.getNumResults()), isLoss))
    return exitOk;
  module->lookupSymbol<func::FuncOp>("model").erase();
  if (int code = run("nn", [&](OpPassManager &passes) { buildGraphStage(passes, graphStageOptions()); }, exitBadInput))
    return code;
  TrainStageOptions stage;
  stage.entries = {"gradient"};
  return run("train", [&](OpPassManager &passes) { buildTrainStage(passes, stage); }, exitUnsupported);
}
