//===- UnfoldRecurrent.cpp - weights of recurrent layers -------------------------===//
//
// PyTorch keeps four tensors per layer and direction, gates in its own order: weight_ih, weight_hh, bias_ih, bias_hh.
// ONNX's operators read three per layer, gates in another order, directions stacked, the two biases joined.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// PyTorch's number of the gate that ONNX has at each place; empty for other operators.
static ArrayRef<int64_t> gateOrder(StringRef op) {
  static const int64_t lstm[] = {0, 3, 1, 2}; // i o f c of i f c o
  static const int64_t gru[] = {1, 0, 2};     // z r h of r z h
  static const int64_t rnn[] = {0};
  if (op == "LSTM")
    return lstm;
  if (op == "GRU")
    return gru;
  return op == "RNN" ? ArrayRef<int64_t>(rnn) : ArrayRef<int64_t>();
}

/// Framework names of what the operand joins, in the order in which it does: all of the forward direction, then all of
/// the other.
static SmallVector<std::string> partNames(int operand, int64_t directions, const Twine &prefix, int64_t layer) {
  SmallVector<std::string> names;
  for (int64_t direction = 0; direction != directions; ++direction) {
    std::string suffix = "_l" + std::to_string(layer) + (direction ? "_reverse" : "");
    if (operand == 3) {
      names.push_back((prefix + "bias_ih" + suffix).str());
      names.push_back((prefix + "bias_hh" + suffix).str());
    } else {
      names.push_back((prefix + (operand == 1 ? "weight_ih" : "weight_hh") + suffix).str());
    }
  }
  return names;
}

/// `3` of `rnn.weight_ih_l3_reverse`; -1: not such a name.
static int64_t layerOf(StringRef name) {
  StringRef number = leafOf(name).rsplit("_l").second;
  number.consume_back("_reverse");
  int64_t layer = -1;
  return number.getAsInteger(10, layer) ? -1 : layer;
}

/// `/encoder/rnn/LSTM_1` is its module's second layer; operators of one layer are not numbered.
static int64_t layerOfNode(const NodeProto &node) {
  StringRef number = StringRef(node.name()).rsplit('/').second;
  int64_t layer = 0;
  if (!number.consume_front(node.op_type()) || !number.consume_front("_") || number.getAsInteger(10, layer))
    return 0;
  return layer;
}

bool lowtide::unfoldRecurrent(UnfoldingGraph &graph, const NodeProto &node, int operand, const Evaluated *evaluated) {
  ArrayRef<int64_t> gates = gateOrder(node.op_type());
  const TensorProto *tensor =
      operand >= 1 && operand <= 3 && operand < node.input_size() ? graph.find(node.input(operand)) : nullptr;
  if (gates.empty() || !tensor || graph.isRemoved(tensor->name()) || !isFloatType(tensor->data_type()) ||
      tensor->dims_size() != (operand == 3 ? 2 : 3))
    return false;
  int64_t directions = tensor->dims(0), numGates = gates.size();
  int64_t rows = operand == 3 ? tensor->dims(1) / 2 : tensor->dims(1); // of one part
  int64_t hidden = rows / numGates, width = operand == 3 ? 1 : tensor->dims(2);
  std::string prefix;
  int64_t layer = layerOfNode(node);
  if (evaluated) {
    StringRef module = moduleOf(evaluated->parameters.front()->target);
    prefix = module.empty() ? "" : module.str() + ".";
    layer = layerOf(evaluated->parameters.front()->target);
  } else if (auto module = findModulePath(node); module && !module->empty()) {
    prefix = *module + ".";
  }
  SmallVector<std::string> names = partNames(operand, directions, prefix, layer);
  if (evaluated) {
    // What it was computed from is exactly what such an operand joins.
    if (evaluated->parameters.size() != names.size() || hidden * numGates != rows)
      return false;
    for (const SignatureEntry *entry : evaluated->parameters)
      if (!is_contained(names, entry->target))
        return false;
  }
  std::optional<std::string> bytes = graph.read(*tensor);
  if (!bytes || hidden * numGates != rows || any_of(names, [&](const std::string &name) { return graph.find(name); }))
    return false;

  SmallVector<UnfoldedPart> parts;
  for (auto [i, name] : enumerate(names)) {
    UnfoldedPart part{name, {rows}, std::vector<int64_t>(names.size() * rows * width, -1)};
    if (operand != 3)
      part.dims.push_back(width);
    int64_t *at = part.map.data() + i * rows * width;
    for (int64_t gate : gates)
      for (int64_t j = 0; j != hidden * width; ++j)
        *at++ = gate * hidden * width + j;
    parts.push_back(std::move(part));
  }
  graph.setModule(StringRef(prefix).drop_back(prefix.empty() ? 0 : 1));
  graph.addParts(*tensor, *bytes, parts, "the exporter reordered its gates and joined it in", !evaluated);
  SmallVector<int64_t> order;
  for (int64_t gate : gates)
    for (int64_t j = 0; j != hidden; ++j)
      order.push_back(gate * hidden + j);
  SmallVector<std::string> ordered;
  for (const std::string &name : names)
    ordered.push_back(numGates == 1 ? name : graph.addNode("Gather", {name, graph.addIntegers({rows}, order)}));
  std::string joined = ordered.front();
  if (ordered.size() > 1) {
    joined = graph.addNode("Concat", ordered);
    graph.setAttribute("axis", 0);
  }
  SmallVector<int64_t> dims(tensor->dims().begin(), tensor->dims().end());
  std::string shape = graph.addIntegers({int64_t(dims.size())}, dims);
  graph.addNode("Reshape", {joined, shape}, tensor->name());
  graph.remove(*tensor);
  return true;
}

