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

/// So many extrema are looked for side by side, in as many parts of the elements: each waits for itself alone.
static constexpr int64_t kLanes = 8;

/// Keeps value and position of the extremum; a NaN wins, as in PyTorch. Lane l looks at elements l, l + 8, …
static Value emitArgExtremum(Operation *op, ElementBuilder &b, ValueRange index, int64_t dim, bool selectLast,
                             Compare better) {
  Value x = op->getOperand(0), y = op->getResult(0);
  const bool isUnsigned = isUnsignedElement(x), isFloat = isa<FloatType>(scalarType(x));
  const int64_t extent = cast<RankedTensorType>(x.getType()).getDimSize(dim);
  const int64_t lanes = extent >= 2 * kLanes ? kLanes : 1;
  using Place = std::pair<Value, Value>; // value and position
  auto read = [&](ElementBuilder &at, Value position) {
    SmallVector<Value> source(index);
    source.insert(source.begin() + dim, position);
    return Place(at.operand(0, source), position);
  };
  /// `isLater`: null where the candidate's position is known to be.
  auto choose = [&](ElementBuilder &at, Place best, Place candidate, Value isLater) {
    auto isPreferred = [&](bool later) {
      return isLater ? (later ? isLater : at.logicalNot(isLater)) : at.constantInt(at.builder.getI1Type(), later);
    };
    Value wins =
        at.logicalOr(at.compare(better, candidate.first, best.first, isUnsigned),
                     at.logicalAnd(at.compare(Compare::EQ, candidate.first, best.first), isPreferred(selectLast)));
    if (isFloat) {
      // Of several NaNs the first.
      Value isNaN = at.isNaN(best.first);
      Value first = at.logicalAnd(at.isNaN(candidate.first), at.logicalOr(at.logicalNot(isNaN), isPreferred(false)));
      wins = at.logicalOr(at.logicalAnd(wins, at.logicalNot(isNaN)), first);
    }
    return Place(at.select(wins, candidate.first, best.first), at.select(wins, candidate.second, best.second));
  };
  SmallVector<Value> places;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    auto [value, position] = read(b, b.index(lane));
    places.append({value, position});
  }
  places = b.loop({extent / lanes}, places, [&](ElementBuilder &inner, ValueRange best, ValueRange round) {
    SmallVector<Value> found;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value position = inner.add(inner.mul(round[0], inner.index(lanes)), inner.index(lane));
      auto [value, at] = choose(inner, {best[2 * lane], best[2 * lane + 1]}, read(inner, position), Value());
      found.append({value, at});
    }
    return found;
  });
  Place found(places[0], places[1]);
  for (int64_t lane = 1; lane < lanes; ++lane) {
    Place other(places[2 * lane], places[2 * lane + 1]);
    found = choose(b, found, other, b.compare(Compare::GT, other.second, found.second));
  }
  for (int64_t last = extent / lanes * lanes; last < extent; ++last)
    found = choose(b, found, read(b, b.index(last)), Value());
  return b.cast(found.second, scalarType(y));
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
