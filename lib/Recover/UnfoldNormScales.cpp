//===- UnfoldNormScales.cpp - scales and biases of norms, without notes ----------===//
//
// PyTorch's old exporter writes norms out, and evaluates what the program does to their scales and biases first: 1 + w,
// or w with dimensions of one put around it, as group norm does. It names the result after the operator that reads it,
// and what was the parameter is seen from where it is read: after a division by some root, in a module that has no
// other scale. Optimizers that evaluate the same keep the name of what they evaluated.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Whether a tensor of this name may be what was made of a scale or a bias.
static bool isFormOfScale(StringRef name) {
  StringRef op = findEvaluatedOperator(name);
  return name.starts_with("onnx::Mul_") || name.starts_with("onnx::Add_") ||
         name.starts_with("onnx::LayerNormalization_") || op == "Add" || op == "Unsqueeze" || op == "Reshape";
}

/// Whether `node` normalizes, and reads its scale as `operand`.
static bool isNorm(const NodeProto &node, int operand) {
  return StringSwitch<bool>(node.op_type())
      .Cases({"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization"}, operand == 1)
      .Cases({"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}, operand == 2)
      .Default(false);
}

namespace {
/// An operator that reads an evaluated tensor, and the copy through which it does (null: none).
struct Reader {
  NodeProto *node;
  int operand;
  NodeProto *copy;
  std::string name; // of the parameter
};

class NormScales {
public:
  NormScales(UnfoldingGraph &graph, GraphProto &proto) : graph(graph) {
    int numNodes = proto.node_size();
    for (int i = 0; i != numNodes; ++i) {
      NodeProto &node = *proto.mutable_node(i);
      for (const std::string &output : node.output())
        producers[output] = &node;
      if (node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1 &&
          graph.find(node.input(0)))
        copies[node.output(0)] = &node;
    }
    for (int i = 0; i != numNodes; ++i) {
      NodeProto &node = *proto.mutable_node(i);
      for (int operand = 0; operand != node.input_size() && node.op_type() != "Identity"; ++operand) {
        NodeProto *copy = copies.lookup(node.input(operand));
        StringRef source = copy ? copy->input(0) : node.input(operand);
        if (isFormOfScale(source) && graph.find(source))
          readers[source].push_back({&node, operand, copy, ""});
      }
    }
  }

  /// Takes `tensor` apart if all that read it are norms.
  void unfold(const TensorProto &tensor);

private:
  bool isNormalized(StringRef value, StringRef module, int depth) const;
  bool fits(Reader &reader, bool isVector) const;

  UnfoldingGraph &graph;
  StringMap<SmallVector<Reader>> readers;
  StringMap<const NodeProto *> producers;
  StringMap<NodeProto *> copies;
  StringSet<> taken;
};
} // namespace

/// Whether `value` was divided by some root within `module`.
bool NormScales::isNormalized(StringRef value, StringRef module, int depth) const {
  const NodeProto *node = producers.lookup(value);
  if (!node || depth == 0 || findModulePath(*node).value_or("") != module)
    return false;
  if (StringSwitch<bool>(node->op_type())
          .Cases({"Sqrt", "ReduceL2", "LpNormalization", "InstanceNormalization"}, true)
          .Default(false))
    return true;
  bool passes =
      StringSwitch<bool>(node->op_type()).Cases({"Mul", "Div", "Cast", "Reciprocal", "Reshape"}, true).Default(false);
  return passes && any_of(node->input(), [&](StringRef input) { return isNormalized(input, module, depth - 1); });
}

/// Whether `reader` scales what is normalized, or adds to that.
bool NormScales::fits(Reader &reader, bool isVector) const {
  const NodeProto &node = *reader.node;
  StringRef source = node.input(reader.operand);
  std::string module = graph.getPaths().findOfValue(source).value_or(findModulePath(node).value_or(""));
  bool adds = node.op_type() == "Add";
  reader.name = module + (adds ? ".bias" : ".weight");
  if (isVector && isNorm(node, reader.operand) &&
      (findEvaluatedOperator(source) == "Add" || source.starts_with("onnx::LayerNormalization_")))
    return !module.empty() && !graph.find(reader.name) && !taken.contains(reader.name);
  return !module.empty() && (node.op_type() == "Mul" || (adds && !isVector)) && node.input_size() == 2 &&
         !graph.find(reader.name) && !producers.contains(reader.name) && !taken.contains(reader.name) &&
         isNormalized(node.input(1 - reader.operand), module, 6);
}

void NormScales::unfold(const TensorProto &tensor) {
  auto found = readers.find(tensor.name());
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end()), kept;
  for (int64_t dim : dims)
    if (dim != 1)
      kept.push_back(dim);
  if (found == readers.end() || kept.size() != 1 || tensor.data_type() != TensorProto::FLOAT)
    return;
  // A vector that was only moved would still be there under its own name.
  bool isVector = dims.size() == 1;
  if (!all_of(found->second, [&](Reader &reader) { return fits(reader, isVector); }))
    return;
  std::string bytes = isVector ? withoutOne(graph, tensor) : graph.read(tensor).value_or("");
  if (bytes.empty())
    return;
  UnfoldedSource source{tensor.name(), "", true};
  source.how = isVector ? "the exporter evaluated 1 + it as " + tensor.name()
                        : "the exporter put dimensions of one around it in " + tensor.name();
  for (Reader &reader : found->second) {
    if (!taken.insert(reader.name).second)
      continue; // the same module again
    graph.setModule(moduleOf(reader.name));
    graph.addInitializer(reader.name, kept, tensor.data_type(), bytes, source);
    // Those that were merged with the first have no place in the file.
    source.tensor = tensor.name() + "@" + reader.name;
    std::string value = isVector
                            ? graph.addNode("Add", {reader.name, graph.addNumber(1)})
                            : graph.addNode("Reshape", {reader.name, graph.addIntegers({int64_t(dims.size())}, dims)});
    for (Reader &other : found->second)
      if (other.name == reader.name)
        other.node->set_input(other.operand, value);
  }
  for (Reader &reader : found->second)
    if (reader.copy)
      reader.copy->set_input(0, reader.node->input(reader.operand));
  graph.remove(tensor);
}

void lowtide::unfoldNormScales(UnfoldingGraph &graph, GraphProto &proto) {
  NormScales scales(graph, proto);
  for (const TensorProto *tensor : map_to_vector(proto.initializer(), [](const TensorProto &t) { return &t; }))
    scales.unfold(*tensor);
}
