//===- Contraction.cpp - ONNX forms of products and convolutions ----------===//
//
// Matrix products, convolutions and their two transposes.
//
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include "lowtide/Dialect/NN/Windows.h"

using namespace mlir;
using namespace lowtide;

/// The last two dimensions swapped.
static Value swapLast(FormBuilder &form, Value x) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(tensorType(x).getRank()));
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return form.transpose(x, permutation);
}

/// Operand `i` in the type of the result: a product of 16-bit operands whose sum stays f32 is one of their f32 values.
static Value widened(FormBuilder &form, unsigned i) { return form.cast(form.in(i), form.outType(0).getElementType()); }

static LogicalResult writeDot(nn::DotOp op, FormBuilder &form) {
  Value a = widened(form, 0), b = widened(form, 1);
  if (tensorType(a).getRank() == 2 && isa<FloatType>(tensorType(a).getElementType())) {
    form.set(0, form.node("Gemm", {a, b}, form.outType(0),
                          {form.attr("transA", int64_t(op.getTransposeA())),
                           form.attr("transB", int64_t(op.getTransposeB()))}));
    return success();
  }
  if (op.getTransposeA())
    a = swapLast(form, a);
  if (op.getTransposeB())
    b = swapLast(form, b);
  form.set(0, form.node("MatMul", {a, b}, form.outType(0)));
  return success();
}

/// Begin and end of padding as one list.
static SmallVector<int64_t> joinPads(const nn::Window &window) {
  SmallVector<int64_t> pads(window.padsBegin);
  llvm::append_range(pads, window.padsEnd);
  return pads;
}

static SmallVector<NamedAttribute> convAttributes(FormBuilder &form, const nn::Window &window, ArrayRef<int64_t> kernel,
                                                  int64_t groups) {
  return {form.attr("strides", ArrayRef(window.strides)), form.attr("pads", joinPads(window)),
          form.attr("dilations", ArrayRef(window.dilations)), form.attr("kernel_shape", kernel),
          form.attr("group", groups)};
}

static LogicalResult writeConv(nn::ConvOp op, FormBuilder &form) {
  form.set(0,
           form.node("Conv", {widened(form, 0), widened(form, 1)}, form.outType(0),
                     convAttributes(form, nn::getWindow(op), form.inType(1).getShape().drop_front(2), op.getGroups())));
  return success();
}

static LogicalResult writeConvInputGrad(nn::ConvInputGradOp op, FormBuilder &form) {
  nn::Window window = nn::getWindow(op);
  auto output = form.inType(0).getShape().drop_front(2), kernel = form.inType(1).getShape().drop_front(2);
  // What the windows do not reach at the end is output padding.
  SmallVector<int64_t> unreached;
  for (auto [i, extent] : llvm::enumerate(form.outType(0).getShape().drop_front(2)))
    unreached.push_back(extent + window.padsBegin[i] + window.padsEnd[i] - (output[i] - 1) * window.strides[i] -
                        (kernel[i] - 1) * window.dilations[i] - 1);
  SmallVector<NamedAttribute> attributes = convAttributes(form, window, kernel, op.getGroups());
  attributes.push_back(form.attr("output_padding", unreached));
  form.set(0, form.node("ConvTranspose", {widened(form, 0), widened(form, 1)}, form.outType(0), attributes));
  return success();
}

/// [N, groups · C, d…] as [C, groups · N, d…].
static Value samplesAsChannels(FormBuilder &form, Value x, int64_t groups) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  int64_t samples = shape[0], channels = shape[1] / groups;
  SmallVector<int64_t> split{samples, groups, channels}, permutation{2, 1, 0}, joined{channels, groups * samples};
  for (size_t i = 2; i < shape.size(); ++i) {
    split.push_back(shape[i]);
    permutation.push_back(i + 1);
    joined.push_back(shape[i]);
  }
  return form.reshape(form.transpose(form.reshape(x, split), permutation), joined);
}

// The cotangent of the output slides over the input as a filter would: samples take the place of channels, strides
// and dilations change places.
static LogicalResult writeConvFilterGrad(nn::ConvFilterGradOp op, FormBuilder &form) {
  nn::Window window = nn::getWindow(op), turned = window;
  std::swap(turned.strides, turned.dilations);
  int64_t groups = op.getGroups(), spatial = static_cast<int64_t>(window.strides.size());
  auto input = form.inType(0).getShape(), dy = form.inType(1).getShape(), filter = form.outType(0).getShape();
  Value x = samplesAsChannels(form, widened(form, 0), groups);
  // [N, O, e…] as [O, N, e…].
  auto swap = llvm::to_vector(llvm::seq<int64_t>(spatial + 2));
  std::swap(swap[0], swap[1]);
  Value taps = form.transpose(widened(form, 1), swap);
  SmallVector<int64_t> shape{filter[1], filter[0]};
  llvm::append_range(shape, nn::windowedShape(input.drop_front(2), dy.drop_front(2), turned));
  Value found = form.node("Conv", {x, taps}, RankedTensorType::get(shape, form.outType(0).getElementType()),
                          convAttributes(form, turned, dy.drop_front(2), groups));
  found = form.transpose(found, swap);
  SmallVector<int64_t> starts(filter.size(), 0), steps(filter.size(), 1);
  form.set(0, form.slice(found, starts, filter, steps, filter));
  return success();
}

void lowtide::attachContractionForms(MLIRContext *context) {
  attachForm<nn::DotOp, writeDot>(context);
  attachForm<nn::ConvOp, writeConv>(context);
  attachForm<nn::ConvInputGradOp, writeConvInputGrad>(context);
  attachForm<nn::ConvFilterGradOp, writeConvFilterGrad>(context);
}
