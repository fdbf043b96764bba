//===- ONNXLegalize.cpp - from the onnx dialect to nn -----------*- C++ -*-===//
//
// Reads the options and hands the model to lib/Legalize.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Legalize/Exports.h"
#include "lowtide/Legalize/Legalize.h"
#include "lowtide/Support/Failure.h"
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
    if (failed(checkOptions(getOperation(), {{"mode", mode}, {"dropout", dropout}})))
      return failure();
    auto parsed = llvm::StringSwitch<std::optional<TrainingMode>>(mode)
                      .Case("train", TrainingMode::Train)
                      .Case("eval", TrainingMode::Eval)
                      .Case("as-is", TrainingMode::AsIs)
                      .Default(std::nullopt);
    if (double ratio; !StringRef(dropout).getAsDouble(ratio) && ratio >= 0.0)
      result.dropout = ratio;
    result.mode = *parsed;
    result.loss = loss;
    result.entry = entry;
    result.requireLoss = requireLoss;
    return result;
  }

  void fail(FailureKind kind) {
    setFailure(getOperation(), kind);
    signalPassFailure();
  }

  void runOnSteps() override {
    FailureOr<LegalizeOptions> options = readOptions();
    if (failed(options))
      return fail(FailureKind::Usage);
    auto source = getOperation().lookupSymbol<func::FuncOp>(model);
    if (!source) {
      getOperation().emitError() << "there is no function @" << model;
      return fail(FailureKind::Usage);
    }
    FailureKind kind;
    if (failed(legalizeModel(source, *options, &kind)))
      return fail(kind);
    if (keepModel)
      return;
    source.erase();
    if (failed(legalizeExports(getOperation(), &kind)))
      fail(kind);
  }
};

} // namespace
