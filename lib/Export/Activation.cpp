//===- Activation.cpp - activations and norms that are operators ----------===//
//
// Functions that would be several nodes by their element description or decomposition, and have a name in the standard.
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

using namespace mlir;
using namespace lowtide;

/// The first operator that the record names, with no attributes.
template <typename Op> static LogicalResult writeNamed(Op op, FormBuilder &form) {
  StringRef name = StringRef(op.getFacts().onnxOrigin).split(',').first;
  form.set(0, form.node(name, form.in(0), form.outType(0)));
  return success();
}

/// Whether the tensor has an element type that runtimes have every activation for.
static bool isSinglePrecision(FormBuilder &form) { return !form.inType(0).getElementType().isF64(); }

static LogicalResult writeGelu(nn::GeluOp op, FormBuilder &form) {
  return isSinglePrecision(form) ? writeNamed(op, form) : failure();
}

static LogicalResult writeGeluTanh(nn::GeluTanhOp op, FormBuilder &form) {
  if (!isSinglePrecision(form))
    return failure();
  form.set(0, form.node("Gelu", form.in(0), form.outType(0), form.attr("approximate", "tanh")));
  return success();
}

static LogicalResult writeElu(nn::EluOp op, FormBuilder &form) {
  if (!isSinglePrecision(form))
    return failure();
  form.set(0, form.node("Elu", form.in(0), form.outType(0), form.attrFloat("alpha", op.getAlpha().convertToDouble())));
  return success();
}

template <typename Op> static LogicalResult writeSoftmax(Op op, FormBuilder &form) {
  StringRef name = op.getFacts().onnxOrigin;
  form.set(0, form.node(name, form.in(0), form.outType(0), form.attr("axis", static_cast<int64_t>(op.getDim()))));
  return success();
}

static LogicalResult writeLayerNorm(nn::LayerNormOp op, FormBuilder &form) {
  SmallVector<int64_t> kept(op.getX().getType().getShape());
  for (size_t i = op.getAxis(); i < kept.size(); ++i)
    kept[i] = 1;
  auto statistic = RankedTensorType::get(kept, form.outType(1).getElementType());
  // The standard computes statistics in f32, and calls them so.
  if (!statistic.getElementType().isF32())
    return failure();
  ValueRange results =
      form.nodes("LayerNormalization", {form.in(0), form.in(1), form.in(2)}, {form.outType(0), statistic, statistic},
                 {form.attr("axis", static_cast<int64_t>(op.getAxis())),
                  form.attrFloat("epsilon", op.getEpsilon().convertToDouble())});
  form.set(0, results[0]);
  for (unsigned i : {1, 2})
    if (!op->getResult(i).use_empty())
      form.set(i, form.reshape(results[i], form.outType(i).getShape()));
  return success();
}

void lowtide::attachActivationForms(MLIRContext *context) {
  attachForm<nn::ReluOp, writeNamed<nn::ReluOp>>(context);
  attachForm<nn::SigmoidOp, writeNamed<nn::SigmoidOp>>(context);
  attachForm<nn::SoftplusOp, writeNamed<nn::SoftplusOp>>(context);
  attachForm<nn::GeluOp, writeGelu>(context);
  attachForm<nn::GeluTanhOp, writeGeluTanh>(context);
  attachForm<nn::EluOp, writeElu>(context);
  attachForm<nn::SoftmaxOp, writeSoftmax<nn::SoftmaxOp>>(context);
  attachForm<nn::LogSoftmaxOp, writeSoftmax<nn::LogSoftmaxOp>>(context);
  attachForm<nn::LayerNormOp, writeLayerNorm>(context);
}
