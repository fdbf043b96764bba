//===- PackedTensors.cpp - tensors whose elements share bytes -------------===//

#include "PackedTensors.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace {

struct PackedType {
  int32_t onnx;
  int64_t bits;
  bool isSigned;
};

constexpr PackedType packedTypes[] = {
    {TensorProto::INT4, 4, true},
    {TensorProto::UINT4, 4, false},
    {TensorProto::INT2, 2, true},
    {TensorProto::UINT2, 2, false},
};

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
std::string unpack(GraphProto &graph, StringRef name, const PackedType &type, ArrayRef<int64_t> dims, int64_t elements,
                   int64_t bytes) {
  Unpacking u(graph, name);
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
  if (type.isSigned) {
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

} // namespace

void lowtide::unpackInitializers(GraphProto &graph) {
  StringMap<std::string> unpacked;
  const int numNodes = graph.node_size();
  for (int i = 0, e = graph.initializer_size(); i != e; ++i) {
    TensorProto &tensor = *graph.mutable_initializer(i);
    const PackedType *type = findPackedType(tensor.data_type());
    std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    const std::optional<int64_t> elements = checkedElements(dims);
    if (!type || !elements || !*elements)
      continue;
    const int64_t bytes = llvm::divideCeil(*elements, 8 / type->bits);
    tensor.set_data_type(TensorProto::UINT8);
    tensor.clear_dims();
    tensor.add_dims(bytes);
    const std::string name = tensor.name();
    unpacked[name] = unpack(graph, name, *type, dims, *elements, bytes);
  }
  for (int i = 0; i != numNodes; ++i)
    for (std::string &input : *graph.mutable_node(i)->mutable_input())
      if (auto found = unpacked.find(input); found != unpacked.end())
        input = found->second;
  auto &nodes = *graph.mutable_node();
  std::rotate(nodes.pointer_begin(), nodes.pointer_begin() + numNodes, nodes.pointer_end());
}
