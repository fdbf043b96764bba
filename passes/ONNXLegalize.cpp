//===- ONNXLegalize.cpp - from the onnx dialect to nn -----------*- C++ -*-===//
//
// Reads the options and hands the model to lib/Legalize.
//
//===----------------------------------------------------------------------===//

#include "OptionChoices.h"
#include "StepPass.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Legalize/Legalize.h"
#include "llvm/ADT/StringSwitch.h"

namespace lowtide {
#define GEN_PASS_DEF_ONNXLEGALIZE
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

namespace {

struct ONNXLegalize : StepPass<lowtide::impl::ONNXLegalizeBase<ONNXLegalize>> {
  using StepPass::StepPass;

  /// Fails with a message when an option is not understood.
  FailureOr<LegalizeOptions> readOptions() {
    LegalizeOptions result;
    if (failed(checkChoice(getOperation(), "mode", mode, trainingModes)))
      return failure();
    auto parsed = llvm::StringSwitch<std::optional<TrainingMode>>(mode)
                      .Case("train", TrainingMode::Train)
                      .Case("eval", TrainingMode::Eval)
                      .Case("as-is", TrainingMode::AsIs)
                      .Default(std::nullopt);
    if (!dropout.empty()) {
      double ratio;
      if (StringRef(dropout).getAsDouble(ratio) || !(ratio >= 0.0 && ratio <= 1.0)) {
        getOperation().emitError() << "--dropout: '" << dropout << "' is not a ratio in [0, 1]";
        return failure();
      }
      result.dropout = ratio;
    }
    result.mode = *parsed;
    result.loss = loss;
    result.entry = entry;
    result.requireLoss = requireLoss;
    return result;
  }

  void fail(StringRef kind) {
    getOperation()->setAttr("lowtide.failure", StringAttr::get(&getContext(), kind));
    signalPassFailure();
  }

  void runOnSteps() override {
    auto source = getOperation().lookupSymbol<func::FuncOp>(model);
    if (!source) {
      getOperation().emitError() << "there is no function @" << model;
      return fail("usage");
    }
    FailureOr<LegalizeOptions> options = readOptions();
    if (failed(options))
      return fail("usage");
    LegalizeFailure kind;
    if (failed(legalizeModel(source, *options, &kind)))
      return fail(kind == LegalizeFailure::Unsupported ? "unsupported"
                  : kind == LegalizeFailure::Usage     ? "usage"
                                                       : "malformed");
    if (!keepModel)
      source.erase();
  }
};

} // namespace
