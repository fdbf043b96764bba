//===- FormBuilder.cpp - what an op's ONNX form writes with ---------------===//
//
// Nodes, constants and the nodes that every family needs.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Export/FormBuilder.h"
#include "lowtide/Dialect/ONNX/ONNX.h"

using namespace mlir;
using namespace lowtide;

#include "lowtide/Export/OnnxFormInterface.cpp.inc"

Value FormBuilder::in(unsigned i) {
  Value value = compact(i);
  return expand(value, inType(i).getShape());
}

NamedAttribute FormBuilder::attr(StringRef name, int64_t value) {
  return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
}
NamedAttribute FormBuilder::attr(StringRef name, ArrayRef<int64_t> value) {
  return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(value));
}
NamedAttribute FormBuilder::attr(StringRef name, StringRef value) {
  return builder.getNamedAttr(name, builder.getStringAttr(value));
}
NamedAttribute FormBuilder::attrFloat(StringRef name, double value) {
  return builder.getNamedAttr(name, builder.getF32FloatAttr(static_cast<float>(value)));
}

ValueRange FormBuilder::nodes(StringRef operatorName, ValueRange inputs, TypeRange types,
                              ArrayRef<NamedAttribute> attributes, StringRef domain) {
  SmallVector<Attribute> names(types.size(), builder.getStringAttr(""));
  return onnx::NodeOp::create(builder, op->getLoc(), types, operatorName, domain, domain.empty() ? exportOpset : 1,
                              builder.getDictionaryAttr(attributes), builder.getArrayAttr(names), ArrayAttr(), inputs,
                              0)
      .getResults();
}

Value FormBuilder::node(StringRef operatorName, ValueRange inputs, Type result, ArrayRef<NamedAttribute> attributes) {
  return nodes(operatorName, inputs, result, attributes)[0];
}

/// The shape to which shapes broadcast; they are known to fit.
static SmallVector<int64_t> broadcastShape(ValueRange inputs) {
  SmallVector<int64_t> shape;
  for (Value input : inputs) {
    ArrayRef<int64_t> other = tensorType(input).getShape();
    while (shape.size() < other.size())
      shape.insert(shape.begin(), 1);
    for (size_t i = 0; i < other.size(); ++i) {
      int64_t &extent = shape[shape.size() - other.size() + i];
      if (extent == 1)
        extent = other[i];
    }
  }
  return shape;
}

Value FormBuilder::pointwise(StringRef operatorName, ValueRange inputs, Type element,
                             ArrayRef<NamedAttribute> attributes) {
  if (!element)
    element = tensorType(inputs.back()).getElementType();
  return node(operatorName, inputs, RankedTensorType::get(broadcastShape(inputs), element), attributes);
}

Value FormBuilder::dense(DenseElementsAttr values) { return onnx::ConstantOp::create(builder, op->getLoc(), values); }

Value FormBuilder::ints(ArrayRef<int64_t> values) {
  return dense(DenseElementsAttr::get(
      RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getI64Type()), values));
}

Value FormBuilder::scalar(Type element, double value) {
  if (!isa<FloatType>(element))
    return scalarInt(element, static_cast<int64_t>(value));
  return dense(DenseElementsAttr::get(RankedTensorType::get({}, element), builder.getFloatAttr(element, value)));
}

Value FormBuilder::scalarInt(Type element, int64_t value) {
  APInt bits(element.getIntOrFloatBitWidth(), static_cast<uint64_t>(value), false, /*implicitTrunc=*/true);
  return dense(DenseElementsAttr::get(RankedTensorType::get({}, element), bits));
}

Value FormBuilder::filled(RankedTensorType type, double value) {
  return expand(scalar(type.getElementType(), value), type.getShape());
}

static RankedTensorType withShape(Value x, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, tensorType(x).getElementType());
}

Value FormBuilder::reshape(Value x, ArrayRef<int64_t> shape) {
  if (tensorType(x).getShape() == shape)
    return x;
  // An extent of 0 would mean "as in the input".
  SmallVector<NamedAttribute> attributes;
  if (llvm::is_contained(shape, 0))
    attributes.push_back(attr("allowzero", 1));
  return node("Reshape", {x, ints(shape)}, withShape(x, shape), attributes);
}

Value FormBuilder::transpose(Value x, ArrayRef<int64_t> permutation) {
  if (llvm::is_sorted(permutation))
    return x;
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(tensorType(x).getDimSize(dim));
  return node("Transpose", x, withShape(x, shape), attr("perm", permutation));
}

Value FormBuilder::expand(Value x, ArrayRef<int64_t> shape) {
  if (tensorType(x).getShape() == shape)
    return x;
  // Runtimes cast bf16 and do little else with it: what was cast is expanded before.
  auto made = x.getDefiningOp<onnx::NodeOp>();
  if (made && made.getOpType() == "Cast" && tensorType(x).getElementType().isBF16())
    return cast(expand(made.getOperand(0), shape), tensorType(x).getElementType());
  return node("Expand", {x, ints(shape)}, withShape(x, shape));
}

int64_t lowtide::getOnnxDataType(Type type) {
  if (type.isF32())
    return 1;
  if (type.isF64())
    return 11;
  if (type.isF16())
    return 10;
  if (type.isBF16())
    return 16;
  if (type.isInteger(1))
    return 9;
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 8:
    return isUnsigned ? 2 : 3;
  case 16:
    return isUnsigned ? 4 : 5;
  case 32:
    return isUnsigned ? 12 : 6;
  default:
    return isUnsigned ? 13 : 7;
  }
}

Value FormBuilder::cast(Value x, Type element) {
  if (tensorType(x).getElementType() == element)
    return x;
  return node("Cast", x, RankedTensorType::get(tensorType(x).getShape(), element),
              attr("to", getOnnxDataType(element)));
}

Value FormBuilder::slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> ends, ArrayRef<int64_t> steps,
                         ArrayRef<int64_t> shape) {
  SmallVector<int64_t> from, to, by, axes;
  for (int64_t i = 0, rank = tensorType(x).getRank(); i < rank; ++i) {
    if (starts[i] == 0 && steps[i] == 1 && ends[i] == tensorType(x).getDimSize(i))
      continue;
    from.push_back(starts[i]);
    to.push_back(ends[i]);
    by.push_back(steps[i]);
    axes.push_back(i);
  }
  if (axes.empty())
    return x;
  return node("Slice", {x, ints(from), ints(to), ints(axes), ints(by)}, withShape(x, shape));
}
