//===- Scatter.cpp - nn.scatter and nn.scatter_elements ---------*- C++ -*-===//
//
// Verifiers, element descriptions and derivatives of values that meet at computed places.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Scatter.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

Expr nn::scatter(ScatterKind kind, Expr x, Expr indices, Expr updates, int64_t axis) {
  return x.with(
      ScatterOp::create(x.getBuilder(), x.getLoc(), x.type(), kind, x.get(), indices.get(), updates.get(), axis));
}

Expr nn::scatterElements(ScatterKind kind, Expr x, Expr indices, Expr updates, int64_t axis) {
  return x.with(ScatterElementsOp::create(x.getBuilder(), x.getLoc(), x.type(), kind, x.get(), indices.get(),
                                          updates.get(), axis));
}

/// The number that names a place in dimension `axis`, of an op that has one for each element or for each row.
static Value readIndex(ElementBuilder &b, ValueRange index) {
  return b.cast(b.operand(1, index), b.builder.getI64Type());
}

template <typename ScatterOpTy> static LogicalResult verifyPlaces(ScatterOpTy op) {
  auto x = op.getX().getType(), updates = op.getUpdates().getType();
  auto indexType = op.getIndices().getType().getElementType();
  if (op.getY().getType() != x)
    return op.emitOpError("operand and result must have the same type");
  if (indexType.isUnsignedInteger() || indexType.isInteger(1))
    return op.emitOpError("indices must be signed integers");
  if (int64_t(op.getAxis()) >= x.getRank() || int64_t(op.getAxis()) < 0)
    return op.emitOpError("axis ") << op.getAxis() << " is not below rank " << x.getRank();
  if (updates.getElementType() != x.getElementType())
    return op.emitOpError("updates and result must have the same element type");
  if (updates.getNumElements() > 0 && x.getDimSize(op.getAxis()) == 0)
    return op.emitOpError("writes to an empty dimension");
  return success();
}

/// Whether the update whose index is `read` lands, and where in dimension `axis`: in bounds in any case.
static std::pair<Value, Value> checkPlace(ElementBuilder &b, Value read, int64_t extent) {
  // As unsigned numbers, negative indices are too large.
  Value inside = b.compare(Compare::LT, read, b.constantInt(read.getType(), extent), /*isUnsigned=*/true);
  Value safe = b.select(inside, read, b.constantInt(read.getType(), 0));
  return {inside, b.cast(safe, b.builder.getIndexType())};
}

/// One element by search: a loop over all updates that may land there. `indexAt` and `updateAt` make the indices of an
/// update's place and value from a position in the box `extents`.
static Value emitMet(MeetingInterface op, ElementBuilder &b, ValueRange index, int64_t axis, ArrayRef<int64_t> extents,
                     function_ref<SmallVector<Value>(ValueRange)> indexAt,
                     function_ref<SmallVector<Value>(ValueRange)> updateAt) {
  Value y = op->getResult(0);
  Value initial = b.cast(b.operand(op.getInitialOperand(), index), accumulatorType(y));
  Value met = b.loop(extents, initial, [&](ElementBuilder &inner, ValueRange there, ValueRange at) {
    Value read = readIndex(inner, indexAt(at));
    Value hit = inner.compare(Compare::EQ, read, inner.cast(index[axis], read.getType()));
    Value update = inner.cast(inner.operand(2, updateAt(at)), there[0].getType());
    return SmallVector<Value>{inner.select(hit, op.emitCombine(inner, there[0], update), there[0])};
  })[0];
  return b.cast(met, scalarType(y));
}

Value nn::emitMeeting(ScalarBuilder &b, ScatterKind kind, Value there, Value update, bool isUnsigned) {
  switch (kind) {
  case ScatterKind::set:
    return update;
  case ScatterKind::mul:
    return b.mul(there, update);
  case ScatterKind::max:
    return b.max(there, update, isUnsigned);
  case ScatterKind::min:
    return b.min(there, update, isUnsigned);
  case ScatterKind::add:
    return b.add(there, update);
  }
  llvm_unreachable("verified");
}

namespace {
/// What the derivatives of the two ops do with places, each in its way.
struct Places {
  function_ref<Expr(Expr whole)> read;
  function_ref<Expr(Expr parts)> count;
  function_ref<Expr(ScatterKind kind, Expr whole, Expr parts)> write;
};
} // namespace

static void differentiateScatter(GradientBuilder &g, ScatterKind kind, const Places &places) {
  Expr x = g.operand(0), updates = g.operand(2), y = g.result(0), dy = g.cotangent(0);
  auto ones = [](Expr e) { return e.like(1.0); };
  switch (kind) {
  case ScatterKind::add:
    if (g.needs(0))
      g.set(0, dy);
    if (g.needs(2))
      g.set(2, places.read(dy));
    return;
  case ScatterKind::set:
    if (g.needs(0))
      g.set(0, places.write(ScatterKind::set, dy, updates.like(0.0)));
    if (g.needs(2))
      g.set(2, places.read(dy));
    return;
  case ScatterKind::max:
  case ScatterKind::min: {
    Expr isHere = equal(x, y), isUpdate = equal(updates, places.read(y));
    Expr share = dy / (cast(isHere, y.elementType()) + places.count(cast(isUpdate, y.elementType())));
    if (g.needs(0))
      g.set(0, select(isHere, share, dy.like(0.0)));
    if (g.needs(2))
      g.set(2, select(isUpdate, places.read(share), updates.like(0.0)));
    return;
  }
  case ScatterKind::mul: {
    if (g.needs(0))
      g.set(0, dy * places.write(ScatterKind::mul, ones(x), updates));
    if (!g.needs(2))
      return;
    // Where one factor of a place is zero, it alone gets a cotangent: that of the others' product.
    Expr isZero = equal(updates, 0.0), zeros = places.count(cast(isZero, y.elementType()));
    Expr isOnlyZero = logicalAnd(isZero, equal(places.read(zeros), 1.0));
    Expr others = places.write(ScatterKind::mul, x, select(isOnlyZero, ones(updates), updates));
    Expr factor = select(isZero, ones(updates), updates);
    g.set(2, select(isOnlyZero, places.read(dy * others), places.read(dy * y) / factor));
    return;
  }
  }
}

