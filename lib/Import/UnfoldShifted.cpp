//===- UnfoldShifted.cpp - scales kept as their difference from one --------------===//
//
// Gemma and its kin keep the scale of a norm as w and multiply by 1 + w, which exporters evaluate. Trained as a scale,
// it differs: weight decay draws w to zero, and not 1 + w. The number is not in the file; of a sum that multiplies it
// is taken to be one.
//
//===----------------------------------------------------------------------===//

#include "TensorData.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
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

/// The f32 values of `tensor`, less one; empty where they cannot be read.
static std::string withoutOne(const UnfoldingGraph &graph, const TensorProto &tensor) {
  std::string bytes = tensor.data_type() == TensorProto::FLOAT ? graph.read(tensor).value_or("") : "";
  for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, &bytes[at], sizeof(value));
    value -= 1;
    std::memcpy(&bytes[at], &value, sizeof(value));
  }
  return bytes;
}

/// What is said of a parameter that makes `into`.
static UnfoldedSource sourceIn(StringRef tensor, StringRef into) {
  return {into.str(), "the exporter evaluated 1 + it as " + tensor.str(), {}, {"plus one"}, true};
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
  graph.addInitializer(name, dims, tensor.data_type(), std::move(bytes), sourceIn(tensor.name(), tensor.name()));
  graph.addNode("Add", {name, graph.addNumber(1)}, tensor.name());
  graph.remove(tensor);
  return true;
}

namespace {
/// A multiplication by an evaluated scale, and the copy through which it reads it (null: none).
struct Reader {
  NodeProto *node;
  int operand;
  NodeProto *copy;
  std::string name; // of the parameter
};
} // namespace

/// Whether `value` was divided by some root within `module`.
static bool isNormalized(const StringMap<const NodeProto *> &producers, StringRef value, StringRef module, int depth) {
  const NodeProto *node = producers.lookup(value);
  if (!node || depth == 0 || findModulePath(*node).value_or("") != module)
    return false;
  if (StringSwitch<bool>(node->op_type()).Cases({"Sqrt", "ReduceL2", "LpNormalization"}, true).Default(false))
    return true;
  bool passes = StringSwitch<bool>(node->op_type()).Cases({"Mul", "Div", "Cast", "Reciprocal"}, true).Default(false);
  return passes &&
         any_of(node->input(), [&](StringRef input) { return isNormalized(producers, input, module, depth - 1); });
}

void lowtide::unfoldShiftedScales(UnfoldingGraph &graph, GraphProto &proto) {
  // PyTorch's old exporter names what it evaluates after the operator that reads it.
  constexpr StringRef prefix = "onnx::Mul_";
  StringMap<SmallVector<Reader>> readers;
  StringMap<const NodeProto *> producers;
  StringMap<NodeProto *> copies;
  int numNodes = proto.node_size();
  for (int i = 0; i != numNodes; ++i) {
    NodeProto &node = *proto.mutable_node(i);
    for (const std::string &output : node.output())
      producers[output] = &node;
    if (node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1 && graph.find(node.input(0)))
      copies[node.output(0)] = &node;
  }
  for (int i = 0; i != numNodes; ++i) {
    NodeProto &node = *proto.mutable_node(i);
    for (int operand = 0; operand != node.input_size(); ++operand) {
      NodeProto *copy = copies.lookup(node.input(operand));
      StringRef source = copy ? copy->input(0) : node.input(operand);
      if (source.starts_with(prefix) && graph.find(source) && copies.lookup(node.output(0)) != &node)
        readers[source].push_back({&node, operand, copy, ""});
    }
  }
  StringSet<> taken;
  for (const TensorProto *tensor : map_to_vector(proto.initializer(), [](const TensorProto &t) { return &t; })) {
    auto found = readers.find(tensor->name());
    if (found == readers.end() || tensor->dims_size() != 1 || tensor->dims(0) < 2)
      continue;
    bool fits = all_of(found->second, [&](Reader &reader) {
      std::string module = findModulePath(*reader.node).value_or("");
      reader.name = module + ".weight";
      return !module.empty() && isScale(*reader.node, reader.operand) && reader.node->input_size() == 2 &&
             !graph.find(reader.name) && !producers.contains(reader.name) && !taken.contains(reader.name) &&
             isNormalized(producers, reader.node->input(1 - reader.operand), module, 6);
    });
    std::string bytes = fits ? withoutOne(graph, *tensor) : "";
    if (bytes.empty())
      continue;
    SmallVector<int64_t> dims(tensor->dims().begin(), tensor->dims().end());
    std::string into = tensor->name();
    for (Reader &reader : found->second) {
      if (!taken.insert(reader.name).second)
        continue; // the same module again
      graph.setModule(moduleOf(reader.name));
      // Those that were merged with the first have no place in the file.
      graph.addInitializer(reader.name, dims, tensor->data_type(), bytes, sourceIn(tensor->name(), into));
      into = tensor->name() + "@" + reader.name;
      std::string sum = graph.addNode("Add", {reader.name, graph.addNumber(1)});
      for (Reader &other : found->second)
        if (other.name == reader.name)
          other.node->set_input(other.operand, sum);
    }
    for (Reader &reader : found->second)
      if (reader.copy)
        reader.copy->set_input(0, reader.node->input(reader.operand));
    graph.remove(*tensor);
  }
}
