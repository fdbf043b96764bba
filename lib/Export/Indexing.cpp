//===- Indexing.cpp - ONNX forms of reading and adding at positions -------===//
//
// Gathers and scatters. An index outside of its dimension, which reads NaN here, is an error in the standard.
//
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include "lowtide/Dialect/NN/Scatter.h"

using namespace mlir;
using namespace lowtide;

static LogicalResult writeGather(nn::GatherOp op, FormBuilder &form) {
  form.set(0, form.node("Gather", {form.in(0), form.in(1)}, form.outType(0),
                        form.attr("axis", static_cast<int64_t>(op.getAxis()))));
  return success();
}

static LogicalResult writeGatherElements(nn::GatherElementsOp op, FormBuilder &form) {
  form.set(0, form.node("GatherElements", {form.in(0), form.in(1)}, form.outType(0),
                        form.attr("axis", static_cast<int64_t>(op.getAxis()))));
  return success();
}

static LogicalResult writeScatterElementsAdd(nn::ScatterElementsAddOp op, FormBuilder &form) {
  form.set(0, writeScatterSum(form, form.in(0), form.in(1), form.outType(0), op.getAxis()));
  return success();
}

/// One index dimension, repeated over the others.
static LogicalResult writeScatterAdd(nn::ScatterAddOp op, FormBuilder &form) {
  int64_t axis = op.getAxis(), count = form.inType(0).getNumElements();
  SmallVector<int64_t> shape(form.outType(0).getShape()), line(shape.size(), 1);
  shape[axis] = line[axis] = count;
  Value indices = form.expand(form.reshape(form.in(0), line), shape);
  form.set(0, writeScatterSum(form, indices, form.reshape(form.in(1), shape), form.outType(0), axis));
  return success();
}

static LogicalResult writeMeeting(FormBuilder &form, nn::ScatterKind kind, Value indices, Value updates, int64_t axis) {
  StringRef reduction = kind == nn::ScatterKind::set ? "none" : nn::stringifyScatterKind(kind);
  form.set(0, form.node("ScatterElements", {form.in(0), indices, updates}, form.outType(0),
                        {form.attr("axis", axis), form.attr("reduction", reduction)}));
  return success();
}

static LogicalResult writeScatterElements(nn::ScatterElementsOp op, FormBuilder &form) {
  return writeMeeting(form, op.getKind(), form.in(1), form.in(2), op.getAxis());
}

static LogicalResult writeScatter(nn::ScatterOp op, FormBuilder &form) {
  int64_t axis = op.getAxis(), count = form.inType(1).getNumElements();
  SmallVector<int64_t> shape(form.outType(0).getShape()), line(shape.size(), 1);
  shape[axis] = line[axis] = count;
  Value indices = form.expand(form.reshape(form.in(1), line), shape);
  return writeMeeting(form, op.getKind(), indices, form.reshape(form.in(2), shape), axis);
}

void lowtide::attachIndexingForms(MLIRContext *context) {
  attachForm<nn::GatherOp, writeGather>(context);
  attachForm<nn::GatherElementsOp, writeGatherElements>(context);
  attachForm<nn::ScatterOp, writeScatter>(context);
  attachForm<nn::ScatterElementsOp, writeScatterElements>(context);
  attachForm<nn::ScatterAddOp, writeScatterAdd>(context);
  attachForm<nn::ScatterElementsAddOp, writeScatterElementsAdd>(context);
}
