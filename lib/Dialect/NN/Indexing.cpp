//===- Indexing.cpp - nn.gather, scatter_add and their kin ------*- C++ -*-===//
//
// Verifiers, element descriptions and derivatives of reading and adding at computed positions.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// An index as read from a tensor: whether it is in [0, extent), and itself if so, else 0.
static std::pair<Value, Value> checkIndex(ElementBuilder &b, Value read, int64_t extent) {
  // As unsigned numbers, negative indices are too large.
  Value wide = b.cast(read, b.builder.getI64Type());
  Value inside = b.compare(Compare::LT, wide, b.constantInt(wide.getType(), extent), /*isUnsigned=*/true);
  Value safe = b.select(inside, wide, b.constantInt(wide.getType(), 0));
  return {inside, b.cast(safe, b.builder.getIndexType())};
}

/// What an index outside reads: a number that shows.
static Value outside(ElementBuilder &b, Type type) {
  return isa<FloatType>(type) ? b.constant(type, std::numeric_limits<double>::quiet_NaN()) : b.constantInt(type, 0);
}

static LogicalResult verifyAxis(Operation *op, int64_t axis, RankedTensorType x, Value indices) {
  auto indexType = cast<RankedTensorType>(indices.getType()).getElementType();
  if (indexType.isUnsignedInteger() || indexType.isInteger(1))
    return op->emitOpError("indices must be signed integers");
  if (axis < 0 || axis >= x.getRank())
    return op->emitOpError("axis ") << axis << " is not below rank " << x.getRank();
  return success();
}

/// Shape that results from putting `indices` in the place of dimension `axis` of `x`.
static SmallVector<int64_t> gatheredShape(ArrayRef<int64_t> x, ArrayRef<int64_t> indices, int64_t axis) {
  SmallVector<int64_t> shape(x.take_front(axis));
  llvm::append_range(shape, indices);
  llvm::append_range(shape, x.drop_front(axis + 1));
  return shape;
}

//===-- gather ------------------------------------------------------------===//

LogicalResult GatherOp::verify() {
  auto x = getX().getType(), y = getY().getType();
  if (failed(verifyAxis(*this, getAxis(), x, getIndices())))
    return failure();
  if (x.getElementType() != y.getElementType())
    return emitOpError("operand and result must have the same element type");
  SmallVector<int64_t> expected = gatheredShape(x.getShape(), getIndices().getType().getShape(), getAxis());
  if (y.getShape() != ArrayRef<int64_t>(expected))
    return emitOpError("result shape must be the operand's with the indices' in the place of dimension ") << getAxis();
  if (y.getNumElements() > 0 && x.getDimSize(getAxis()) == 0)
    return emitOpError("reads from an empty dimension");
  if (std::optional<uint64_t> row = getUntrainedRow(); row && int64_t(*row) >= x.getDimSize(getAxis()))
    return emitOpError("untrained row ") << *row << " is not below " << x.getDimSize(getAxis());
  return success();
}

Value GatherOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  int64_t axis = getAxis(), count = getIndices().getType().getRank();
  auto [inside, position] = checkIndex(b, b.operand(1, index.slice(axis, count)), getX().getType().getDimSize(axis));
  SmallVector<Value> source(index.take_front(axis));
  source.push_back(position);
  llvm::append_range(source, index.drop_front(axis + count));
  return b.select(inside, b.operand(0, source), outside(b, scalarType(getY())));
}

LogicalResult GatherOp::differentiate(GradientBuilder &g) {
  if (!g.needs(0))
    return success();
  Expr indices = g.operand(1), dy = g.cotangent(0);
  if (std::optional<uint64_t> row = getUntrainedRow()) {
    SmallVector<int64_t> dims(llvm::to_vector(llvm::seq<int64_t>(getAxis(), getAxis() + indices.rank())));
    dy = select(broadcast(equal(indices, double(*row)), dy.shape(), dims), dy.like(0.0), dy);
  }
  g.set(0, scatterAdd(indices, dy, getX().getType().getShape(), getAxis()));
  return success();
}

//===-- gather_elements ---------------------------------------------------===//

/// `part` fits into `whole` in every dimension but `axis`.
static LogicalResult verifyElementsShape(Operation *op, RankedTensorType whole, RankedTensorType part, int64_t axis) {
  if (whole.getRank() != part.getRank())
    return op->emitOpError("indices have rank ") << part.getRank() << ", expected " << whole.getRank();
  for (int64_t i = 0; i < whole.getRank(); ++i)
    if (i != axis && part.getDimSize(i) > whole.getDimSize(i))
      return op->emitOpError("indices exceed dimension ") << i;
  if (part.getNumElements() > 0 && whole.getDimSize(axis) == 0)
    return op->emitOpError("reads from an empty dimension");
  return success();
}

