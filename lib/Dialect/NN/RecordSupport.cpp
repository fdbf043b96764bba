//===- RecordSupport.cpp - functions that op records call -------*- C++ -*-===//
//
// Counting, scalar types and the element description of reductions.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/RecordSupport.h"
#include <limits>

using namespace mlir;
using namespace lowtide;

uint64_t nn::countElements(Type type) { return cast<RankedTensorType>(type).getNumElements(); }

uint64_t nn::countResultElements(Operation *op) {
  uint64_t count = 0;
  for (Type type : op->getResultTypes())
    count += countElements(type);
  return count;
}

Type nn::scalarType(Value tensor) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  if (element.isUnsignedInteger() || element.isSignedInteger())
    return IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
  return element;
}

bool nn::isUnsignedElement(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType().isUnsignedInteger();
}

Value nn::lowestValue(ScalarBuilder &b, Type type, bool isUnsigned) {
  if (isa<FloatType>(type))
    return b.constant(type, -std::numeric_limits<double>::infinity());
  unsigned width = type.getIntOrFloatBitWidth();
  return b.constantInt(type, isUnsigned || width == 1 ? 0 : APInt::getSignedMinValue(width).getSExtValue());
}

Value nn::highestValue(ScalarBuilder &b, Type type, bool isUnsigned) {
  if (isa<FloatType>(type))
    return b.constant(type, std::numeric_limits<double>::infinity());
  unsigned width = type.getIntOrFloatBitWidth();
  return b.constantInt(type, isUnsigned || width == 1 ? -1 : APInt::getSignedMaxValue(width).getSExtValue());
}

Value nn::emitSigmoid(ScalarBuilder &b, Value x) { return b.div(1.0, b.add(b.exp(b.neg(x)), 1.0)); }

OpFoldResult nn::foldSplat(Attribute constant, ShapedType type) {
  auto dense = llvm::dyn_cast_or_null<DenseElementsAttr>(constant);
  if (!dense || !dense.isSplat())
    return {};
  return DenseElementsAttr::get(type, dense.getSplatValue<Attribute>());
}

Type nn::accumulatorType(Value tensor) {
  Type type = scalarType(tensor);
  if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(type.getContext());
  return type;
}

Type nn::computeType(Operation *op, Type element) {
  if (op->hasTrait<OpTrait::Elementwise>() && (element.isF16() || element.isBF16()))
    return Float32Type::get(op->getContext());
  return element;
}

bool nn::isCallType(Type from, Type to) {
  Type a = getElementTypeOrSelf(from), d = getElementTypeOrSelf(to);
  return a.isF32() || a.isF64() ? d == a : (a.isBF16() || a.isF16()) && (d == a || d.isF32());
}

void nn::appendCallTypes(Builder &builder, Type from, Type to, SmallVectorImpl<NamedAttribute> &attributes) {
  auto name = [&](Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return builder.getStringAttr(text);
  };
  Type a = getElementTypeOrSelf(from), d = getElementTypeOrSelf(to);
  if (!a.isF32())
    attributes.push_back(builder.getNamedAttr("dtype", name(a)));
  if (a != d)
    attributes.push_back(builder.getNamedAttr("result_dtype", name(d)));
}

Value nn::emitReductionElement(Operation *op, ElementBuilder &b, ValueRange index) {
  auto reduction = cast<ReductionInterface>(op);
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  ArrayRef<int64_t> dims = reduction.getReducedDims();
  SmallVector<int64_t> extents;
  for (int64_t dim : dims)
    extents.push_back(type.getDimSize(dim));
  Type accumulator = accumulatorType(op->getResult(0));
  Value initial = reduction.emitInitial(b, accumulator);
  Value total = b.loop(extents, initial, [&](ElementBuilder &inner, ValueRange accumulators, ValueRange box) {
    SmallVector<Value> full;
    unsigned nextKept = 0, nextReduced = 0;
    for (int64_t i = 0; i < type.getRank(); ++i)
      full.push_back(llvm::is_contained(dims, i) ? box[nextReduced++] : index[nextKept++]);
    Value element = inner.cast(inner.operand(0, full), accumulator);
    return SmallVector<Value>{reduction.emitCombine(inner, accumulators[0], element)};
  })[0];
  return b.cast(total, scalarType(op->getResult(0)));
}

LogicalResult nn::verifyReduction(Operation *op, Value x, Value y, ArrayRef<int64_t> dims) {
  auto from = cast<RankedTensorType>(x.getType()), to = cast<RankedTensorType>(y.getType());
  SmallVector<int64_t> kept;
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (!llvm::is_contained(dims, i))
      kept.push_back(from.getDimSize(i));
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || dims[i] >= from.getRank() || (i > 0 && dims[i] <= dims[i - 1]))
      return op->emitOpError("reduced dimensions must be ascending and below rank ") << from.getRank();
  if (ArrayRef<int64_t>(kept) != to.getShape())
    return op->emitOpError("result shape must be the operand's without the reduced dimensions");
  if (from.getElementType() != to.getElementType())
    return op->emitOpError("result has element type ")
           << to.getElementType() << ", the operand " << from.getElementType() << ": cast the operand";
  return success();
}
