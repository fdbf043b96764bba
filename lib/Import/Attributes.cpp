//===- Attributes.cpp - attributes of ONNX nodes as MLIR attributes
//-------------------===//

#include "Attributes.h"

#include "lowtide/OnnxModel/TensorData.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::TensorProto;

DenseElementsAttr lowtide::convertTensor(const TensorProto &tensor, MLIRContext *context, std::string &fault) {
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    fault = "is a tensor with external data";
    return {};
  }
  std::string bytes = embeddedBytes(tensor);
  ArrayRef<int64_t> dims(tensor.dims().data(), static_cast<size_t>(tensor.dims_size()));
  return buildElements(dims, tensor.data_type(), ArrayRef<char>(bytes.data(), bytes.size()), context);
}

Attribute lowtide::convertAttribute(const AttributeProto &attribute, Builder &builder, std::string &fault) {
  switch (attribute.type()) {
  case AttributeProto::INT:
    return builder.getI64IntegerAttr(attribute.i());
  case AttributeProto::FLOAT:
    return builder.getF32FloatAttr(attribute.f());
  case AttributeProto::STRING:
    return builder.getStringAttr(attribute.s());
  case AttributeProto::INTS:
    return builder.getDenseI64ArrayAttr({attribute.ints().data(), static_cast<size_t>(attribute.ints_size())});
  case AttributeProto::FLOATS:
    return builder.getDenseF32ArrayAttr({attribute.floats().data(), static_cast<size_t>(attribute.floats_size())});
  case AttributeProto::STRINGS: {
    SmallVector<Attribute> strings;
    for (const std::string &text : attribute.strings())
      strings.push_back(builder.getStringAttr(text));
    return builder.getArrayAttr(strings);
  }
  case AttributeProto::TENSOR:
    return convertTensor(attribute.t(), builder.getContext(), fault);
  case AttributeProto::TENSORS: {
    SmallVector<Attribute> tensors;
    for (const TensorProto &tensor : attribute.tensors()) {
      Attribute value = convertTensor(tensor, builder.getContext(), fault);
      if (!value)
        return {};
      tensors.push_back(value);
    }
    return builder.getArrayAttr(tensors);
  }
  default:
    fault = "has type " + AttributeProto::AttributeType_Name(attribute.type()) + ", which is not supported";
    return {};
  }
}
