//===- Reduction.cpp - ONNX forms of reductions ---------------------------===//
//
// Reductions over dimensions, positions of extrema, running sums.
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

using namespace mlir;
using namespace lowtide;

/// The operator that the record names, over the dimensions of the op; they vanish.
static Value reduce(FormBuilder &form, StringRef name, Value x, ArrayRef<int64_t> dims, RankedTensorType type) {
  if (dims.empty()) // No dimension would mean all of them.
    return x;
  return form.node(name, {x, form.ints(dims)}, type, form.attr("keepdims", int64_t(0)));
}

template <typename Op> static LogicalResult writeReduction(Op op, FormBuilder &form) {
  // A sum may be wider than what is added up.
  Value x = form.cast(form.in(0), form.outType(0).getElementType());
  form.set(0, reduce(form, op.getFacts().onnxOrigin, x, op.getDims(), form.outType(0)));
  return success();
}

/// Whether any or all: the extremum of 0 and 1.
template <typename Op> static LogicalResult writeQuantifier(Op op, FormBuilder &form) {
  Type i32 = form.builder.getI32Type();
  StringRef name = std::is_same_v<Op, nn::ReduceAnyOp> ? "ReduceMax" : "ReduceMin";
  Value count = reduce(form, name, form.cast(form.in(0), i32), op.getDims(), form.outType(0).clone(i32));
  form.set(0, form.cast(count, form.builder.getI1Type()));
  return success();
}

template <typename Op> static LogicalResult writeArgExtremum(Op op, FormBuilder &form) {
  Value found = form.node(op.getFacts().onnxOrigin, form.in(0), form.outType(0).clone(form.builder.getI64Type()),
                          {form.attr("axis", static_cast<int64_t>(op.getDim())), form.attr("keepdims", int64_t(0)),
                           form.attr("select_last_index", int64_t(op.getSelectLast()))});
  form.set(0, form.cast(found, form.outType(0).getElementType()));
  return success();
}

static LogicalResult writeCumSum(nn::CumSumOp op, FormBuilder &form) {
  Value axis = form.scalarInt(form.builder.getI64Type(), op.getDim());
  form.set(0, form.node("CumSum", {form.in(0), axis}, form.outType(0),
                        {form.attr("exclusive", int64_t(op.getExclusive())),
                         form.attr("reverse", int64_t(op.getReverse()))}));
  return success();
}

void lowtide::attachReductionForms(MLIRContext *context) {
  attachForm<nn::ReduceSumOp, writeReduction<nn::ReduceSumOp>>(context);
  attachForm<nn::ReduceMaxOp, writeReduction<nn::ReduceMaxOp>>(context);
  attachForm<nn::ReduceMinOp, writeReduction<nn::ReduceMinOp>>(context);
  attachForm<nn::ReduceProdOp, writeReduction<nn::ReduceProdOp>>(context);
  attachForm<nn::ReduceAnyOp, writeQuantifier<nn::ReduceAnyOp>>(context);
  attachForm<nn::ReduceAllOp, writeQuantifier<nn::ReduceAllOp>>(context);
  attachForm<nn::ArgMaxOp, writeArgExtremum<nn::ArgMaxOp>>(context);
  attachForm<nn::ArgMinOp, writeArgExtremum<nn::ArgMinOp>>(context);
  attachForm<nn::CumSumOp, writeCumSum>(context);
}
