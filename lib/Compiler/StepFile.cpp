//===- StepFile.cpp - a model file that holds a whole step ------*- C++ -*-===//
//
// Its forward pass and its updates are the file's own; rate and schedule may be others where the step reads its rate.
//
//===----------------------------------------------------------------------===//

#include "Compilation.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/TrainOptions.h"
#include "lowtide/Interfaces/BindingInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lowtide;

llvm::Error Compilation::setStepSettings(DictionaryAttr settings) {
  train::TrainOptions result;
  for (NamedAttribute setting : settings) {
    auto [group, key] = setting.getName().getValue().split('.');
    StringRef flag = key == "kind" ? group : key;
    if (llvm::Error error = result.set(flag, cast<StringAttr>(setting.getValue())))
      return error;
  }
  const std::tuple<const char *, StringRef, StringRef> rates[] = {{"lr", "lr", options.lr},
                                                                  {"schedule", "schedule", options.schedule},
                                                                  {"warmup-steps", "warmup_steps", options.warmupSteps},
                                                                  {"total-steps", "total_steps", options.totalSteps},
                                                                  {"min-lr", "min_lr", options.minLr}};
  for (auto [flag, key, value] : rates)
    if (options.rateFlags.count(flag))
      if (llvm::Error error = result.set(key, value))
        return error;
  for (const auto &[key, value] : options.scheduleOptions)
    if (llvm::Error error = result.set(key, value))
      return error;
  if (llvm::Error error = result.finish(&context))
    return error;
  if (settings.get("optimizer.kind"))
    (*module)->setAttr(train::optimizerAttrName, result.getOptimizerAttr(&context));
  (*module)->setAttr(train::scheduleAttrName, result.getScheduleAttr(&context));
  return llvm::Error::success();
}

Failure Compilation::checkStepWeights() {
  auto step = module->lookupSymbol<func::FuncOp>("train");
  for (unsigned i = 0; i < step.getNumArguments() && options.emit == "artifact" && options.weights; ++i) {
    auto binding = step.getArgAttrOfType<BindingInterface>(i, train::bindingAttrName);
    if (!binding.isFromFile() || step.getArgAttr(i, "onnx.initializer"))
      continue;
    return refuse(FailureKind::BadInput,
                  "'" + binding.getName().str() + "' starts from the model file, which has no values for it",
                  {"write the model with its weights: --onnx-weights"});
  }
  return {};
}

Failure Compilation::refuseFlag(StringRef flag, StringRef reason, const llvm::Twine &changes) {
  return refuse(FailureKind::Usage, flag + " has no effect: '" + sources.model + "' holds a training step, " + reason,
                {("leave it out, or compile the model that the step was made of" + changes).str()});
}

Failure Compilation::checkForwardFlags() {
  return options.forwardFlags.empty()
             ? Failure()
             : refuseFlag(options.forwardFlags.begin()->second, "whose forward pass is its own", "");
}

Failure Compilation::checkStepFlags() {
  auto step = module->lookupSymbol<func::FuncOp>("train");
  const bool readsRate = llvm::any_of(llvm::seq(step.getNumArguments()), [&](unsigned i) {
    auto binding = step.getArgAttrOfType<BindingInterface>(i, train::bindingAttrName);
    return binding && binding.getBindingKind() == BindingKind::Scalar && isRealScalar(binding.getName().getValue());
  });
  auto refuse = [&](StringRef flag, StringRef reason) {
    return refuseFlag(flag, reason,
                      "; of such a step can be changed: " +
                          llvm::Twine(readsRate ? "--lr, --schedule, --warmup-steps, --total-steps, --min-lr, " : "") +
                          "--loss-scale, --clip-norm, --clip-value, --precision");
  };
  if (!options.updateFlags.empty())
    return refuse(options.updateFlags.begin()->second, "whose updates are its own");
  if (!options.rateFlags.empty() && !readsRate)
    return refuse(options.rateFlags.begin()->second, "whose learning rate is a constant");
  return {};
}
