//===- Movement.cpp - ONNX forms of ops that move elements ----------------===//
//
// Broadcast, reshape, wide casts, transpose, slice, pad, reverse, concat.
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

using namespace mlir;
using namespace lowtide;

static LogicalResult writeBroadcast(nn::BroadcastOp op, FormBuilder &form) {
  ArrayRef<int64_t> shape = form.outType(0).getShape();
  Value x = form.compact(0);
  if (tensorType(x).getRank() == 0) {
    form.set(0, form.expand(x, shape));
    return success();
  }
  SmallVector<int64_t> aligned(shape.size(), 1);
  for (auto [dim, extent] : llvm::zip(op.getDims(), form.inType(0).getShape()))
    aligned[dim] = extent;
  form.set(0, form.expand(form.reshape(x, aligned), shape));
  return success();
}

static LogicalResult writeReshape(nn::ReshapeOp op, FormBuilder &form) {
  Value x = form.compact(0);
  bool isSplat = tensorType(x).getRank() == 0 && form.outType(0).getNumElements() > 1;
  form.set(0, isSplat ? form.expand(x, form.outType(0).getShape()) : form.reshape(x, form.outType(0).getShape()));
  return success();
}

/// Into 16 bits from what f32 does not hold, where the description rounds with integer arithmetic on bits: the operator
/// does it at once. Other conversions are written from their description.
static LogicalResult writeCast(nn::CastOp op, FormBuilder &form) {
  Type from = form.inType(0).getElementType(), to = form.outType(0).getElementType();
  if (!isa<FloatType>(to) || to.getIntOrFloatBitWidth() != 16 ||
      from.getIntOrFloatBitWidth() <= (isa<FloatType>(from) ? 32 : 16))
    return failure();
  form.set(0, form.cast(form.in(0), to));
  return success();
}

static LogicalResult writeTranspose(nn::TransposeOp op, FormBuilder &form) {
  form.set(0, form.transpose(form.in(0), op.getPermutation()));
  return success();
}

static LogicalResult writeSlice(nn::SliceOp op, FormBuilder &form) {
  ArrayRef<int64_t> shape = form.outType(0).getShape();
  SmallVector<int64_t> ends;
  for (auto [start, stride, count] : llvm::zip(op.getStarts(), op.getStrides(), shape))
    ends.push_back(count == 0 ? start : start + (count - 1) * stride + 1);
  form.set(0, form.slice(form.in(0), op.getStarts(), ends, op.getStrides(), shape));
  return success();
}

/// `interior` elements of `value` between the elements of dimension `dim`: after each one, the last ones cut off.
static Value spreadOut(FormBuilder &form, Value x, int64_t dim, int64_t interior, Value value) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  Type element = tensorType(x).getElementType();
  shape.insert(shape.begin() + dim + 1, 1);
  SmallVector<int64_t> pads(2 * shape.size(), 0);
  pads[shape.size() + dim + 1] = interior;
  x = form.reshape(x, shape);
  shape[dim + 1] = 1 + interior;
  x = form.node("Pad", {x, form.ints(pads), value}, RankedTensorType::get(shape, element));
  shape[dim] *= 1 + interior;
  shape.erase(shape.begin() + dim + 1);
  x = form.reshape(x, shape);
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1), ends(shape);
  shape[dim] -= interior;
  ends[dim] = shape[dim];
  return form.slice(x, starts, ends, steps, shape);
}

static LogicalResult writePad(nn::PadOp op, FormBuilder &form) {
  Value x = form.in(0), value = form.scalar(form.inType(0).getElementType(), op.getValue().convertToDouble());
  for (auto [dim, interior] : llvm::enumerate(op.getInterior())) {
    if (interior && tensorType(x).getDimSize(dim) == 0)
      return failure();
    if (interior && tensorType(x).getDimSize(dim) > 1)
      x = spreadOut(form, x, dim, interior, value);
  }
  SmallVector<int64_t> pads(op.getLow());
  llvm::append_range(pads, op.getHigh());
  if (!llvm::all_of(pads, [](int64_t pad) { return pad == 0; }))
    x = form.node("Pad", {x, form.ints(pads), value}, form.outType(0));
  form.set(0, x);
  return success();
}

static LogicalResult writeReverse(nn::ReverseOp op, FormBuilder &form) {
  SmallVector<int64_t> shape(form.inType(0).getShape()), starts(shape.size(), 0), ends(shape), steps(shape.size(), 1);
  for (int64_t dim : op.getDims()) {
    starts[dim] = -1;
    ends[dim] = std::numeric_limits<int64_t>::min();
    steps[dim] = -1;
  }
  form.set(0, form.slice(form.in(0), starts, ends, steps, shape));
  return success();
}

static LogicalResult writeConcat(nn::ConcatOp op, FormBuilder &form) {
  SmallVector<Value> parts;
  for (unsigned i = 0; i < form.size(); ++i)
    parts.push_back(form.in(i));
  form.set(0, form.node("Concat", parts, form.outType(0), form.attr("axis", static_cast<int64_t>(op.getDim()))));
  return success();
}

void lowtide::attachMovementForms(MLIRContext *context) {
  attachForm<nn::BroadcastOp, writeBroadcast>(context);
  attachForm<nn::ReshapeOp, writeReshape>(context);
  attachForm<nn::CastOp, writeCast>(context);
  attachForm<nn::TransposeOp, writeTranspose>(context);
  attachForm<nn::SliceOp, writeSlice>(context);
  attachForm<nn::PadOp, writePad>(context);
  attachForm<nn::ReverseOp, writeReverse>(context);
  attachForm<nn::ConcatOp, writeConcat>(context);
}
