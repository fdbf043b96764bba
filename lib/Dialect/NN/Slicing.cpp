//===- Slicing.cpp - nn.slice, pad, reverse, concat, iota -------*- C++ -*-===//
//
// Verifiers, element descriptions and derivatives of the ops that take tensors apart and put them together.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// Bound on offsets, pads and strides in attributes: sums of two and products with 32-bit extents stay in 64 bits.
static constexpr int64_t offsetLimit = int64_t(1) << 40;

static LogicalResult verifyOffsets(Operation *op, StringRef name, ArrayRef<int64_t> values, int64_t rank,
                                   int64_t lowest) {
  if (static_cast<int64_t>(values.size()) != rank)
    return op->emitOpError() << name << " must have one entry for each of the " << rank << " dimensions, found "
                             << values.size();
  for (int64_t value : values)
    if (value < lowest || value > offsetLimit)
      return op->emitOpError() << name << " entry " << value << " is outside [" << lowest << ", " << offsetLimit << "]";
  return success();
}

static LogicalResult verifySameElements(Operation *op, RankedTensorType x, RankedTensorType y) {
  if (x.getElementType() != y.getElementType())
    return op->emitOpError("operand and result must have the same element type");
  if (x.getRank() != y.getRank())
    return op->emitOpError("operand has rank ") << x.getRank() << ", result " << y.getRank();
  return success();
}

//===-- slice -------------------------------------------------------------===//

LogicalResult SliceOp::verify() {
  auto x = getX().getType(), y = getY().getType();
  if (failed(verifySameElements(*this, x, y)) || failed(verifyOffsets(*this, "starts", getStarts(), x.getRank(), 0)) ||
      failed(verifyOffsets(*this, "strides", getStrides(), x.getRank(), 1)))
    return failure();
  for (int64_t i = 0; i < x.getRank(); ++i) {
    int64_t size = y.getDimSize(i), room = x.getDimSize(i) - getStarts()[i];
    if (size > 0 && (room <= 0 || (size - 1) > (room - 1) / getStrides()[i]))
      return emitOpError("dimension ") << i << ": " << size << " elements from " << getStarts()[i] << " in steps of "
                                       << getStrides()[i] << " exceed extent " << x.getDimSize(i);
  }
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getY().getType())
    return getX();
  return foldSplat(adaptor.getX(), getY().getType());
}

Value SliceOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  SmallVector<Value> source;
  for (auto [i, start, stride] : llvm::zip(index, getStarts(), getStrides()))
    source.push_back(b.add(b.mul(i, b.index(stride)), b.index(start)));
  return b.operand(0, source);
}

LogicalResult SliceOp::differentiate(GradientBuilder &g) {
  if (!g.needs(0))
    return success();
  SmallVector<int64_t> high, interior;
  for (auto [from, to, start, stride] :
       llvm::zip(getX().getType().getShape(), getY().getType().getShape(), getStarts(), getStrides())) {
    interior.push_back(stride - 1);
    high.push_back(from - start - (to == 0 ? 0 : (to - 1) * stride + 1));
  }
  g.set(0, pad(g.cotangent(0), getStarts(), high, interior));
  return success();
}

//===-- pad ---------------------------------------------------------------===//

LogicalResult PadOp::verify() {
  auto x = getX().getType(), y = getY().getType();
  if (failed(verifySameElements(*this, x, y)) || failed(verifyOffsets(*this, "low", getLow(), x.getRank(), 0)) ||
      failed(verifyOffsets(*this, "high", getHigh(), x.getRank(), 0)) ||
      failed(verifyOffsets(*this, "interior", getInterior(), x.getRank(), 0)))
    return failure();
  for (int64_t i = 0; i < x.getRank(); ++i) {
    int64_t extent = x.getDimSize(i), gaps = 0, expected = 0;
    if (llvm::MulOverflow(std::max<int64_t>(extent - 1, 0), getInterior()[i], gaps) ||
        llvm::AddOverflow(gaps, extent, expected) ||
        llvm::AddOverflow(expected, getLow()[i] + getHigh()[i], expected) || y.getDimSize(i) != expected)
      return emitOpError("result dimension ") << i << " has extent " << y.getDimSize(i) << ", expected " << expected;
  }
  return success();
}

