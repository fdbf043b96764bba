//===- Check.cpp - what stands in a model's way ------------------*- C++ -*-===//
//
// The file is imported and legalized without its weights; whatever is refused on the way is listed, node by node.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Import/Check.h"
#include "Compilation.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Legalize/Legalize.h"
#include "lowtide/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

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

Failure Compilation::check(const CheckOptions &how, llvm::raw_ostream &os) {
  ImportOptions import;
  if (Failure failure = open(import))
    return failure;
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
      refuse(FailureKind::BadInput, "'" + nodes.name + "' at " + llvm::join(nodes.places, ", ") + ": " + nodes.reason);
  llvm::erase_if(refusals, isMalformed);
  std::vector<RefusedNodes> refused = group(refusals);
  const std::optional<CheckAdvice> advice =
      isJudged && fits ? std::optional(advise(unbound, missingLoss, data)) : std::nullopt;
  const FailureKind reported = how.json ? reportModelAsJson(*file, import, refused, advice ? &*advice : nullptr, os)
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
  if (!how.json && unbound.empty())
    reportCost(os);
  if (!how.json && advice)
    printAdvice(*advice, os);
  os.flush();
  return how.strict ? refuseGuesses(*initializersOrFailure) : Failure();
}

Failure Compilation::checkDerivatives() {
  auto forward = module->lookupSymbol<func::FuncOp>("forward");
  auto isLoss = [&](unsigned i) {
    return static_cast<bool>(forward.getResultAttrOfType<train::MetricAttr>(i, train::bindingAttrName));
  };
  if (!forward || llvm::none_of(llvm::seq(forward.getNumResults()), isLoss))
    return {};
  module->lookupSymbol<func::FuncOp>("model").erase();
  if (Failure failure = run(
          "nn", [&](OpPassManager &passes) { buildGraphStage(passes, graphStageOptions()); }, FailureKind::BadInput))
    return failure;
  TrainStageOptions stage;
  stage.entries = {"gradient"};
  return run("train", [&](OpPassManager &passes) { buildTrainStage(passes, stage); }, FailureKind::Unsupported);
}
