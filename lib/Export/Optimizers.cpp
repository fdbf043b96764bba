//===- Optimizers.cpp - updates as ai.onnx.preview.training ---------------===//
//
// On request, updates under ONNX's convention become the operators that state it; runtimes for inference lack them, so
// that otherwise updates are written by their decomposition.
//
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include "lowtide/Dialect/Train/Train.h"

using namespace mlir;
using namespace lowtide;

/// Operands before the state: param, grad, lr, step.
static constexpr unsigned firstState = 4;

/// The rate of this parameter: an f32 or f64 scalar.
static Value writeRate(FormBuilder &form, double scale) {
  Value rate = form.in(2);
  if (scale == 1.0)
    return rate;
  return form.pointwise("Mul", {rate, form.scalar(tensorType(rate).getElementType(), scale)});
}

static LogicalResult writeUpdate(FormBuilder &form, StringRef name, ArrayRef<NamedAttribute> attributes) {
  if (!form.previewOptimizers || !form.op->hasAttr("onnx_convention"))
    return failure();
  auto update = cast<train::OptimizerInterface>(form.op);
  SmallVector<Value> inputs{writeRate(form, update.getOption("lr_scale")), form.in(3), form.in(0), form.in(1)};
  for (unsigned i = firstState; i < form.size(); ++i)
    inputs.push_back(form.in(i));
  SmallVector<NamedAttribute> all(attributes);
  ValueRange results = form.nodes(name, inputs, form.op->getResultTypes(), all, "ai.onnx.preview.training");
  for (auto [i, result] : llvm::enumerate(results))
    form.set(i, result);
  return success();
}

template <typename Op> static LogicalResult writeAdam(Op op, FormBuilder &form) {
  bool isDecoupled = std::is_same_v<Op, train::AdamWOp>;
  return writeUpdate(
      form, "Adam",
      {form.attrFloat("alpha", op.getOption("beta1")), form.attrFloat("beta", op.getOption("beta2")),
       form.attrFloat("epsilon", op.getOption("eps")),
       form.attrFloat(isDecoupled ? "norm_coefficient_post" : "norm_coefficient", op.getOption("weight_decay"))});
}

static LogicalResult writeAdagrad(train::AdagradOp op, FormBuilder &form) {
  return writeUpdate(form, "Adagrad",
                     {form.attrFloat("decay_factor", op.getOption("lr_decay")),
                      form.attrFloat("epsilon", op.getOption("eps")),
                      form.attrFloat("norm_coefficient", op.getOption("weight_decay"))});
}

static LogicalResult writeMomentum(train::MomentumOp op, FormBuilder &form) {
  return writeUpdate(form, "Momentum",
                     {form.attrFloat("alpha", op.getOption("momentum")),
                      form.attrFloat("beta", 1.0 - op.getOption("dampening")),
                      form.attr("mode", op.getOption("nesterov") != 0.0 ? "nesterov" : "standard"),
                      form.attrFloat("norm_coefficient", op.getOption("weight_decay"))});
}

void lowtide::attachOptimizerForms(MLIRContext *context) {
  attachForm<train::AdamOp, writeAdam<train::AdamOp>>(context);
  attachForm<train::AdamWOp, writeAdam<train::AdamWOp>>(context);
  attachForm<train::AdagradOp, writeAdagrad>(context);
  attachForm<train::MomentumOp, writeMomentum>(context);
}
