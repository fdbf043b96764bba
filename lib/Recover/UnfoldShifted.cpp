//===- UnfoldShifted.cpp - scales kept as their difference from one --------------===//
//
// Gemma and its kin keep the scale of a norm as w and multiply by 1 + w, which exporters evaluate. Trained as a scale,
// it differs: weight decay draws w to zero, and not 1 + w. The number is not in the file; of a sum that multiplies it
// is taken to be one.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Whether operand `operand` of `node` multiplies.
static bool isScale(const NodeProto &node, int operand) {
  return StringSwitch<bool>(node.op_type())
      .Case("Mul", true)
      .Cases({"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "GroupNormalization",
              "InstanceNormalization", "BatchNormalization"},
             operand == 1)
      .Default(false);
}

std::string lowtide::withoutOne(const UnfoldingGraph &graph, const TensorProto &tensor) {
  std::string bytes = tensor.data_type() == TensorProto::FLOAT ? graph.read(tensor).value_or("") : "";
  for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, &bytes[at], sizeof(value));
    value -= 1;
    std::memcpy(&bytes[at], &value, sizeof(value));
  }
  return bytes;
}

bool lowtide::unfoldShifted(UnfoldingGraph &graph, const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  if (evaluated.parameters.size() != 1)
    return false;
  const std::string &name = evaluated.parameters.front()->target;
  int sums = operationName(tensor.name()) == "add";
  if (!sums && !movesElements(tensor.name()))
    return false;
  for (const std::string &source : evaluated.foldedFrom) {
    StringRef op = operationName(source);
    sums += op == "add";
    if (source != name && op != "add" && !op.starts_with("scalar_tensor_default") &&
        (isGather(source) || !movesElements(source)))
      return false;
  }
  bool isRead = false, scales = sums == 1;
  for (const NodeProto &node : graph.getGraph().node())
    for (auto [operand, input] : enumerate(node.input()))
      if (input == tensor.name()) {
        isRead = true;
        scales &= isScale(node, int(operand));
      }
  std::string bytes = isRead && scales ? withoutOne(graph, tensor) : "";
  if (bytes.empty())
    return false;
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  graph.setModule(moduleOf(name));
  graph.addInitializer(name, dims, tensor.data_type(), std::move(bytes),
                       {tensor.name(), "the exporter evaluated 1 + it as " + tensor.name(), true});
  graph.addNode("Add", {name, graph.addNumber(1)}, tensor.name());
  graph.remove(tensor);
  return true;
}
