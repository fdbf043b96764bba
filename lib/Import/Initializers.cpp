//===- Initializers.cpp - initializers as the IR takes them -----------------------===//
//
// A step says itself what its tensors are; of any other file recovery says it. Small tensors that no one trains then
// become constants of the IR.
//
//===----------------------------------------------------------------------===//

#include "StepSignature.h"

#include "lowtide/Import/Import.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Recover.h"
#include "lowtide/Recover/TensorFacts.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::TensorProto;

static void classifyStep(const OnnxFile &file, std::vector<InitializerInfo> &infos) {
  for (const TensorFacts &fact : collectTensorFacts(file)) {
    std::optional<StepBinding> binding = findInputBinding(file.getModel(), fact.tensor->name());
    InitializerRole role = !binding                   ? InitializerRole::Constant
                           : binding->kind == "param" ? InitializerRole::Parameter
                           : binding->kind == "state" ? InitializerRole::State
                                                      : InitializerRole::Constant;
    infos.push_back(makeInfo(fact, binding ? binding->name : fact.tensor->name(), role, Certainty::Stated,
                             binding ? RoleReason::StepUpdates : RoleReason::StepKeeps));
    infos.back().uses.assign(fact.uses.begin(), fact.uses.end());
  }
}

/// Whether legalization needs the values of a constant, or an argument would only carry one number.
static bool becomesConstant(const OnnxFile &file, const InitializerInfo &info) {
  if (info.role != InitializerRole::Constant)
    return false;
  // Integers of one or two bytes are codes of quantized weights, and no shapes.
  const bool isData =
      isFloatType(info.dataType) || (info.dataType != TensorProto::BOOL && findElementType(info.dataType)->bytes < 4);
  const int64_t limit = isData ? file.getLimits().constantFloats : file.getLimits().constantIntegers;
  // Shapes must be known to legalization, wherever the file keeps them; unreadable ones become arguments.
  if (info.getNumElements() <= limit && (file.isEmbedded(info.tensor) || file.tryReadInitializer(info.tensor)))
    return true;
  // So are numbers that only fill a shape, such as the scale of a layer that has none.
  return isFloatType(info.dataType) && !info.viewOf && info.getNumElements() > 0 &&
         info.getNumElements() <= file.getLimits().constantIntegers && file.isEmbedded(info.tensor) &&
         isConstantValued(file, *file.findInitializer(info.tensor)).value_or(false);
}

FailureOr<std::vector<InitializerInfo>> lowtide::classifyInitializers(OnnxFile &file, const ImportOptions &options) {
  FailureOr<std::vector<InitializerInfo>> infos = std::vector<InitializerInfo>();
  if (!isStep(file.getModel())) {
    infos = recoverRoles(file, options);
  } else {
    classifyStep(file, *infos);
    if (failed(applyChoices(file, options, *infos)))
      return failure();
  }
  if (succeeded(infos))
    for (InitializerInfo &info : *infos)
      info.inIR = becomesConstant(file, info);
  return infos;
}
