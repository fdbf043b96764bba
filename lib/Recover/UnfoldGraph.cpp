//===- UnfoldGraph.cpp - new nodes and initializers of a graph -------------------===//

#include "Unfold.h"

#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

static void collectNames(const GraphProto &graph, StringSet<> &names) {
  for (const auto &input : graph.input())
    names.insert(input.name());
  for (const TensorProto &tensor : graph.initializer())
    names.insert(tensor.name());
  for (const NodeProto &node : graph.node()) {
    for (const std::string &output : node.output())
      names.insert(output);
    for (const AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        collectNames(attribute.g(), names);
      for (const GraphProto &inner : attribute.graphs())
        collectNames(inner, names);
    }
  }
}

static std::optional<std::string> readNothing(const TensorProto &) { return std::nullopt; }

UnfoldingGraph::UnfoldingGraph(GraphProto &graph) : UnfoldingGraph(graph, readNothing) {}

UnfoldingGraph::UnfoldingGraph(GraphProto &graph, TensorReader read)
    : graph(graph), paths(graph), reader(read), numOldNodes(graph.node_size()) {
  for (const TensorProto &tensor : graph.initializer())
    initializers[tensor.name()] = &tensor;
  for (const NodeProto &node : graph.node())
    for (auto [operand, input] : enumerate(node.input()))
      if (initializers.contains(input) && node.output_size())
        reads[input].push_back({node.output(0), int(operand)});
  collectNames(graph, names);
}

std::string UnfoldingGraph::makeName() {
  std::string name;
  do
    name = "unfolded_" + std::to_string(counter++);
  while (!names.insert(name).second);
  return name;
}

std::string UnfoldingGraph::addNode(StringRef op, ArrayRef<std::string> inputs, StringRef output) {
  NodeProto &node = *graph.add_node();
  node.set_op_type(op.str());
  for (const std::string &input : inputs)
    node.add_input(input);
  std::string result = output.empty() ? makeName() : output.str();
  node.add_output(result);
  // In the exporter's own words, so that the node's module is found as that of any other.
  auto &scopes = *node.add_metadata_props();
  scopes.set_key(moduleScopesKey.str());
  scopes.set_value(module.empty() ? "['', 'unfolded']" : "['', '" + module + "', 'unfolded']");
  return result;
}

void UnfoldingGraph::insertNode(int position, ::onnx::NodeProto node) {
  *graph.add_node() = std::move(node);
  auto &nodes = *graph.mutable_node();
  std::rotate(nodes.pointer_begin() + position, nodes.pointer_end() - 1, nodes.pointer_end());
  ++numOldNodes;
}

void UnfoldingGraph::setAttribute(StringRef name, int64_t value) {
  AttributeProto &attribute = *graph.mutable_node(graph.node_size() - 1)->add_attribute();
  attribute.set_name(name.str());
  attribute.set_type(AttributeProto::INT);
  attribute.set_i(value);
}

void UnfoldingGraph::setAttribute(StringRef name, ArrayRef<int64_t> values) {
  AttributeProto &attribute = *graph.mutable_node(graph.node_size() - 1)->add_attribute();
  attribute.set_name(name.str());
  attribute.set_type(AttributeProto::INTS);
  for (int64_t value : values)
    attribute.add_ints(value);
}

void UnfoldingGraph::setAttribute(StringRef name, StringRef text) {
  AttributeProto &attribute = *graph.mutable_node(graph.node_size() - 1)->add_attribute();
  attribute.set_name(name.str());
  attribute.set_type(AttributeProto::STRING);
  attribute.set_s(text.str());
}

TensorProto &UnfoldingGraph::addConstant(ArrayRef<int64_t> dims, int32_t dataType, std::string &name) {
  name = addNode("Constant", {});
  AttributeProto &attribute = *graph.mutable_node(graph.node_size() - 1)->add_attribute();
  attribute.set_name("value");
  attribute.set_type(AttributeProto::TENSOR);
  TensorProto &tensor = *attribute.mutable_t();
  tensor.set_data_type(dataType);
  for (int64_t dim : dims)
    tensor.add_dims(dim);
  return tensor;
}

std::string UnfoldingGraph::addIntegers(ArrayRef<int64_t> dims, ArrayRef<int64_t> values) {
  std::string name;
  addConstant(dims, TensorProto::INT64, name).set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return name;
}

std::string UnfoldingGraph::addNumbers(ArrayRef<int64_t> dims, ArrayRef<float> values) {
  std::string name;
  addConstant(dims, TensorProto::FLOAT, name).set_raw_data(values.data(), values.size() * sizeof(float));
  return name;
}

std::string UnfoldingGraph::addTruth(bool value) {
  std::string name;
  addConstant({}, TensorProto::BOOL, name).add_int32_data(value);
  return name;
}

std::string UnfoldingGraph::addNumber(float value) {
  std::string name;
  addConstant({}, TensorProto::FLOAT, name).set_raw_data(&value, sizeof(value));
  return name;
}

void UnfoldingGraph::addMasked(const TensorProto &tensor, StringRef bytes, ArrayRef<int64_t> map,
                               const std::string &value) {
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  std::string rest, condition, masked;
  for (int64_t element : map)
    rest.push_back(element < 0);
  addConstant(dims, TensorProto::BOOL, condition).set_raw_data(std::move(rest));
  addConstant(dims, tensor.data_type(), masked).set_raw_data(bytes.str());
  addNode("Where", {condition, masked, value}, tensor.name());
}