//===-- scatter -----------------------------------------------------------===//

LogicalResult ScatterOp::verify() {
  if (failed(verifyPlaces(*this)))
    return failure();
  ArrayRef<int64_t> x = getX().getType().getShape();
  SmallVector<int64_t> expected(x.take_front(getAxis()));
  llvm::append_range(expected, getIndices().getType().getShape());
  llvm::append_range(expected, x.drop_front(getAxis() + 1));
  if (getUpdates().getType().getShape() != ArrayRef<int64_t>(expected))
    return emitOpError("updates must have the result's shape with the indices' in the place of dimension ")
           << getAxis();
  return success();
}

Value ScatterOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  int64_t axis = getAxis();
  return emitMet(
      *this, b, index, axis, getIndices().getType().getShape(), [](ValueRange at) { return SmallVector<Value>(at); },
      [&](ValueRange at) {
        SmallVector<Value> source(index.take_front(axis));
        llvm::append_range(source, at);
        llvm::append_range(source, index.drop_front(axis + 1));
        return source;
      });
}

Value ScatterOp::emitTarget(ElementBuilder &b, ValueRange updateIndex, SmallVectorImpl<Value> &target) {
  int64_t axis = getAxis(), count = getIndices().getType().getRank();
  auto [inside, position] =
      checkPlace(b, readIndex(b, updateIndex.slice(axis, count)), getY().getType().getDimSize(axis));
  target.assign(updateIndex.begin(), updateIndex.begin() + axis);
  target.push_back(position);
  target.append(updateIndex.begin() + axis + count, updateIndex.end());
  return inside;
}

SmallVector<int64_t> ScatterOp::getPassedDims() {
  int64_t axis = getAxis(), count = getIndices().getType().getRank();
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < getY().getType().getRank(); ++i)
    dims.push_back(i < axis ? i : i == axis ? -1 : i + count - 1);
  return dims;
}

LogicalResult ScatterOp::differentiate(GradientBuilder &g) {
  Expr indices = g.operand(1);
  int64_t axis = getAxis();
  differentiateScatter(
      g, getKind(),
      {[&](Expr whole) { return gather(whole, indices, axis); },
       [&](Expr parts) { return scatterAdd(indices, parts, getY().getType().getShape(), axis); },
       [&](ScatterKind kind, Expr whole, Expr parts) { return scatter(kind, whole, indices, parts, axis); }});
  return success();
}

//===-- scatter_elements --------------------------------------------------===//

LogicalResult ScatterElementsOp::verify() {
  if (failed(verifyPlaces(*this)))
    return failure();
  auto indices = getIndices().getType();
  if (getUpdates().getType().getShape() != indices.getShape() || indices.getRank() != getX().getType().getRank())
    return emitOpError("updates must have the indices' shape, of the operand's rank");
  for (int64_t i = 0; i < indices.getRank(); ++i)
    if (i != int64_t(getAxis()) && indices.getDimSize(i) != getX().getType().getDimSize(i))
      return emitOpError("indices have extent ")
             << indices.getDimSize(i) << " in dimension " << i << ", expected " << getX().getType().getDimSize(i);
  return success();
}

Value ScatterElementsOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  auto source = [&](ValueRange at) {
    SmallVector<Value> full(index);
    full[getAxis()] = at[0];
    return full;
  };
  return emitMet(*this, b, index, getAxis(), getIndices().getType().getDimSize(getAxis()), source, source);
}

Value ScatterElementsOp::emitTarget(ElementBuilder &b, ValueRange updateIndex, SmallVectorImpl<Value> &target) {
  auto [inside, position] = checkPlace(b, readIndex(b, updateIndex), getY().getType().getDimSize(getAxis()));
  target.assign(updateIndex.begin(), updateIndex.end());
  target[getAxis()] = position;
  return inside;
}

SmallVector<int64_t> ScatterElementsOp::getPassedDims() {
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < getY().getType().getRank(); ++i)
    dims.push_back(i == int64_t(getAxis()) ? -1 : i);
  return dims;
}

LogicalResult ScatterElementsOp::differentiate(GradientBuilder &g) {
  Expr indices = g.operand(1);
  int64_t axis = getAxis();
  differentiateScatter(
      g, getKind(),
      {[&](Expr whole) { return gatherElements(whole, indices, axis); },
       [&](Expr parts) { return scatterElementsAdd(indices, parts, getY().getType().getShape(), axis); },
       [&](ScatterKind kind, Expr whole, Expr parts) { return scatterElements(kind, whole, indices, parts, axis); }});
  return success();
}
