//===- Ordering.cpp - nn.argmax, argmin, cumsum -----------------*- C++ -*-===//
//
// Verifiers, element descriptions and derivatives of positions of extrema and running sums.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

static LogicalResult verifyDim(Operation *op, int64_t dim, int64_t rank) {
  if (dim < 0 || dim >= rank)
    return op->emitOpError("dim ") << dim << " is not below rank " << rank;
  return success();
}

//===-- argmax, argmin ----------------------------------------------------===//

static LogicalResult verifyArgExtremum(Operation *op, RankedTensorType x, RankedTensorType y, int64_t dim) {
  if (failed(verifyDim(op, dim, x.getRank())))
    return failure();
  SmallVector<int64_t> expected(x.getShape());
  expected.erase(expected.begin() + dim);
  if (y.getShape() != ArrayRef<int64_t>(expected))
    return op->emitOpError("result shape must be the operand's without dimension ") << dim;
  if (x.getDimSize(dim) == 0)
    return op->emitOpError("has no element to choose from");
  return success();
}

/// Keeps value and position of the extremum; a NaN wins, as in PyTorch.
static Value emitArgExtremum(Operation *op, ElementBuilder &b, ValueRange index, int64_t dim, bool selectLast,
                             Compare better) {
  Value x = op->getOperand(0), y = op->getResult(0);
  bool isUnsigned = isUnsignedElement(x);
  Type indexType = b.builder.getIndexType();
  auto read = [&](ElementBuilder &at, Value position) {
    SmallVector<Value> source(index);
    source.insert(source.begin() + dim, position);
    return at.operand(0, source);
  };
  SmallVector<Value> initial{read(b, b.index(0)), b.constantInt(indexType, 0)};
  int64_t extent = cast<RankedTensorType>(x.getType()).getDimSize(dim);
  auto found = b.loop({extent}, initial, [&](ElementBuilder &inner, ValueRange best, ValueRange at) {
    Value candidate = read(inner, at[0]);
    Value wins = inner.compare(better, candidate, best[0], isUnsigned);
    if (selectLast)
      wins = inner.logicalOr(wins, inner.compare(Compare::EQ, candidate, best[0]));
    if (isa<FloatType>(candidate.getType()))
      wins = inner.logicalOr(inner.logicalAnd(wins, inner.logicalNot(inner.isNaN(best[0]))),
                             inner.logicalAnd(inner.isNaN(candidate), inner.logicalNot(inner.isNaN(best[0]))));
    return SmallVector<Value>{inner.select(wins, candidate, best[0]), inner.select(wins, at[0], best[1])};
  });
  return b.cast(found[1], scalarType(y));
}

LogicalResult ArgMaxOp::verify() { return verifyArgExtremum(*this, getX().getType(), getY().getType(), getDim()); }
LogicalResult ArgMinOp::verify() { return verifyArgExtremum(*this, getX().getType(), getY().getType(), getDim()); }
Value ArgMaxOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  return emitArgExtremum(*this, b, index, getDim(), getSelectLast(), Compare::GT);
}
Value ArgMinOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  return emitArgExtremum(*this, b, index, getDim(), getSelectLast(), Compare::LT);
}

//===-- cumsum ------------------------------------------------------------===//

LogicalResult CumSumOp::verify() { return verifyDim(*this, getDim(), getX().getType().getRank()); }

// From where the sum begins, one after the other: what comes before an element is its sum so far.
Value CumSumOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  const int64_t dim = getDim(), extent = getX().getType().getDimSize(dim);
  Type type = accumulatorType(getY());
  Value own = getReverse() ? b.sub(b.index(extent - 1), index[dim]) : index[dim];
  Value total = b.loop({extent}, b.constant(type, 0.0), [&](ElementBuilder &inner, ValueRange sums, ValueRange step) {
    SmallVector<Value> source(index);
    source[dim] = getReverse() ? inner.sub(inner.index(extent - 1), step[0]) : step[0];
    Value next = inner.add(sums[0], inner.cast(inner.operand(0, source), type));
    Value isBefore = inner.compare(getExclusive() ? Compare::LT : Compare::LE, step[0], own);
    return SmallVector<Value>{inner.select(isBefore, next, sums[0])};
  })[0];
  return b.cast(total, scalarType(getY()));
}

LogicalResult CumSumOp::differentiate(GradientBuilder &g) {
  if (g.needs(0))
    g.set(0, cumsum(g.cotangent(0), getDim(), getExclusive(), !getReverse()));
  return success();
}