/// `/net/rnn/GRU` of `/net/rnn_1/GRU`, as PyTorch's old exporter calls the nodes of a module's second run; empty for
/// other names.
static std::string findFirstRun(StringRef name) {
  auto [scope, op] = name.rsplit('/');
  auto [module, number] = scope.rsplit('_');
  if (op.empty() || module.empty() || number.empty() || !all_of(number, isDigit))
    return "";
  return (module + "/" + op).str();
}

void lowtide::joinRepeatedRecurrent(UnfoldingGraph &graph, ::onnx::GraphProto &proto) {
  StringMap<int> nodes;
  for (auto [i, node] : enumerate(proto.node()))
    if (!gateOrder(node.op_type()).empty())
      nodes[node.name()] = int(i);
  constexpr int first = 1, last = 3;
  auto nameOf = [](const NodeProto &node, int operand) -> StringRef {
    return operand < node.input_size() ? StringRef(node.input(operand)) : "";
  };
  auto isEvaluated = [&](StringRef name) { return isEvaluatedName(name) && graph.find(name); };
  for (const auto &entry : nodes) {
    auto found = nodes.find(findFirstRun(entry.getKey()));
    if (found == nodes.end())
      continue;
    const NodeProto &run = proto.node(found->second);
    NodeProto &again = *proto.mutable_node(entry.second);
    // Layers that began as copies of each other have other names. One that is called so and was copied is taken for the
    // same: its parameters are assumed, and warned about, as all of these are.
    bool areEqual = run.op_type() == again.op_type();
    for (int operand = first; areEqual && operand <= last; ++operand) {
      if (operand == last && nameOf(run, operand).empty() && nameOf(again, operand).empty())
        continue; // no bias
      areEqual = isEvaluated(nameOf(run, operand)) && isEvaluated(nameOf(again, operand));
      if (!areEqual || run.input(operand) == again.input(operand))
        continue;
      const TensorProto &one = *graph.find(run.input(operand)), &other = *graph.find(again.input(operand));
      std::optional<std::string> bytes = graph.read(one);
      areEqual = bytes && one.data_type() == other.data_type() &&
                 std::equal(one.dims().begin(), one.dims().end(), other.dims().begin(), other.dims().end()) &&
                 bytes == graph.read(other);
    }
    for (int operand = first; areEqual && operand <= last; ++operand)
      if (nameOf(again, operand) != nameOf(run, operand)) {
        graph.remove(*graph.find(again.input(operand)));
        again.set_input(operand, run.input(operand));
      }
  }
}

bool lowtide::unfoldSingleBias(UnfoldingGraph &graph, const NodeProto &node) {
  constexpr int operand = 3;
  ArrayRef<int64_t> gates = gateOrder(node.op_type());
  const TensorProto *tensor = operand < node.input_size() ? graph.find(node.input(operand)) : nullptr;
  // The one layer that has two, Keras's GRU with reset_after.
  if (any_of(node.attribute(), [](const auto &a) { return a.name() == "linear_before_reset" && a.i(); }))
    return false;
  if (gates.empty() || !tensor || graph.isRemoved(tensor->name()) || !isFloatType(tensor->data_type()) ||
      tensor->dims_size() != 2)
    return false;
  std::optional<std::string> bytes = graph.read(*tensor);
  const int64_t directions = tensor->dims(0), both = tensor->dims(1), rows = both / 2;
  if (!bytes || directions * both == 0)
    return false;
  const size_t width = bytes->size() / size_t(directions * both);
  UnfoldedPart part{tensor->name() + "/bias", {directions, rows}, {}};
  for (int64_t direction = 0; direction != directions; ++direction) {
    StringRef second = StringRef(*bytes).substr(size_t(direction * both + rows) * width, size_t(rows) * width);
    if (any_of(second, [](char byte) { return byte != 0; }))
      return false; // a bias of its own
    for (int64_t i = 0; i != both; ++i)
      part.map.push_back(i < rows ? direction * rows + i : -1);
  }
  graph.addParts(*tensor, *bytes, part, "the exporter put zeros after it in", false);
  graph.addNode("Pad", {part.name, graph.addIntegers({4}, {0, 0, 0, rows})}, tensor->name());
  graph.remove(*tensor);
  return true;
}
