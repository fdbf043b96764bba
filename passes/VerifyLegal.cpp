//===- VerifyLegal.cpp - checks that only nn is left ------------*- C++ -*-===//
//
// Every op is pure tensor mathematics on static shapes; each one that is not is
// reported where the model has it.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Train.h"

namespace lowtide {
#define GEN_PASS_DEF_VERIFYLEGAL
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;

namespace {
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

  void runOnSteps() override {
    constexpr unsigned mostErrors = 20;
    unsigned errors = 0;
    getOperation().walk([&](Operation *op) {
      if (errors <= mostErrors && !isLegal(op) && ++errors > mostErrors)
        op->emitRemark("more of this kind are not shown");
    });
    if (errors)
      signalPassFailure();
  }
};
} // namespace
