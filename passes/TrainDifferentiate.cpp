//===- TrainDifferentiate.cpp - reverse-mode differentiation ---*- C++ -*-===//
//
// Turns the forward function into one that also returns the gradient of every
// parameter.
//
// The sweep itself: lib/Dialect/Train/Differentiate.cpp.
//
//===----------------------------------------------------------------------===//

#include "StepPass.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/LibraryForms.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Differentiate.h"
#include "lowtide/Dialect/Train/LossScaling.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "lowtide/RuntimeQuery/LibraryQuery.h"
#include "lowtide/Support/Failure.h"
#include "llvm/ADT/StringExtras.h"

namespace lowtide {
#define GEN_PASS_DEF_TRAINDIFFERENTIATE
#include "Passes.h.inc"
} // namespace lowtide

using namespace mlir;
using namespace lowtide;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

namespace {
/// The parameters of a step: argument numbers, in order.
SmallVector<unsigned> findParameters(func::FuncOp step) {
  SmallVector<unsigned> parameters;
  for (BlockArgument argument : step.getArguments())
    if (isa_and_nonnull<train::ParamAttr>(train::getArgBinding(step, argument.getArgNumber())) && isFloat(argument))
      parameters.push_back(argument.getArgNumber());
  return parameters;
}

/// Float inputs that are named like tensors of modules, `fc.weight`: so does an exporter that leaves the weights out.
SmallVector<StringRef> findWeightInputs(func::FuncOp step) {
  SmallVector<StringRef> names;
  for (BlockArgument argument : step.getArguments())
    if (auto batch = dyn_cast_or_null<train::BatchAttr>(train::getArgBinding(step, argument.getArgNumber()));
        batch && isFloat(argument) && batch.getName().getValue().contains('.'))
      names.push_back(batch.getName().getValue());
  return names;
}

/// Whether codes of several numbers are among the constants.
bool hasCodes(func::FuncOp step) {
  return llvm::any_of(step.getArguments(), [&](BlockArgument argument) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    return isa_and_nonnull<train::ConstantAttr>(train::getArgBinding(step, argument.getArgNumber())) && type &&
           type.hasStaticShape() && type.getNumElements() > 1 && type.getElementType().isInteger(8);
  });
}

struct TrainDifferentiate : StepPass<lowtide::impl::TrainDifferentiateBase<TrainDifferentiate>> {
  using StepPass::StepPass;

  FailureOr<Value> findLoss(func::FuncOp step) {
    std::optional<unsigned> number = train::findResult<train::MetricAttr>(step, "loss");
    if (!number) {
      InFlightDiagnostic error = step.emitError("@") << step.getSymName() << " has no loss to differentiate";
      error.attachNote() << "name the output that is the loss, or add one: "
                            "--loss='cross_entropy(logits, labels)'";
      return error;
    }
    Value loss = step.getBody().front().getTerminator()->getOperand(*number);
    auto type = dyn_cast<RankedTensorType>(loss.getType());
    if (!type || !type.hasStaticShape() || type.getNumElements() != 1 || !isFloat(loss))
      return step.emitError("the loss must be one floating-point number, found ") << loss.getType();
    return loss;
  }

  /// Appends the gradients as results; marks and reports the parameters that
  /// have none.
  void addGradients(func::FuncOp step, ArrayRef<unsigned> parameters, const train::ReverseSweep &sweep) {
    SmallVector<StringRef> unreached;
    OpBuilder builder(step.getBody().front().getTerminator());
    train::SignatureGrowth growth(step);
    for (unsigned parameter : parameters) {
      StringAttr name = train::getBindingName(train::getArgBinding(step, parameter));
      BlockArgument argument = step.getArgument(parameter);
      Value gradient = sweep.getCotangent(argument);
      if (!gradient) {
        unreached.push_back(name);
        growth.setArgAttr(parameter, train::unreachedAttrName, builder.getUnitAttr());
        gradient = nn::splat(builder, argument.getLoc(), cast<RankedTensorType>(argument.getType()), 0.0);
      }
      growth.appendResult(gradient, train::GradientAttr::get(builder.getContext(), name));
    }
    growth.finish();
    numGradients += parameters.size() - unreached.size();
    numUnreached += unreached.size();
    if (!unreached.empty())
      step.emitWarning("the loss does not depend on ")
          << unreached.size() << (unreached.size() == 1 ? " parameter: " : " parameters: ")
          << llvm::join(unreached, ", ") << "; zero gradient and no update";
  }

