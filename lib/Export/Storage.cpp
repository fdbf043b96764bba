//===- Storage.cpp - what parameters are rounded to as operators ----------===//

#include "lowtide/Dialect/NN/Storage.h"
#include "Forms.h"

using namespace mlir;
using namespace lowtide;

/// Ties away from zero, where a Cast rounds them to even: no operator shows the bits of a number.
static LogicalResult writeHighHalf(nn::HighHalfOp op, FormBuilder &form) {
  Builder &b = form.builder;
  if (!form.inType(0).getElementType().isF32())
    return failure();
  auto round = [&](Value value) { return form.cast(form.cast(value, b.getBF16Type()), b.getF32Type()); };
  // In the middle between two neighbours a number is as far from one as from the other; all of this is exact. Where
  // `near` is infinity, so is `other`, of the other sign.
  Value x = form.in(0), near = round(x), left = form.pointwise("Sub", {x, near});
  Value other = round(form.pointwise("Add", {x, left}));
  Value isTie = form.pointwise("Equal", {form.pointwise("Sub", {other, x}), left}, b.getI1Type());
  Value isFurther =
      form.pointwise("Greater", {form.pointwise("Abs", other), form.pointwise("Abs", near)}, b.getI1Type());
  Value rounded = form.pointwise("Where", {form.pointwise("And", {isTie, isFurther}), other, near});
  form.set(0, form.cast(rounded, form.outType(0).getElementType()));
  return success();
}

void lowtide::attachStorageForms(MLIRContext *context) { attachForm<nn::HighHalfOp, writeHighHalf>(context); }
