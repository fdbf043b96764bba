//===- Movement.cpp - nn ops that move elements -----------------*- C++ -*-===//
//
// Verifiers, element descriptions and derivatives of broadcast, reshape, transpose and constant, and the end of
// stop_gradient.
//
//===----------------------------------------------------------------------===//

#include "ReshapedElement.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

//===-- constant ----------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  if (!isa<DenseElementsAttr>(getValue()))
    return emitOpError("value must be a dense<…> attribute");
  return success();
}

Value ConstantOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  return b.table(cast<DenseElementsAttr>(getValue()), index);
}

//===-- stop_gradient -----------------------------------------------------===//

FailureOr<SmallVector<Value>> StopGradientOp::decompose(OpBuilder &) { return SmallVector<Value>{getX()}; }

//===-- broadcast ---------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  auto from = getX().getType(), to = getY().getType();
  if (static_cast<int64_t>(getDims().size()) != from.getRank())
    return emitOpError("needs one entry of dims for each dimension of its operand, found ") << getDims().size();
  if (from.getElementType() != to.getElementType())
    return emitOpError("operand and result must have the same element type");
  for (auto [i, dim] : llvm::enumerate(getDims())) {
    if (dim < 0 || dim >= to.getRank() || (i > 0 && dim <= getDims()[i - 1]))
      return emitOpError("dims must be ascending and below rank ") << to.getRank();
    if (from.getDimSize(i) != 1 && from.getDimSize(i) != to.getDimSize(dim))
      return emitOpError("dimension ") << i << " has extent " << from.getDimSize(i) << ", which is neither 1 nor "
                                       << to.getDimSize(dim);
  }
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getY().getType())
    return getX();
  return foldSplat(adaptor.getX(), getY().getType());
}

Value BroadcastOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  SmallVector<Value> source;
  for (auto [i, dim] : llvm::enumerate(getDims()))
    source.push_back(getX().getType().getDimSize(i) == 1 ? b.index(0) : index[dim]);
  return b.operand(0, source);
}

LogicalResult BroadcastOp::differentiate(GradientBuilder &g) {
  if (!g.needs(0))
    return success();
  SmallVector<int64_t> repeated;
  for (int64_t dim = 0; dim < getY().getType().getRank(); ++dim) {
    const int64_t *found = llvm::find(getDims(), dim);
    if (found == getDims().end() ||
        getX().getType().getDimSize(found - getDims().begin()) != getY().getType().getDimSize(dim))
      repeated.push_back(dim);
  }
  g.set(0, reshape(sum(g.cotangent(0), repeated), getX().getType().getShape()));
  return success();
}

//===-- reshape -----------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  if (getX().getType().getElementType() != getY().getType().getElementType())
    return emitOpError("operand and result must have the same element type");
  if (getX().getType().getNumElements() != getY().getType().getNumElements())
    return emitOpError("operand has ") << getX().getType().getNumElements() << " elements, result "
                                       << getY().getType().getNumElements();
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getY().getType())
    return getX();
  if (auto inner = getX().getDefiningOp<ReshapeOp>()) {
    if (inner.getX().getType() == getY().getType())
      return inner.getX();
    getXMutable().assign(inner.getX());
    return getY();
  }
  if (auto dense = llvm::dyn_cast_or_null<DenseElementsAttr>(adaptor.getX()))
    return dense.reshape(getY().getType());
  return {};
}

Value nn::emitReshapedElement(ElementBuilder &b, RankedTensorType from, RankedTensorType to, ValueRange index) {
  Value linear = b.index(0);
  for (auto [i, extent] : llvm::zip(index, to.getShape()))
    linear = b.add(b.mul(linear, b.index(extent)), i);
  SmallVector<Value> source(from.getRank());
  for (int64_t i = from.getRank() - 1; i >= 0; --i) {
    Value extent = b.index(from.getDimSize(i));
    source[i] = i == 0 ? linear : b.rem(linear, extent, /*isUnsigned=*/true);
    if (i > 0)
      linear = b.div(linear, extent, /*isUnsigned=*/true);
  }
  return b.operand(0, source);
}

Value ReshapeOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  return emitReshapedElement(b, getX().getType(), getY().getType(), index);
}

LogicalResult ReshapeOp::differentiate(GradientBuilder &g) {
  if (g.needs(0))
    g.set(0, reshape(g.cotangent(0), getX().getType().getShape()));
  return success();
}

//===-- transpose ---------------------------------------------------------===//

LogicalResult TransposeOp::verify() {
  auto from = getX().getType(), to = getY().getType();
  SmallVector<bool> seen(from.getRank());
  if (static_cast<int64_t>(getPermutation().size()) != from.getRank() || from.getRank() != to.getRank())
    return emitOpError("permutation must have one entry for each of the ") << from.getRank() << " dimensions";
  if (from.getElementType() != to.getElementType())
    return emitOpError("operand and result must have the same element type");
  for (auto [i, p] : llvm::enumerate(getPermutation())) {
    if (p < 0 || p >= from.getRank() || seen[p])
      return emitOpError("permutation must name each dimension once");
    seen[p] = true;
    if (to.getDimSize(i) != from.getDimSize(p))
      return emitOpError("result dimension ") << i << " must have extent " << from.getDimSize(p);
  }
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getPermutation().size())))
    return getX();
  return foldSplat(adaptor.getX(), getY().getType());
}

Value TransposeOp::emitElement(ElementBuilder &b, unsigned, ValueRange index) {
  SmallVector<Value> source(index.size());
  for (auto [i, p] : llvm::enumerate(getPermutation()))
    source[p] = index[i];
  return b.operand(0, source);
}

LogicalResult TransposeOp::differentiate(GradientBuilder &g) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [i, p] : llvm::enumerate(getPermutation()))
    inverse[p] = i;
  if (g.needs(0))
    g.set(0, transpose(g.cotangent(0), inverse));
  return success();
}
