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
  std::vector<std::string> unbound = findUnboundDims(*file, import);
  std::vector<Refusal> refusals;
  bool isJudged = false, trains = false;
  LegalizeFailure failure = LegalizeFailure::None;
  auto initializersOrFailure = classifyInitializers(*file, import);
  if (succeeded(initializersOrFailure)) {
    auto imported = importOnnx(*file, *initializersOrFailure, bindExamples(*file, import));
    if (succeeded(imported)) {
      module = std::move(*imported);
      auto model = module->lookupSymbol<func::FuncOp>("model");
      bool isStep = model->hasAttr("onnx.step"); // with its gradients
      LegalizeOptions legalizeOptions = this->legalizeOptions(isStep ? "as-is" : options.mode);
      legalizeOptions.refusals = &refusals;
      auto forward = legalizeModel(model, legalizeOptions, &failure);
      isJudged = succeeded(forward) || !refusals.empty();
      trains = succeeded(forward) && !isStep;
    }
  }
  // With sizes that are examples, what does not fit together may fit with others.
  auto isMalformed = [](const Refusal &refusal) { return refusal.isMalformed; };
  bool fits = !llvm::any_of(refusals, isMalformed);
  if (unbound.empty())
    for (const RefusedNodes &nodes : group(llvm::to_vector(llvm::make_filter_range(refusals, isMalformed))))
      printError("'" + nodes.name + "' at " + llvm::join(nodes.places, ", ") + ": " + nodes.reason);
  llvm::erase_if(refusals, isMalformed);
  std::vector<RefusedNodes> refused = group(refusals);
  int code = (options.json ? reportModelAsJson : reportModel)(*file, import, refused, llvm::outs());
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
  return exitOk;
}

int Compilation::checkDerivatives() {
  auto forward = module->lookupSymbol<func::FuncOp>("forward");
  auto isLoss = [&](unsigned i) {
    return static_cast<bool>(forward.getResultAttrOfType<train::MetricAttr>(i, train::bindingAttrName));
  };
  if (!forward || llvm::none_of(llvm::seq(forward.getNumResults()), isLoss))
    return exitOk;
  module->lookupSymbol<func::FuncOp>("model").erase();
  if (int code = run("nn", [](OpPassManager &passes) { buildGraphStage(passes, {}); }, exitBadInput))
    return code;
  TrainStageOptions stage;
  stage.entries = {"gradient"};
  return run("train", [&](OpPassManager &passes) { buildTrainStage(passes, stage); }, exitUnsupported);
}