LogicalResult GatherElementsOp::verify() {
  auto x = getX().getType(), y = getY().getType();
  if (failed(verifyAxis(*this, getAxis(), x, getIndices())) ||
      failed(verifyElementsShape(*this, x, getIndices().getType(), getAxis())))
    return failure();
  if (x.getElementType() != y.getElementType() || y.getShape() != getIndices().getType().getShape())
    return emitOpError("result must have the indices' shape and the operand's element type");
  return success();
}

Value GatherElementsOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  auto [inside, position] = checkIndex(b, b.operand(1, index), getX().getType().getDimSize(getAxis()));
  SmallVector<Value> source(index);
  source[getAxis()] = position;
  return b.select(inside, b.operand(0, source), outside(b, scalarType(getY())));
}

LogicalResult GatherElementsOp::differentiate(GradientBuilder &g) {
  if (g.needs(0))
    g.set(0, scatterElementsAdd(g.operand(1), g.cotangent(0), getX().getType().getShape(), getAxis()));
  return success();
}

//===-- scatter_add -------------------------------------------------------===//

LogicalResult ScatterAddOp::verify() {
  auto y = getY().getType(), updates = getUpdates().getType();
  if (failed(verifyAxis(*this, getAxis(), y, getIndices())))
    return failure();
  if (updates.getElementType() != y.getElementType())
    return emitOpError("updates and result must have the same element type");
  SmallVector<int64_t> expected = gatheredShape(y.getShape(), getIndices().getType().getShape(), getAxis());
  if (updates.getShape() != ArrayRef<int64_t>(expected))
    return emitOpError("updates must have the result's shape with the indices' in the place of dimension ")
           << getAxis();
  if (updates.getNumElements() > 0 && y.getDimSize(getAxis()) == 0)
    return emitOpError("adds to an empty dimension");
  return success();
}

/// Adds `update` to the sum if `read`, an index, names `position`.
static SmallVector<Value> addWhereEqual(ElementBuilder &b, Value sum, Value read, Value position, Value update) {
  Value wide = b.cast(read, b.builder.getI64Type());
  Value hit = b.compare(Compare::EQ, wide, b.cast(position, wide.getType()));
  return {b.select(hit, b.add(sum, b.cast(update, sum.getType())), sum)};
}

Value ScatterAddOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  int64_t axis = getAxis();
  Type type = accumulatorType(getY());
  Value zero = b.constant(type, 0.0);
  Value total =
      b.loop(getIndices().getType().getShape(), zero, [&](ElementBuilder &inner, ValueRange sums, ValueRange at) {
        SmallVector<Value> source(index.take_front(axis));
        llvm::append_range(source, at);
        llvm::append_range(source, index.drop_front(axis + 1));
        return addWhereEqual(inner, sums[0], inner.operand(0, at), index[axis], inner.operand(1, source));
      })[0];
  return b.cast(total, scalarType(getY()));
}

unsigned ScatterAddOp::getUpdatesOperand() { return 1; }

Value ScatterAddOp::emitTarget(ElementBuilder &b, ValueRange updateIndex, SmallVectorImpl<Value> &target) {
  int64_t axis = getAxis(), count = getIndices().getType().getRank();
  auto [inside, position] =
      checkIndex(b, b.operand(0, updateIndex.slice(axis, count)), getY().getType().getDimSize(axis));
  target.assign(updateIndex.begin(), updateIndex.begin() + axis);
  target.push_back(position);
  target.append(updateIndex.begin() + axis + count, updateIndex.end());
  return inside;
}

SmallVector<int64_t> ScatterAddOp::getPassedDims() {
  int64_t axis = getAxis(), count = getIndices().getType().getRank();
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < getY().getType().getRank(); ++i)
    dims.push_back(i < axis ? i : i == axis ? -1 : i + count - 1);
  return dims;
}

LogicalResult ScatterAddOp::differentiate(GradientBuilder &g) {
  if (g.needs(1))
    g.set(1, gather(g.cotangent(0), g.operand(0), getAxis()));
  return success();
}

//===-- scatter_elements_add ----------------------------------------------===//