void UnfoldingGraph::addInitializer(StringRef name, ArrayRef<int64_t> dims, int32_t dataType, std::string bytes,
                                    UnfoldedSource source) {
  TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(name.str());
  tensor.set_data_type(dataType);
  for (int64_t dim : dims)
    tensor.add_dims(dim);
  tensor.set_raw_data(std::move(bytes));
  initializers[name] = &tensor;
  names.insert(name);
  added.insert(name);
  sources[name] = std::move(source);
}

void UnfoldingGraph::assume(StringRef name, StringRef why) {
  auto source = sources.find(name);
  if (source == sources.end() || source->second.isAssumed)
    return;
  source->second.how += why;
  source->second.isAssumed = true;
}

void UnfoldingGraph::addCopy(const TensorProto &tensor, StringRef name, std::string bytes, const std::string &from,
                             const std::string &to) {
  TensorProto &copy = *graph.add_initializer();
  for (int64_t dim : tensor.dims())
    copy.add_dims(dim);
  copy.set_data_type(tensor.data_type());
  copy.set_name(name.str());
  copy.set_raw_data(std::move(bytes));
  initializers[name] = &copy;
  names.insert(name);
  added.insert(name);
  // The exporter's note about where it came from goes with it.
  for (const auto &value : graph.value_info())
    if (value.name() == tensor.name()) {
      auto *note = graph.add_value_info();
      note->CopyFrom(value);
      note->set_name(name.str());
      for (auto &prop : *note->mutable_metadata_props())
        if (size_t at = prop.value().find("'" + from + "'"); at != std::string::npos)
          prop.mutable_value()->replace(at + 1, from.size(), to);
      break;
    }
}

void UnfoldingGraph::addEvaluated(StringRef name, ArrayRef<int64_t> dims, int32_t dataType, std::string bytes,
                                  ArrayRef<std::string> foldedFrom) {
  addInitializer(name, dims, dataType, std::move(bytes), {});
  sources.erase(name);
  auto &note = *graph.add_value_info();
  note.set_name(name.str());
  setFoldedFrom(note, foldedFrom);
}

void UnfoldingGraph::addParts(const TensorProto &tensor, StringRef bytes, ArrayRef<UnfoldedPart> parts, StringRef how,
                              bool isAssumed) {
  size_t width = findElementType(tensor.data_type())->bytes;
  for (const UnfoldedPart &part : parts) {
    // Elements that the tensor does not hold are not known, and nothing reads them.
    std::string data(size_t(*checkedElements(part.dims)) * width, '\0');
    for (auto [i, element] : enumerate(part.map))
      if (element >= 0)
        std::memcpy(&data[size_t(element) * width], bytes.data() + i * width, width);
    UnfoldedSource source{tensor.name(), (how + " " + tensor.name()).str(), isAssumed};
    addInitializer(part.name, part.dims, tensor.data_type(), std::move(data), std::move(source));
  }
}

void UnfoldingGraph::addConverted(const TensorProto &tensor, const UnfoldedPart &part, int32_t type,
                                  StringRef converted, StringRef how, bool isAssumed) {
  size_t width = findElementType(type)->bytes;
  std::string data = converted.str();
  for (auto [i, element] : enumerate(part.map))
    std::memcpy(&data[size_t(element) * width], converted.data() + i * width, width);
  addInitializer(part.name, part.dims, type, std::move(data),
                 {tensor.name(), (how + " " + tensor.name()).str(), isAssumed});
}

/// What makes a value, past nodes that hand it on.
static StringRef findOrigin(const StringMap<const NodeProto *> &makers, StringRef value) {
  const NodeProto *maker = makers.lookup(value);
  while (maker && maker->op_type() == "Identity" && maker->domain().empty()) {
    value = maker->input(0);
    maker = makers.lookup(value);
  }
  return value;
}

std::vector<ReplacedTensor> UnfoldingGraph::findReplaced() const {
  StringMap<const NodeProto *> makers;
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      makers[output] = &node;
  std::vector<ReplacedTensor> replaced;
  for (const TensorProto &tensor : graph.initializer()) {
    if (added.contains(tensor.name()))
      continue;
    const bool isGone = removed.contains(tensor.name());
    StringSet<> seen;
    std::vector<std::string> values;
    auto add = [&](StringRef value) {
      if (seen.insert(findOrigin(makers, value)).second)
        values.push_back(value.str());
    };
    for (const auto &[node, operand] : reads.lookup(tensor.name())) {
      const NodeProto *reader = makers.lookup(node);
      const StringRef value = reader && operand < reader->input_size() ? StringRef(reader->input(operand)) : "";
      // Another initializer is a parameter that has a place of its own.
      if (!value.empty() && (isGone || makers.contains(findOrigin(makers, value))))
        add(value);
    }
    if (isGone && values.empty())
      add(tensor.name());
    if (values.empty())
      continue;
    if (!isGone)
      add(tensor.name());
    const auto elements = checkedElements({tensor.dims().data(), size_t(tensor.dims_size())});
    const auto type = findElementType(tensor.data_type());
    replaced.push_back({tensor.name(), elements && type ? uint64_t(*elements) * type->bytes : 0, std::move(values)});
  }
  return replaced;
}

UnfoldedTensors UnfoldingGraph::finish() {
  UnfoldedTensors unfolded{std::move(sources), findReplaced(), std::move(doubts)};
  auto &nodes = *graph.mutable_node();
  std::rotate(nodes.pointer_begin(), nodes.pointer_begin() + numOldNodes, nodes.pointer_end());
  auto &tensors = *graph.mutable_initializer();
  int kept = 0;
  for (int i = 0, e = tensors.size(); i != e; ++i)
    if (!removed.contains(tensors.Get(i).name()))
      tensors.SwapElements(kept++, i);
  tensors.DeleteSubrange(kept, tensors.size() - kept);
  return unfolded;
}
