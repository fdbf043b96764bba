//===- TensorData.cpp - the numbers of a TensorProto
//------------------------------===//

#include "lowtide/OnnxModel/TensorData.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;
using namespace lowtide;
using ::onnx::TensorProto;

// Little-endian hosts only: bytes go through unchanged.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

static const ElementType elementTypes[] = {
    {TensorProto::FLOAT, "f32", 4},
    {TensorProto::UINT8, "ui8", 1},
    {TensorProto::INT8, "i8", 1},
    {TensorProto::UINT16, "ui16", 2},
    {TensorProto::INT16, "i16", 2},
    {TensorProto::INT32, "i32", 4},
    {TensorProto::INT64, "i64", 8},
    {TensorProto::STRING, "string", 0},
    {TensorProto::BOOL, "bool", 1},
    {TensorProto::FLOAT16, "f16", 2},
    {TensorProto::DOUBLE, "f64", 8},
    {TensorProto::UINT32, "ui32", 4},
    {TensorProto::UINT64, "ui64", 8},
    {TensorProto::COMPLEX64, "complex64", 0},
    {TensorProto::COMPLEX128, "complex128", 0},
    {TensorProto::BFLOAT16, "bf16", 2},
    {TensorProto::FLOAT8E4M3FN, "float8e4m3fn", 0},
    {TensorProto::FLOAT8E4M3FNUZ, "float8e4m3fnuz", 0},
    {TensorProto::FLOAT8E5M2, "float8e5m2", 0},
    {TensorProto::FLOAT8E5M2FNUZ, "float8e5m2fnuz", 0},
    {TensorProto::UINT4, "uint4", 0},
    {TensorProto::INT4, "int4", 0},
    {TensorProto::FLOAT4E2M1, "float4e2m1", 0},
    {TensorProto::FLOAT8E8M0, "float8e8m0", 0},
    {TensorProto::UINT2, "uint2", 0},
    {TensorProto::INT2, "int2", 0},
};

const ElementType *lowtide::findElementType(int32_t onnxType) {
  for (const ElementType &type : elementTypes)
    if (type.onnx == onnxType)
      return &type;
  return nullptr;
}

std::string lowtide::elementTypeName(int32_t onnxType) {
  const ElementType *type = findElementType(onnxType);
  return type ? type->name : ("type " + Twine(onnxType)).str();
}

Type lowtide::convertElementType(int32_t onnxType, MLIRContext *context) {
  Builder b(context);
  switch (onnxType) {
  case TensorProto::FLOAT:
    return b.getF32Type();
  case TensorProto::DOUBLE:
    return b.getF64Type();
  case TensorProto::FLOAT16:
    return b.getF16Type();
  case TensorProto::BFLOAT16:
    return b.getBF16Type();
  case TensorProto::BOOL:
    return b.getI1Type();
  case TensorProto::INT8:
  case TensorProto::INT16:
  case TensorProto::INT32:
  case TensorProto::INT64:
    return b.getIntegerType(findElementType(onnxType)->bytes * 8);
  case TensorProto::UINT8:
  case TensorProto::UINT16:
  case TensorProto::UINT32:
  case TensorProto::UINT64:
    return IntegerType::get(context, findElementType(onnxType)->bytes * 8, IntegerType::Unsigned);
  default:
    return {};
  }
}

bool lowtide::isFloatType(int32_t onnxType) {
  return onnxType == TensorProto::FLOAT || onnxType == TensorProto::DOUBLE || onnxType == TensorProto::FLOAT16 ||
         onnxType == TensorProto::BFLOAT16;
}

bool lowtide::isIntegerType(int32_t onnxType) {
  const ElementType *type = findElementType(onnxType);
  return type && type->bytes && !isFloatType(onnxType);
}

std::optional<int64_t> lowtide::checkedElements(ArrayRef<int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims)
    if (dim < 0)
      return std::nullopt;
  // A zero anywhere makes the product zero, but the other factors must still be
  // sane.
  bool empty = false;
  for (int64_t dim : dims) {
    empty |= dim == 0;
    if (llvm::MulOverflow(product, dim ? dim : int64_t(1), product))
      return std::nullopt;
  }
  return empty ? 0 : product;
}

std::optional<uint64_t> lowtide::checkedBytes(int64_t elements, int32_t onnxType) {
  const ElementType *type = findElementType(onnxType);
  int64_t bytes;
  if (!type || !type->bytes || elements < 0 || llvm::MulOverflow(elements, int64_t(type->bytes), bytes))
    return std::nullopt;
  return uint64_t(bytes);
}

static ArrayRef<int64_t> dimsOf(const TensorProto &tensor) {
  return {tensor.dims().data(), static_cast<size_t>(tensor.dims_size())};
}

/// Entries of the typed field that holds elements of `tensor`'s type.
static int64_t countTypedEntries(const TensorProto &tensor) {
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    return tensor.float_data_size();
  case TensorProto::DOUBLE:
    return tensor.double_data_size();
  case TensorProto::INT64:
    return tensor.int64_data_size();
  case TensorProto::UINT32:
  case TensorProto::UINT64:
    return tensor.uint64_data_size();
  default:
    return tensor.int32_data_size();
  }
}

std::string lowtide::findSizeMismatch(const TensorProto &tensor) {
  std::optional<int64_t> elements = checkedElements(dimsOf(tensor));
  std::optional<uint64_t> bytes = elements ? checkedBytes(*elements, tensor.data_type()) : std::nullopt;
  if (!bytes)
    return "a shape whose size leaves 63 bits";
  if (tensor.data_location() == TensorProto::EXTERNAL)
    return "";
  if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() == *bytes)
      return "";
    return (Twine(tensor.raw_data().size()) + " bytes of data where its shape needs " + Twine(*bytes)).str();
  }
  int64_t entries = countTypedEntries(tensor);
  if (entries == *elements)
    return "";
  return (Twine(entries) + " elements of data where its shape needs " + Twine(*elements)).str();
}

template <typename To, typename Field> static std::string packField(const Field &field) {
  std::string bytes(size_t(field.size()) * sizeof(To), '\0');
  for (int i = 0, e = field.size(); i != e; ++i) {
    To value = static_cast<To>(field[i]);
    std::memcpy(bytes.data() + size_t(i) * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

std::string lowtide::embeddedBytes(const TensorProto &tensor) {
  if (tensor.has_raw_data())
    return tensor.raw_data();
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    return packField<float>(tensor.float_data());
  case TensorProto::DOUBLE:
    return packField<double>(tensor.double_data());
  case TensorProto::INT64:
    return packField<int64_t>(tensor.int64_data());
  case TensorProto::UINT64:
    return packField<uint64_t>(tensor.uint64_data());
  case TensorProto::UINT32:
    return packField<uint32_t>(tensor.uint64_data());
  default:
    break;
  }
  // The rest lives in int32_data, f16 and bf16 as bit patterns.
  const ElementType *type = findElementType(tensor.data_type());
  switch (type ? type->bytes : 0) {
  case 1:
    return packField<uint8_t>(tensor.int32_data());
  case 2:
    return packField<uint16_t>(tensor.int32_data());
  case 4:
    return packField<int32_t>(tensor.int32_data());
  default:
    return "";
  }
}

DenseElementsAttr lowtide::buildElements(ArrayRef<int64_t> dims, int32_t onnxType, ArrayRef<char> bytes,
                                         MLIRContext *context) {
  auto type = RankedTensorType::get(dims, convertElementType(onnxType, context));
  if (onnxType == TensorProto::BOOL) {
    SmallVector<bool> values;
    for (char byte : bytes)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}
