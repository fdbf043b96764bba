//===- UnfoldNormScales.cpp - scales and biases of norms, without notes ----------===//
//
// PyTorch's old exporter writes norms out, and evaluates what the program does to their scales and biases first: 1 + w,
// or w with dimensions of one put around it, as group norm does. It names the result after the operator that reads it,
// and what was the parameter is seen from where it is read: after a division by some root, in a module that has no
// other scale. Optimizers that evaluate the same keep the name of what they evaluated.
//
// The old exporter numbers what it evaluates, one number for each operation: `onnx::Mul_1226` after `onnx::MatMul_1225`
// is one operation on a parameter. In a norm that converts its input that is a conversion, `self.weight.float()`, and
// with 1 + w there would be two.
//
//===----------------------------------------------------------------------===//

#include "TableValues.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <set>

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

/// The number of what the old exporter evaluated, 1226 of `onnx::Mul_1226`; nullopt for other names.
static std::optional<unsigned> findEvaluatedNumber(StringRef name) {
  unsigned number = 0;
  return name.consume_front("onnx::") && !name.rsplit('_').second.getAsInteger(10, number) ? std::optional(number)
                                                                                           : std::nullopt;
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
      for (const std::string &output : node.output()) {
        producers[output] = &node;
        // Cleaners remove conversions to the type that is there, and leave the result's name.
        if (findEvaluatedOperator(output) == "Cast")
          converting.insert(graph.getPaths().findOfValue(output).value_or(""));
      }
      if (node.op_type() == "Cast")
        converting.insert(findModulePath(node).value_or(""));
      if (node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1 &&
          graph.find(node.input(0)))
        copies[node.output(0)] = &node;
    }
    for (const TensorProto &tensor : proto.initializer())
      if (std::optional<unsigned> number = findEvaluatedNumber(tensor.name()))
        numbers.insert(*number);
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
  std::optional<float> findExponent(const NodeProto &node) const;
  bool isNormalized(StringRef value, StringRef module, int depth) const;
  bool fits(Reader &reader, bool isVector) const;
  /// How many operations made the tensor, one or two; nullopt: not known.
  std::optional<unsigned> countOperations(StringRef tensor) const;
  bool isConverted(const TensorProto &tensor) const;

  UnfoldingGraph &graph;
  StringMap<SmallVector<Reader>> readers;
  StringMap<const NodeProto *> producers;
  StringMap<NodeProto *> copies;
  StringSet<> taken, converting;
  std::set<unsigned> numbers;
};
} // namespace

/// The number that `node` takes a power of; nullopt: it is no number of the program, or no power.
std::optional<float> NormScales::findExponent(const NodeProto &node) const {
  if (node.op_type() != "Pow" || node.input_size() != 2)
    return std::nullopt;
  const NodeProto *made = producers.lookup(node.input(1));
  const TensorProto *number = made && made->op_type() == "Constant" && made->attribute_size() == 1
                                  ? &made->attribute(0).t()
                                  : graph.find(node.input(1));
  if (!number || number->data_type() != TensorProto::FLOAT)
    return std::nullopt;
  const std::vector<float> values =
      number->float_data_size() == 1 ? std::vector<float>{number->float_data(0)} : asFloats(number->raw_data());
  return values.size() == 1 ? std::optional(values.front()) : std::nullopt;
}

/// Whether `value` was divided by some root within `module`.
bool NormScales::isNormalized(StringRef value, StringRef module, int depth) const {
  const NodeProto *node = producers.lookup(value);
  if (!node || depth == 0 || findModulePath(*node).value_or("") != module)
    return false;
  if (StringSwitch<bool>(node->op_type())
          .Cases({"Sqrt", "ReduceL2", "LpNormalization", "InstanceNormalization"}, true)
          .Default(false) ||
      std::abs(findExponent(*node).value_or(0)) == 0.5f)
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

std::optional<unsigned> NormScales::countOperations(StringRef tensor) const {
  std::optional<unsigned> number = findEvaluatedNumber(tensor);
  for (unsigned before : {1U, 2U})
    if (number && *number >= before && numbers.count(*number - before))
      return before;
  return std::nullopt;
}

/// Whether the tensor is a scale that norms only converted, and did not add one to. Where the numbers before it are of
/// nothing in the file, others of its kind tell.
bool NormScales::isConverted(const TensorProto &tensor) const {
  auto convert = [&](StringRef name) {
    auto found = readers.find(name);
    return found != readers.end() && all_of(found->second, [&](const Reader &reader) {
             return reader.node->op_type() == "Mul" && converting.contains(findModulePath(*reader.node).value_or("-"));
           });
  };
  if (!findEvaluatedNumber(tensor.name()) || !convert(tensor.name()))
    return false;
  if (std::optional<unsigned> operations = countOperations(tensor.name()))
    return *operations == 1;
  return any_of(readers, [&](const auto &other) {
    const TensorProto *like = graph.find(other.first());
    return like && like->dims_size() == 1 && countOperations(other.first()) == 1U && convert(other.first());
  });
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
  const bool isShifted = isVector && !isConverted(tensor);
  std::string bytes = isShifted ? withoutOne(graph, tensor) : graph.read(tensor).value_or("");
  if (bytes.empty())
    return;
  UnfoldedSource source{tensor.name(), "", true};
  source.how = isShifted  ? "the exporter evaluated 1 + it as " + tensor.name()
               : isVector ? "the exporter evaluated one operation on it, a conversion, as " + tensor.name()
                          : "the exporter put dimensions of one around it in " + tensor.name();
  for (Reader &reader : found->second) {
    if (!taken.insert(reader.name).second)
      continue; // the same module again
    graph.setModule(moduleOf(reader.name));
    graph.addInitializer(reader.name, kept, tensor.data_type(), bytes, source);
    // Those that were merged with the first have no place in the file.
    source.tensor = tensor.name() + "@" + reader.name;
    std::string value = isShifted ? graph.addNode("Add", {reader.name, graph.addNumber(1)})
                        : isVector
                            ? graph.addNode("Cast", {reader.name})
                            : graph.addNode("Reshape", {reader.name, graph.addIntegers({int64_t(dims.size())}, dims)});
    if (isVector && !isShifted)
      graph.setAttribute("to", TensorProto::FLOAT);
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
