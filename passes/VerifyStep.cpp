//===- VerifyStep.cpp - checks the bindings of entry points ----*- C++ -*-===//
//
// What a step reads and writes is named, once, and fits together.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace lowtide {
#define GEN_PASS_DEF_VERIFYSTEP
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

/// Tensors that outlive a step share one space of names; batch arrays, scalars,
/// metrics and outputs have one each.
static StringRef spaceOf(Attribute binding) {
  if (isa<train::ParamAttr, train::StateAttr, train::ConstantAttr>(binding))
    return "tensor ";
  if (isa<train::BatchAttr>(binding))
    return "batch ";
  if (isa<train::ScalarAttr>(binding))
    return "scalar ";
  return isa<train::MetricAttr>(binding) ? "metric " : "output ";
}

static bool isArgumentBinding(Attribute binding) {
  return !isa<train::MetricAttr, train::OutputAttr, train::GradientAttr>(binding);
}
static bool isResultBinding(Attribute binding) {
  return isa<train::ParamAttr, train::StateAttr>(binding) || !isArgumentBinding(binding);
}

namespace {
/// Checks one entry point; every function returns failure after an error.
class StepVerifier {
public:
  StepVerifier(func::FuncOp step) : step(step) {}

  LogicalResult verify() {
    LogicalResult result = success();
    if (!step.getBody().hasOneBlock())
      return step.emitError("a step has one block");
    for (unsigned i = 0; i < step.getNumArguments(); ++i)
      if (failed(verifyArgument(i)))
        result = failure();
    for (unsigned i = 0; i < step.getNumResults(); ++i)
      if (failed(verifyResult(i)))
        result = failure();
    // What changes no parameter may do without a loss: an evaluation of a model that ends at its logits. What makes
    // updates of a step that has been has none.
    if (succeeded(result) && (losses > 1 || (losses == 0 && trains && step.getSymName() != StringRef(flushEntry))))
      return step.emitError("@") << step.getSymName() << " has " << losses << " losses, but a step has one";
    return result;
  }

private:
  InFlightDiagnostic emit() { return step.emitError("@") << step.getSymName() << ": "; }

  LogicalResult verifyArgument(unsigned i) {
    Attribute binding = train::getArgBinding(step, i);
    if (!train::isBinding(binding) || !isArgumentBinding(binding))
      return emit() << "argument " << i << " has no binding that an argument can have";
    StringRef name = train::getBindingName(binding);
    if (!argNames.insert({(spaceOf(binding) + name).str(), i}).second)
      return emit() << "argument " << i << " repeats the name '" << name << "'";
    Type type = step.getArgument(i).getType();
    if (isa<train::ParamAttr>(binding) && !isa<FloatType>(getElementTypeOrSelf(type)))
      return emit() << "parameter '" << name << "' has the type " << type << ", which cannot be trained";
    if (isa<train::ScalarAttr>(binding)) {
      if (!isStepScalar(name))
        return emit() << "scalar '" << name << "' is none of " << listOfStepScalars;
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || tensor.getRank() != 0 || isa<FloatType>(tensor.getElementType()) != isRealScalar(name))
        return emit() << "scalar '" << name << "' has the type " << type;
    }
    return success();
  }

  LogicalResult verifyResult(unsigned i) {
    Attribute binding = train::getResultBinding(step, i);
    if (!train::isBinding(binding) || !isResultBinding(binding))
      return emit() << "result " << i << " has no binding that a result can have";
    StringRef name = train::getBindingName(binding);
    std::string key = (spaceOf(binding) + name).str();
    if (!resultNames.insert(key).second)
      return emit() << "result " << i << " repeats the name '" << name << "'";
    Type type = step.getFunctionType().getResult(i);
    if (isa<train::MetricAttr>(binding) && name == "loss") {
      ++losses;
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape() || tensor.getNumElements() != 1 ||
          !isa<FloatType>(tensor.getElementType()))
        return emit() << "the loss must be one floating-point number, found " << type;
    }
    if (!isa<train::ParamAttr, train::StateAttr>(binding))
      return success();
    trains |= isa<train::ParamAttr>(binding);
    auto argument = argNames.find(key);
    if (argument == argNames.end() || train::getArgBinding(step, argument->second) != binding)
      return emit() << "result " << i << " updates '" << name << "', which is no argument with the same binding";
    if (Type expected = step.getArgument(argument->second).getType(); expected != type)
      return emit() << "result " << i << " updates '" << name << "' of type " << expected << " with " << type;
    return success();
  }

  func::FuncOp step;
  llvm::StringMap<unsigned> argNames;
  llvm::StringSet<> resultNames;
  unsigned losses = 0;
  bool trains = false;
};

struct VerifyStep : StepPass<lowtide::impl::VerifyStepBase<VerifyStep>> {
  /// A tensor that entry points share has one type and one kind.
  LogicalResult verifyShared(func::FuncOp step) {
    for (unsigned i = 0; i < step.getNumArguments(); ++i) {
      Attribute binding = train::getArgBinding(step, i);
      if (!isa_and_nonnull<train::ParamAttr, train::StateAttr, train::ConstantAttr>(binding))
        continue;
      auto [entry, isNew] = shared.try_emplace(train::getBindingName(binding).getValue(), binding, step.getArgument(i));
      auto [firstBinding, firstArgument] = entry->second;
      if (firstBinding == binding && firstArgument.getType() == step.getArgument(i).getType())
        continue;
      InFlightDiagnostic error = step.emitError("@") << step.getSymName() << " takes " << binding << " of type "
                                                     << step.getArgument(i).getType();
      error.attachNote(firstArgument.getLoc())
          << "another entry point takes " << firstBinding << " of type " << firstArgument.getType();
      return error;
    }
    return success();
  }

  void runOnSteps() override {
    shared.clear();
    bool ok = true;
    for (auto step : getOperation().getOps<func::FuncOp>())
      ok &= succeeded(StepVerifier(step).verify()) && succeeded(verifyShared(step));
    if (!ok)
      signalPassFailure();
  }

  llvm::StringMap<std::pair<Attribute, BlockArgument>> shared;
};
} // namespace
