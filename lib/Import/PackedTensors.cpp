//===- PackedTensors.cpp - tensors whose elements share bytes -------------===//

#include "PackedTensors.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace {

/// What codes of a float type mean besides sign, exponent and mantissa.
enum class Special {
  None,     ///< all are numbers
  Nan,      ///< all ones but for the sign: NaN
  Ieee,     ///< the largest exponent: infinities and NaN
  Unsigned, ///< the code of -0: NaN
};

/// How a float type divides its bits; without any exponent, the codes are whole numbers.
struct FloatFormat {
  int exponentBits = 0, mantissaBits = 0, bias = 0;
  Special special = Special::None;
};

struct PackedType {
  int32_t onnx;
  int64_t bits;
  bool isSigned;
  FloatFormat format = {};

  bool isFloat() const { return format.exponentBits != 0; }
};

constexpr PackedType packedTypes[] = {
    {TensorProto::INT4, 4, true},
    {TensorProto::UINT4, 4, false},
    {TensorProto::INT2, 2, true},
    {TensorProto::UINT2, 2, false},
    {TensorProto::FLOAT4E2M1, 4, true, {2, 1, 1, Special::None}},
    {TensorProto::FLOAT8E4M3FN, 8, true, {4, 3, 7, Special::Nan}},
    {TensorProto::FLOAT8E4M3FNUZ, 8, true, {4, 3, 8, Special::Unsigned}},
    {TensorProto::FLOAT8E5M2, 8, true, {5, 2, 15, Special::Ieee}},
    {TensorProto::FLOAT8E5M2FNUZ, 8, true, {5, 2, 16, Special::Unsigned}},
    {TensorProto::FLOAT8E8M0, 8, false, {8, 0, 127, Special::Nan}},
};

/// The number of a code.
float decode(const PackedType &type, uint32_t code) {
  const auto [exponentBits, mantissaBits, bias, special] = type.format;
  const uint32_t sign = type.isSigned ? code >> (type.bits - 1) : 0,
                 size = code & ((1u << (exponentBits + mantissaBits)) - 1);
  const uint32_t exponent = size >> mantissaBits, mantissa = size & ((1u << mantissaBits) - 1),
                 last = (1u << exponentBits) - 1;
  if ((special == Special::Nan && size == (1u << (exponentBits + mantissaBits)) - 1) ||
      (special == Special::Unsigned && sign && !size) || (special == Special::Ieee && exponent == last && mantissa))
    return std::numeric_limits<float>::quiet_NaN();
  double number = special == Special::Ieee && exponent == last ? std::numeric_limits<double>::infinity()
                  : exponent == 0 && type.isSigned
                      ? std::ldexp(double(mantissa), 1 - bias - mantissaBits)
                      : std::ldexp(double(mantissa | 1u << mantissaBits), int(exponent) - bias - mantissaBits);
  return float(sign ? -number : number);
}

/// The operator set that has BitwiseAnd.
constexpr int64_t firstBitwiseOpset = 18;

/// Fewer numbers than this are written out in f32, rather than looked up.
constexpr int64_t fewestLookedUp = 1024;

const PackedType *findPackedType(int32_t onnxType) {
  const auto *found = find_if(packedTypes, [&](const PackedType &type) { return type.onnx == onnxType; });
  return found == std::end(packedTypes) ? nullptr : found;
}

/// Writes the nodes that take one tensor apart, under names that begin with its own.
class Unpacking {
public:
  Unpacking(GraphProto &graph, StringRef tensor) : graph(graph), tensor(tensor.str()) {}

  std::string add(StringRef op, ArrayRef<std::string> inputs) {
    NodeProto &node = *graph.add_node();
    node.set_op_type(op.str());
    node.set_name(tensor + "/" + std::to_string(count));
    for (const std::string &input : inputs)
      node.add_input(input);
    node.add_output(tensor + "/" + std::to_string(count++));
    return node.output(0);
  }

  /// The node that made the last value.
  NodeProto &last() { return *graph.mutable_node(graph.node_size() - 1); }

  /// The numbers of all codes of a float type.
  std::string table(const PackedType &type) {
    TensorProto &made = *graph.add_initializer();
    made.set_name(tensor + "/" + std::to_string(count++));
    made.set_data_type(TensorProto::FLOAT);
    made.add_dims(int64_t(1) << type.bits);
    for (uint32_t code = 0; code != 1u << type.bits; ++code)
      made.add_float_data(decode(type, code));
    return made.name();
  }

  std::string constant(int32_t onnxType, ArrayRef<int64_t> values, bool isScalar = false) {
    TensorProto &made = *graph.add_initializer();
    made.set_name(tensor + "/" + std::to_string(count++));
    made.set_data_type(onnxType);
    if (!isScalar)
      made.add_dims(static_cast<int64_t>(values.size()));
    for (int64_t value : values)
      onnxType == TensorProto::INT64 ? made.add_int64_data(value) : made.add_int32_data(static_cast<int32_t>(value));
    return made.name();
  }

private:
  GraphProto &graph;
  std::string tensor;
  unsigned count = 0;
};