LogicalResult ScatterElementsAddOp::verify() {
  auto y = getY().getType(), updates = getUpdates().getType();
  if (failed(verifyAxis(*this, getAxis(), y, getIndices())) ||
      failed(verifyElementsShape(*this, y, getIndices().getType(), getAxis())))
    return failure();
  if (updates.getElementType() != y.getElementType() || updates.getShape() != getIndices().getType().getShape())
    return emitOpError("updates must have the indices' shape and the result's element type");
  return success();
}

Value ScatterElementsAddOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  int64_t axis = getAxis();
  auto updates = getUpdates().getType();
  Type type = accumulatorType(getY());
  Value zero = b.constant(type, 0.0), inside;
  for (int64_t i = 0; i < updates.getRank(); ++i) {
    if (i == axis || updates.getDimSize(i) == getY().getType().getDimSize(i))
      continue;
    Value fits = b.compare(Compare::LT, index[i], b.index(updates.getDimSize(i)));
    inside = inside ? b.logicalAnd(inside, fits) : fits;
  }
  auto sum = [&](ElementBuilder &at) {
    return at.loop({updates.getDimSize(axis)}, zero, [&](ElementBuilder &inner, ValueRange sums, ValueRange j) {
      SmallVector<Value> source(index);
      source[axis] = j[0];
      return addWhereEqual(inner, sums[0], inner.operand(0, source), index[axis], inner.operand(1, source));
    })[0];
  };
  Value total = inside ? b.guarded(inside, type, sum, [&](ElementBuilder &) { return zero; }) : sum(b);
  return b.cast(total, scalarType(getY()));
}

unsigned ScatterElementsAddOp::getUpdatesOperand() { return 1; }

Value ScatterElementsAddOp::emitTarget(ElementBuilder &b, ValueRange updateIndex, SmallVectorImpl<Value> &target) {
  auto [inside, position] = checkIndex(b, b.operand(0, updateIndex), getY().getType().getDimSize(getAxis()));
  target.assign(updateIndex.begin(), updateIndex.end());
  target[getAxis()] = position;
  return inside;
}

SmallVector<int64_t> ScatterElementsAddOp::getPassedDims() {
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < getY().getType().getRank(); ++i)
    dims.push_back(i == static_cast<int64_t>(getAxis()) ? -1 : i);
  return dims;
}

LogicalResult ScatterElementsAddOp::differentiate(GradientBuilder &g) {
  if (g.needs(1))
    g.set(1, gatherElements(g.cotangent(0), g.operand(0), getAxis()));
  return success();
}

//===-- select_rows -------------------------------------------------------===//

LogicalResult SelectRowsOp::verify() {
  auto condition = getCondition().getType(), rows = getRows().getType(), valid = getValid().getType();
  if (condition.getRank() != 1 || condition.getNumElements() == 0 || valid != condition)
    return emitOpError("the condition must be a vector of at least one truth value, and valid another of this size");
  if (rows.getRank() != 1 || rows.getNumElements() == 0 || rows.getNumElements() % condition.getNumElements() ||
      !rows.getElementType().isSignlessInteger(64))
    return emitOpError("rows must be a vector of i64, with equally many elements for each row");
  return success();
}

FailureOr<SmallVector<Value>> SelectRowsOp::decompose(OpBuilder &builder) {
  Expr condition(builder, getLoc(), getCondition());
  Type index = builder.getI64Type();
  const int64_t capacity = condition.dim(0), inner = getRows().getType().getNumElements() / capacity;
  auto positions = [&](ArrayRef<int64_t> shape, int64_t dim) {
    return iota(builder, getLoc(), RankedTensorType::get(shape, index), dim);
  };
  Expr ones = cast(condition, index), numbers = positions({capacity}, 0);
  // What does not hold goes to no place.
  Expr place = select(condition, cumsum(ones, 0, /*exclusive=*/true), numbers.like(double(capacity)));
  Expr compact = scatterAdd(place, numbers, {capacity}, 0);
  Expr valid = less(numbers, broadcastTo(sum(ones, {0}), {capacity}));
  Expr rows = select(valid, compact, broadcastTo(reshape(slice(compact, {0}, {1}), {}), {capacity}));
  if (inner != 1) {
    const SmallVector<int64_t> spread{capacity, inner};
    rows = reshape(broadcast(rows * double(inner), spread, {0}) + positions(spread, 1), {capacity * inner});
  }
  return SmallVector<Value>{rows, valid};
}
