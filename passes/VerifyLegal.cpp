//===- VerifyLegal.cpp - checks that only nn is left ------------*- C++ -*-===//
//
// Every op is pure tensor mathematics on static shapes of countable size; each one that is not is reported where the
// model has it.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"
#include "lowtide/Support/Failure.h"

#include "llvm/Support/MathExtras.h"

namespace lowtide {
#define GEN_PASS_DEF_VERIFYLEGAL
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;

namespace {
/// Library calls count to here (runtime/calls/CallAttributes.h), and so do windows, slices and ranges.
constexpr int64_t mostElements = int64_t(1) << 40;

bool isCountable(RankedTensorType type) {
  int64_t count = 1;
  for (int64_t extent : type.getShape())
    if (extent > mostElements || llvm::MulOverflow(count, extent, count) || count > mostElements)
      return false;
  return true;
}

struct VerifyLegal : lowtide::StepPass<lowtide::impl::VerifyLegalBase<VerifyLegal>> {
  /// False after an error.
  static bool isLegal(Operation *op) {
    Dialect *dialect = op->getDialect();
    if (!isa<ModuleOp, func::FuncOp, func::ReturnOp>(op) &&
        !isa_and_nonnull<lowtide::nn::NNDialect, lowtide::train::TrainDialect>(dialect)) {
      op->emitError() << "'" << op->getName() << "' is left after legalization: it is not supported here";
      return false;
    }
    for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
      for (Type type : types)
        if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape()) {
          op->emitError() << "'" << op->getName() << "' has the type " << type << ": every shape must be known";
          return false;
        }
    return true;
  }

  /// One size makes many tensors too large: the first one tells.
  WalkResult checkSizes(Operation *op) {
    for (Type type : op->getResultTypes())
      if (!isCountable(cast<RankedTensorType>(type))) {
        InFlightDiagnostic error = op->emitError();
        error << "'" << op->getName() << "' has the type " << type << ": a tensor holds at most 2^40 elements";
        error.attachNote() << "--dim and --batch set the sizes that a model leaves open";
        lowtide::setFailure(getOperation(), lowtide::FailureKind::Unsupported);
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  }

  void runOnSteps() override {
    constexpr unsigned mostErrors = 20;
    unsigned errors = 0;
    getOperation().walk([&](Operation *op) {
      if (errors <= mostErrors && !isLegal(op) && ++errors > mostErrors)
        op->emitRemark("more of this kind are not shown");
    });
    if (errors || getOperation().walk([&](Operation *op) { return checkSizes(op); }).wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
