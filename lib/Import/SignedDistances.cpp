//===- SignedDistances.cpp - distances that lost their absolute values ------------===//
//
// The distance of order p is the p-th root of the sum of |a - b|^p. PyTorch's old exporter writes (a - b)^p, which is
// the same at even orders only. A program that means the powers themselves takes no root of their sum.
//
//===----------------------------------------------------------------------===//

#include "SignedDistances.h"

#include "Evidence.h"

#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <cstring>
#include <optional>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// The only number of a tensor of floats; nullopt: there are several, or it is of another type.
static std::optional<double> findNumber(const TensorProto &tensor) {
  const bool isFloat = tensor.data_type() == TensorProto::FLOAT;
  for (int64_t dim : tensor.dims())
    if (dim != 1)
      return std::nullopt;
  if (isFloat && tensor.float_data_size() == 1)
    return tensor.float_data(0);
  float single;
  double twice;
  if (isFloat && tensor.raw_data().size() == sizeof(single)) {
    std::memcpy(&single, tensor.raw_data().data(), sizeof(single));
    return single;
  }
  if (tensor.data_type() != TensorProto::DOUBLE || tensor.raw_data().size() != sizeof(twice))
    return std::nullopt;
  std::memcpy(&twice, tensor.raw_data().data(), sizeof(twice));
  return twice;
}

std::vector<std::string> lowtide::findSignedDistances(const GraphProto &graph) {
  StringMap<const NodeProto *> makers;
  StringMap<double> numbers;
  auto note = [&](StringRef name, const TensorProto &tensor) {
    if (std::optional<double> number = findNumber(tensor))
      numbers[name] = *number;
  };
  for (const TensorProto &tensor : graph.initializer())
    note(tensor.name(), tensor);
  for (const NodeProto &node : graph.node()) {
    for (const std::string &output : node.output())
      makers[output] = &node;
    if (node.op_type() == "Constant" && node.attribute_size() == 1 && node.attribute(0).has_t())
      note(node.output(0), node.attribute(0).t());
  }
  auto make = [&](StringRef value, StringRef op) -> const NodeProto * {
    const NodeProto *node = makers.lookup(value);
    return node && node->op_type() == op && node->input_size() ? node : nullptr;
  };
  std::vector<std::string> found;
  for (const NodeProto &root : graph.node()) {
    if (root.op_type() != "Pow" || root.input_size() != 2 || !findProgramNote(root).empty())
      continue;
    const NodeProto *sum = make(root.input(0), "ReduceSum");
    const NodeProto *power = sum ? make(sum->input(0), "Pow") : nullptr;
    if (!power || !make(power->input(0), "Sub"))
      continue;
    auto order = numbers.find(power->input(1)), inverse = numbers.find(root.input(1));
    if (order == numbers.end() || inverse == numbers.end() || order->second == 0)
      continue;
    const bool isRoot = std::abs(inverse->second - 1 / order->second) < 1e-6;
    if (isRoot && std::fmod(order->second, 2) != 0)
      found.push_back(root.output(0));
  }
  return found;
}
