//===- ValueIndex.cpp - who makes, holds and reads the values of a graph ----------===//

#include "ValueIndex.h"

#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

ValueIndex::ValueIndex(const GraphProto &graph) : Makers(graph) {
  for (const TensorProto &tensor : graph.initializer())
    tensors[tensor.name()] = &tensor;
  for (const NodeProto &node : graph.node()) {
    if (node.op_type() == "Constant" && node.output_size() == 1)
      for (const auto &attribute : node.attribute())
        if (attribute.has_t())
          tensors[node.output(0)] = &attribute.t();
    for (const std::string &input : node.input())
      readers[input].push_back(&node);
  }
  for (const auto &output : graph.output())
    readers[output.name()].push_back(nullptr);
}

bool ValueIndex::isConstant(StringRef value) const {
  const NodeProto *maker = find(value);
  return maker ? maker->op_type() == "Constant" : tensors.contains(value);
}

template <typename T> static std::optional<double> readOne(const std::string &bytes) {
  T number;
  if (bytes.size() != sizeof(number))
    return std::nullopt;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return double(number);
}

std::optional<SmallVector<int64_t>> ValueIndex::findIntegers(StringRef value) const {
  if (const NodeProto *constant = find(value, "Constant", 0))
    for (const auto &attribute : constant->attribute())
      if (attribute.name() == "value_ints")
        return SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end());
  const TensorProto *tensor = findTensor(value);
  if (!tensor || tensor->data_location() == TensorProto::EXTERNAL || tensor->data_type() != TensorProto::INT64 ||
      tensor->dims_size() > 1)
    return std::nullopt;
  if (tensor->int64_data_size())
    return SmallVector<int64_t>(tensor->int64_data().begin(), tensor->int64_data().end());
  SmallVector<int64_t> values(tensor->raw_data().size() / sizeof(int64_t));
  std::memcpy(values.data(), tensor->raw_data().data(), values.size() * sizeof(int64_t));
  return values;
}

std::optional<double> ValueIndex::findNumber(StringRef value) const {
  const TensorProto *tensor = findTensor(value);
  if (!tensor || tensor->data_location() == TensorProto::EXTERNAL ||
      any_of(tensor->dims(), [](int64_t dim) { return dim != 1; }))
    return std::nullopt;
  if (tensor->data_type() == TensorProto::FLOAT)
    return readOne<float>(embeddedBytes(*tensor));
  if (tensor->data_type() == TensorProto::DOUBLE)
    return readOne<double>(embeddedBytes(*tensor));
  return std::nullopt;
}

std::optional<double> ValueIndex::evaluateNumber(StringRef value) const {
  const NodeProto *maker = find(value);
  if (!maker || maker->input_size() != 2 || (maker->op_type() != "Add" && maker->op_type() != "Div"))
    return findNumber(value);
  std::optional<double> left = evaluateNumber(maker->input(0)), right = evaluateNumber(maker->input(1));
  if (!left || !right)
    return std::nullopt;
  return maker->op_type() == "Add" ? *left + *right : *left / *right;
}

ArrayRef<const NodeProto *> ValueIndex::findReaders(StringRef value) const {
  auto found = readers.find(value);
  return found == readers.end() ? ArrayRef<const NodeProto *>() : ArrayRef<const NodeProto *>(found->second);
}