  /// Leaves the kind of failure on the module, from which the driver takes its exit code.
  LogicalResult refuse(FailureKind kind, LogicalResult result) {
    setFailure(getOperation(), kind);
    return result;
  }

  /// Whether a library of the target computes an op once train-autocast has made its operands what they will be.
  bool isTakenLater(Operation *op) {
    auto call = dyn_cast<LibraryCallInterface>(op);
    if (!target.hasLibraries() || !call)
      return false;
    Builder b(op->getContext());
    StringRef name = precision;
    Type narrow = name.ends_with("bf16")  ? Type(b.getBF16Type())
                  : name.ends_with("f16") ? Type(b.getF16Type())
                                          : Type();
    return isTakenAs(call, narrow, target);
  }

  LogicalResult differentiate(func::FuncOp step) {
    FailureOr<Value> loss = findLoss(step);
    if (failed(loss))
      return failure();
    SmallVector<unsigned> parameters = findParameters(step);
    SmallVector<Value> leaves;
    for (unsigned parameter : parameters)
      leaves.push_back(step.getArgument(parameter));
    Block &body = step.getBody().front();
    train::ReverseSweep sweep(body, OpBuilder(body.getTerminator()), leaves);
    sweep.setSpecialForm([&](GradientBuilder &gradient) {
      bool isOne = isTakenLater(gradient.op) && nn::differentiateAsOne(gradient);
      numWhole += isOne;
      return isOne;
    });
    if (!sweep.isActive(*loss)) {
      InFlightDiagnostic error = step.emitError(
          parameters.empty() ? "no parameter is trained; " : "no parameter leads to the loss: nothing can be trained");
      if (!parameters.empty())
        error << " (" << parameters.size() << " parameters); ";
      if (SmallVector<StringRef> inputs = findWeightInputs(step); parameters.empty() && !inputs.empty())
        error << inputs.size() << " inputs have names of weights (" << inputs.front()
              << " is one): export with export_params=True, so that the file holds them";
      else if (parameters.empty() && hasCodes(step))
        error << "weights that the file holds in few bits stay as they are: --lora='*:r=16' trains low-rank pairs next "
                 "to them, --params=<pattern> what the file holds in floats";
      else
        error << "--params=<pattern> trains initializers, --frozen=<pattern> keeps them; the last that matches counts, "
                 "as in --frozen='*' --params='fc.*'";
      return refuse(FailureKind::Usage, std::move(error));
    }
    size_t forwardOps = step.getBody().front().getOperations().size() - 1;
    const train::LossScale scale = llvm::cantFail(train::LossScale::parse(lossScale));
    if (failed(sweep.run(*loss, [&](OpBuilder &builder) { return train::buildLossSeed(builder, step, *loss, scale); })))
      return refuse(FailureKind::Unsupported, failure());
    if (scale.kind != train::LossScale::Kind::None)
      step->setAttr(train::scaledAttrName, StringAttr::get(&getContext(), lossScale));
    addGradients(step, parameters, sweep);
    const size_t backwardOps = step.getBody().front().getOperations().size() - 1 - forwardOps;
    numForwardOps += forwardOps;
    numBackwardOps += backwardOps;
    step.emitRemark("@") << step.getSymName() << ": gradients of " << parameters.size() << " parameters, "
                         << backwardOps << " ops after " << forwardOps;
    return success();
  }

  void runOnSteps() override {
    if (failed(checkOptions(getOperation(), {{"precision", precision}, {"loss-scale", lossScale}})))
      return signalPassFailure();
    auto step = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!step || step.isExternal() || !step.getBody().hasOneBlock()) {
      getOperation().emitError("there is no function @") << function << " of one block to differentiate";
      return signalPassFailure();
    }
    if (failed(checkStaticArguments(step, "derivatives are of tensors of static shape")))
      return signalPassFailure();
    if (failed(differentiate(step)) || failed(train::moveEntry(getOperation(), function, getOperation(), "gradient")))
      signalPassFailure();
  }
};
} // namespace
