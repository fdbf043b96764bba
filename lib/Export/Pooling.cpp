//===- Pooling.cpp - ONNX forms of pooling and its derivatives ------------===//
//
// The derivative of a maximum goes to the positions that MaxPool reports; that of a mean is a transposed convolution
// with a filter of ones.
//
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include "lowtide/Dialect/NN/Windows.h"

using namespace mlir;
using namespace lowtide;

static SmallVector<NamedAttribute> windowAttributes(FormBuilder &form, ArrayRef<int64_t> kernel) {
  nn::Window window = nn::getWindow(form.op);
  SmallVector<int64_t> pads(window.padsBegin);
  llvm::append_range(pads, window.padsEnd);
  return {form.attr("kernel_shape", kernel), form.attr("strides", ArrayRef(window.strides)), form.attr("pads", pads),
          form.attr("dilations", ArrayRef(window.dilations))};
}

/// The standard wants every window to see an element of the input.
static bool padsLessThanKernel(FormBuilder &form, ArrayRef<int64_t> kernel) {
  nn::Window window = nn::getWindow(form.op);
  return llvm::all_of(llvm::seq(kernel.size()),
                      [&](size_t i) { return window.padsBegin[i] < kernel[i] && window.padsEnd[i] < kernel[i]; });
}

static LogicalResult writeMaxPool(nn::MaxPoolOp op, FormBuilder &form) {
  if (!padsLessThanKernel(form, op.getKernel()))
    return failure();
  form.set(0, form.node("MaxPool", form.in(0), form.outType(0), windowAttributes(form, op.getKernel())));
  return success();
}

static LogicalResult writeMaxPoolGrad(nn::MaxPoolGradOp op, FormBuilder &form) {
  if (!padsLessThanKernel(form, op.getKernel()))
    return failure();
  auto type = form.inType(1);
  auto positions = type.clone(form.builder.getI64Type());
  Value where = form.nodes("MaxPool", form.in(0), {type, positions}, windowAttributes(form, op.getKernel()))[1];
  auto flat = RankedTensorType::get({form.outType(0).getNumElements()}, type.getElementType());
  Value sum = writeScatterSum(form, form.reshape(where, {type.getNumElements()}),
                              form.reshape(form.in(2), {type.getNumElements()}), flat, /*axis=*/0);
  form.set(0, form.reshape(sum, form.outType(0).getShape()));
  return success();
}

static LogicalResult writeAvgPool(nn::AvgPoolOp op, FormBuilder &form) {
  if (!padsLessThanKernel(form, op.getKernel()))
    return failure();
  SmallVector<NamedAttribute> attributes = windowAttributes(form, op.getKernel());
  attributes.push_back(form.attr("count_include_pad", int64_t(op.getCountIncludePad())));
  form.set(0, form.node("AveragePool", form.in(0), form.outType(0), attributes));
  return success();
}

/// 1 / the number of elements that each window averages, [1, 1, e…]; one number where all are equal.
static Value windowWeights(FormBuilder &form, nn::AvgPoolGradOp op) {
  nn::Window window = nn::getWindow(op);
  auto input = form.outType(0).getShape().drop_front(2), output = form.inType(0).getShape().drop_front(2);
  ArrayRef<int64_t> kernel = op.getKernel();
  SmallVector<double> weights{1.0};
  for (auto [i, extent] : llvm::enumerate(output)) {
    SmallVector<double> outer = std::move(weights);
    weights.clear();
    for (double weight : outer)
      for (int64_t at = 0; at < extent; ++at) {
        int64_t seen = 0;
        for (int64_t tap = 0; tap < kernel[i]; ++tap) {
          int64_t position = at * window.strides[i] - window.padsBegin[i] + tap * window.dilations[i];
          seen += op.getCountIncludePad() || (position >= 0 && position < input[i]);
        }
        weights.push_back(weight / static_cast<double>(std::max<int64_t>(seen, 1)));
      }
  }
  Type element = form.inType(0).getElementType();
  if (llvm::all_equal(weights))
    return form.scalar(element, weights.front());
  SmallVector<int64_t> shape{1, 1};
  llvm::append_range(shape, output);
  SmallVector<Attribute> values;
  for (double weight : weights)
    values.push_back(form.builder.getFloatAttr(element, weight));
  return form.dense(DenseElementsAttr::get(RankedTensorType::get(shape, element), values));
}

static LogicalResult writeAvgPoolGrad(nn::AvgPoolGradOp op, FormBuilder &form) {
  nn::Window window = nn::getWindow(op);
  ArrayRef<int64_t> kernel = op.getKernel();
  auto input = form.outType(0).getShape(), output = form.inType(0).getShape();
  Value scaled = form.pointwise("Mul", {form.in(0), windowWeights(form, op)}, form.inType(0).getElementType());
  SmallVector<int64_t> filter{input[1], 1}, unreached;
  llvm::append_range(filter, kernel);
  for (auto [i, extent] : llvm::enumerate(input.drop_front(2)))
    unreached.push_back(extent + window.padsBegin[i] + window.padsEnd[i] - (output[i + 2] - 1) * window.strides[i] -
                        (kernel[i] - 1) * window.dilations[i] - 1);
  SmallVector<NamedAttribute> attributes = windowAttributes(form, kernel);
  attributes.push_back(form.attr("group", input[1]));
  attributes.push_back(form.attr("output_padding", unreached));
  Value ones = form.filled(RankedTensorType::get(filter, form.outType(0).getElementType()), 1.0);
  form.set(0, form.node("ConvTranspose", {scaled, ones}, form.outType(0), attributes));
  return success();
}

void lowtide::attachPoolingForms(MLIRContext *context) {
  attachForm<nn::MaxPoolOp, writeMaxPool>(context);
  attachForm<nn::MaxPoolGradOp, writeMaxPoolGrad>(context);
  attachForm<nn::AvgPoolOp, writeAvgPool>(context);
  attachForm<nn::AvgPoolGradOp, writeAvgPoolGrad>(context);
}