Value PadOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  Type type = scalarType(getY());
  Value inside, fill = b.constant(type, getValue().convertToDouble());
  SmallVector<Value> source;
  auto require = [&](Value condition) { inside = inside ? b.logicalAnd(inside, condition) : condition; };
  for (auto [dim, i] : llvm::enumerate(index)) {
    int64_t extent = getX().getType().getDimSize(dim), step = getInterior()[dim] + 1;
    Value position = b.sub(i, b.index(getLow()[dim]));
    if (getLow()[dim] > 0)
      require(b.compare(Compare::GE, position, b.index(0)));
    if (step > 1) {
      require(b.compare(Compare::EQ, b.rem(position, b.index(step)), b.index(0)));
      position = b.div(position, b.index(step));
    }
    if (getHigh()[dim] > 0)
      require(b.compare(Compare::LT, position, b.index(extent)));
    source.push_back(position);
  }
  if (!inside)
    return b.operand(0, source);
  return b.guarded(
      inside, type, [&](ElementBuilder &inner) { return inner.operand(0, source); },
      [&](ElementBuilder &) { return fill; });
}

LogicalResult PadOp::differentiate(GradientBuilder &g) {
  SmallVector<int64_t> strides;
  for (int64_t gap : getInterior())
    strides.push_back(gap + 1);
  if (g.needs(0))
    g.set(0, slice(g.cotangent(0), getLow(), getX().getType().getShape(), strides));
  return success();
}

//===-- reverse -----------------------------------------------------------===//

LogicalResult ReverseOp::verify() {
  if (getX().getType() != getY().getType())
    return emitOpError("operand and result must have the same type");
  for (auto [i, dim] : llvm::enumerate(getDims()))
    if (dim < 0 || dim >= getX().getType().getRank() || (i > 0 && dim <= getDims()[i - 1]))
      return emitOpError("dims must be ascending and below rank ") << getX().getType().getRank();
  return success();
}

Value ReverseOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  SmallVector<Value> source(index);
  for (int64_t dim : getDims())
    source[dim] = b.sub(b.index(getX().getType().getDimSize(dim) - 1), index[dim]);
  return b.operand(0, source);
}

LogicalResult ReverseOp::differentiate(GradientBuilder &g) {
  if (g.needs(0))
    g.set(0, reverse(g.cotangent(0), getDims()));
  return success();
}

//===-- concat ------------------------------------------------------------===//

LogicalResult ConcatOp::verify() {
  auto y = getY().getType();
  int64_t dim = getDim(), total = 0;
  if (getXs().empty())
    return emitOpError("needs at least one operand");
  if (dim < 0 || dim >= y.getRank())
    return emitOpError("dim ") << dim << " is not below rank " << y.getRank();
  for (Value x : getXs()) {
    auto type = cast<RankedTensorType>(x.getType());
    if (failed(verifySameElements(*this, type, y)))
      return failure();
    for (int64_t i = 0; i < y.getRank(); ++i)
      if (i != dim && type.getDimSize(i) != y.getDimSize(i))
        return emitOpError("operands and result must agree in dimension ") << i;
    if (llvm::AddOverflow(total, type.getDimSize(dim), total))
      return emitOpError("extents along dim overflow");
  }
  if (total != y.getDimSize(dim))
    return emitOpError("extents along dim ") << dim << " add up to " << total << ", result has " << y.getDimSize(dim);
  return success();
}

/// Element of the operands from `number` on, the first of which starts at `offset` along dim.
static Value emitConcat(ConcatOp op, ElementBuilder &b, unsigned number, int64_t offset, ValueRange index) {
  SmallVector<Value> source(index);
  source[op.getDim()] = b.sub(index[op.getDim()], b.index(offset));
  if (number + 1 == op.getXs().size())
    return b.operand(number, source);
  int64_t next = offset + cast<RankedTensorType>(op.getXs()[number].getType()).getDimSize(op.getDim());
  return b.guarded(
      b.compare(Compare::LT, index[op.getDim()], b.index(next)), scalarType(op.getY()),
      [&](ElementBuilder &inner) { return inner.operand(number, source); },
      [&](ElementBuilder &inner) { return emitConcat(op, inner, number + 1, next, index); });
}

Value ConcatOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) { return emitConcat(*this, b, 0, 0, index); }

LogicalResult ConcatOp::differentiate(GradientBuilder &g) {
  SmallVector<int64_t> starts(getY().getType().getRank(), 0);
  for (auto [i, x] : llvm::enumerate(getXs())) {
    auto type = cast<RankedTensorType>(x.getType());
    if (g.needs(i))
      g.set(i, slice(g.cotangent(0), starts, type.getShape()));
    starts[getDim()] += type.getDimSize(getDim());
  }
  return success();
}

//===-- iota --------------------------------------------------------------===//

LogicalResult IotaOp::verify() {
  if (static_cast<int64_t>(getDim()) < 0 || static_cast<int64_t>(getDim()) >= getY().getType().getRank())
    return emitOpError("dim ") << static_cast<int64_t>(getDim()) << " is not below rank " << getY().getType().getRank();
  return success();
}

Value IotaOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  Type type = scalarType(getY());
  Value position = index[getDim()];
  if (isa<FloatType>(type))
    position = b.cast(position, b.builder.getI64Type());
  return b.cast(position, type);
}