/// The value that stands for the tensor, whose bytes are an initializer of uint8 by now.
std::string unpack(Unpacking &u, StringRef name, const PackedType &type, ArrayRef<int64_t> dims, int64_t elements,
                   int64_t bytes) {
  const int64_t perByte = 8 / type.bits;
  const std::string mask = u.constant(TensorProto::UINT8, (int64_t(1) << type.bits) - 1, /*isScalar=*/true);
  const std::string column = u.constant(TensorProto::INT64, {bytes, 1});
  std::vector<std::string> parts;
  for (int64_t i = 0; i < perByte; ++i) {
    std::string part = name.str();
    if (i) {
      part = u.add("BitShift", {part, u.constant(TensorProto::UINT8, i * type.bits, /*isScalar=*/true)});
      auto &direction = *u.last().add_attribute();
      direction.set_name("direction"), direction.set_type(::onnx::AttributeProto::STRING), direction.set_s("RIGHT");
    }
    parts.push_back(u.add("Reshape", {u.add("BitwiseAnd", {part, mask}), column}));
  }
  std::string codes = u.add("Concat", parts);
  auto &axis = *u.last().add_attribute();
  axis.set_name("axis"), axis.set_type(::onnx::AttributeProto::INT), axis.set_i(1);
  codes = u.add("Reshape", {codes, u.constant(TensorProto::INT64, bytes * perByte)});
  if (bytes * perByte != elements)
    codes = u.add("Slice", {codes, u.constant(TensorProto::INT64, 0), u.constant(TensorProto::INT64, elements)});
  if (type.isSigned && !type.isFloat()) {
    // Two's complement: (c ⊕ h) − h, h the bit of the sign.
    const int64_t sign = int64_t(1) << (type.bits - 1);
    codes = u.add("BitwiseXor", {codes, u.constant(TensorProto::UINT8, sign, /*isScalar=*/true)});
    codes = u.add("Cast", {codes});
    auto &to = *u.last().add_attribute();
    to.set_name("to"), to.set_type(::onnx::AttributeProto::INT), to.set_i(TensorProto::INT8);
    codes = u.add("Sub", {codes, u.constant(TensorProto::INT8, sign, /*isScalar=*/true)});
  }
  return u.add("Reshape", {codes, u.constant(TensorProto::INT64, dims)});
}

/// The numbers of codes, as f32.
std::string lookUp(Unpacking &u, const std::string &codes, const PackedType &type) {
  std::string positions = u.add("Cast", {codes});
  auto &to = *u.last().add_attribute();
  to.set_name("to"), to.set_type(::onnx::AttributeProto::INT), to.set_i(TensorProto::INT32);
  return u.add("Gather", {u.table(type), positions});
}

/// Makes a tensor of a few float codes one of f32. Whether it could: its data are in the file.
bool writeOut(TensorProto &tensor, const PackedType &type, int64_t elements) {
  if (tensor.has_raw_data() == (tensor.int32_data_size() > 0))
    return false;
  const int64_t perByte = 8 / type.bits, bytes = llvm::divideCeil(elements, perByte);
  if ((tensor.has_raw_data() ? int64_t(tensor.raw_data().size()) : int64_t(tensor.int32_data_size())) != bytes)
    return false;
  std::vector<float> numbers;
  for (int64_t i = 0; i != elements; ++i) {
    const uint32_t byte = tensor.has_raw_data() ? uint8_t(tensor.raw_data()[size_t(i / perByte)])
                                                : uint32_t(tensor.int32_data(int(i / perByte)));
    numbers.push_back(decode(type, byte >> (i % perByte * type.bits) & ((1u << type.bits) - 1)));
  }
  tensor.clear_raw_data();
  tensor.clear_int32_data();
  tensor.set_data_type(TensorProto::FLOAT);
  tensor.mutable_float_data()->Add(numbers.begin(), numbers.end());
  return true;
}

/// Renames what nodes read, those of subgraphs that have no value of that name too.
void renameReads(GraphProto &graph, int numNodes, const StringMap<std::string> &names, bool isInner) {
  StringSet<> own;
  if (isInner) {
    for (const auto &input : graph.input())
      own.insert(input.name());
    for (const auto &tensor : graph.initializer())
      own.insert(tensor.name());
  }
  for (int i = 0; i != numNodes; ++i) {
    NodeProto &node = *graph.mutable_node(i);
    for (std::string &input : *node.mutable_input())
      if (auto found = names.find(input); found != names.end() && !own.contains(input))
        input = found->second;
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        renameReads(*attribute.mutable_g(), attribute.g().node_size(), names, /*isInner=*/true);
  }
}

} // namespace

void lowtide::unpackInitializers(GraphProto &graph, int64_t opset) {
  StringMap<std::string> unpacked;
  const int numNodes = graph.node_size();
  for (int i = 0, e = graph.initializer_size(); i != e; ++i) {
    TensorProto &tensor = *graph.mutable_initializer(i);
    const PackedType *type = findPackedType(tensor.data_type());
    std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    const std::optional<int64_t> elements = checkedElements(dims);
    if (!type || opset < (type->bits < 8 ? firstBitwiseOpset : 0) || !elements || !*elements)
      continue;
    if (type->isFloat() && *elements < fewestLookedUp) {
      writeOut(tensor, *type, *elements);
      continue;
    }
    const std::string name = tensor.name();
    Unpacking u(graph, name);
    tensor.set_data_type(TensorProto::UINT8);
    std::string codes = name;
    if (type->bits < 8) {
      const int64_t bytes = llvm::divideCeil(*elements, 8 / type->bits);
      tensor.clear_dims();
      tensor.add_dims(bytes);
      codes = unpack(u, name, *type, dims, *elements, bytes);
    }
    unpacked[name] = type->isFloat() ? lookUp(u, codes, *type) : codes;
  }
  renameReads(graph, numNodes, unpacked, /*isInner=*/false);
  auto &nodes = *graph.mutable_node();
  std::rotate(nodes.pointer_begin(), nodes.pointer_begin() + numNodes, nodes.pointer_end());
}
