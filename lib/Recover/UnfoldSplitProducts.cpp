//===- UnfoldSplitProducts.cpp - weights that onnx-simplifier joined --------------===//
//
// Layers that read the same value, as queries, keys and values do, become one product and a split of its result. Their
// biases stay where they were, one for each part, and tell which layer each part is.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Whether onnx-simplifier gave the name: it numbers what it evaluates, `_v_26`.
static bool isNumbered(StringRef name) { return name.consume_front("_v_") && !name.empty() && all_of(name, isDigit); }

namespace {
class SplitProducts {
public:
  SplitProducts(UnfoldingGraph &graph, const GraphProto &proto) : graph(graph) {
    for (const NodeProto &node : proto.node())
      for (const std::string &input : node.input())
        readers[input].push_back(&node);
  }

  /// Takes the weight of `product` apart, if that is one of several layers.
  void unfold(const NodeProto &product);

private:
  std::vector<int64_t> findSizes(const NodeProto &split) const;
  std::string findWeightName(StringRef result, int64_t size) const;

  UnfoldingGraph &graph;
  StringMap<SmallVector<const NodeProto *>> readers;
};
} // namespace

/// The sizes of the parts of the last dimension; empty: it divides another one, or they are not known.
std::vector<int64_t> SplitProducts::findSizes(const NodeProto &split) const {
  int64_t axis = 0;
  for (const auto &attribute : split.attribute())
    axis = attribute.name() == "axis" ? attribute.i() : axis;
  const TensorProto *tensor = split.input_size() == 2 ? graph.find(split.input(1)) : nullptr;
  std::optional<std::string> bytes =
      axis == -1 && tensor && tensor->data_type() == TensorProto::INT64 ? graph.read(*tensor) : std::nullopt;
  if (!bytes || bytes->size() != size_t(split.output_size()) * sizeof(int64_t))
    return {};
  std::vector<int64_t> sizes(size_t(split.output_size()));
  std::memcpy(sizes.data(), bytes->data(), bytes->size());
  return sizes;
}

/// What the weight is called that made a part of the result: as the bias that is added to it; empty: none is.
std::string SplitProducts::findWeightName(StringRef result, int64_t size) const {
  auto next = readers.find(result);
  if (next == readers.end() || next->second.size() != 1 || next->second[0]->op_type() != "Add" ||
      next->second[0]->input_size() != 2)
    return "";
  const NodeProto &sum = *next->second[0];
  const std::string &bias = sum.input(sum.input(0) == result ? 1 : 0);
  const TensorProto *tensor = graph.find(bias);
  const bool isBias = tensor && tensor->dims_size() == 1 && tensor->dims(0) == size && leafOf(bias) == "bias";
  const std::string name = isBias ? (moduleOf(bias) + ".weight").str() : "";
  return graph.find(name) ? "" : name;
}

void SplitProducts::unfold(const NodeProto &product) {
  const TensorProto *weight = product.op_type() == "MatMul" && product.domain().empty() && isNumbered(product.input(1))
                                  ? graph.find(product.input(1))
                                  : nullptr;
  if (!weight || weight->dims_size() != 2 || !isFloatType(weight->data_type()) || graph.isRemoved(weight->name()) ||
      readers.lookup(product.output(0)).size() != 1)
    return;
  const NodeProto &split = *readers.lookup(product.output(0))[0];
  // A node of the program keeps the name that its exporter gave it.
  const bool isOfProgram = StringRef(split.name()).starts_with("/") || StringRef(split.name()).starts_with("node_");
  const std::vector<int64_t> sizes =
      split.op_type() == "Split" && !isOfProgram ? findSizes(split) : std::vector<int64_t>();
  const int64_t inputs = weight->dims(0), outputs = weight->dims(1);
  std::optional<std::string> bytes = sizes.size() < 2 ? std::nullopt : graph.read(*weight);
  if (!bytes || std::accumulate(sizes.begin(), sizes.end(), int64_t(0)) != outputs)
    return;
  SmallVector<UnfoldedPart> parts;
  StringSet<> names, nameless;
  int64_t first = 0;
  for (auto [i, size] : enumerate(sizes)) {
    std::string name = findWeightName(split.output(int(i)), size);
    if (name.empty()) { // a layer without a bias
      name = split.output(int(i)) + ".weight";
      nameless.insert(name);
    }
    if (graph.find(name) || !names.insert(name).second)
      return;
    UnfoldedPart part{name, {size, inputs}, std::vector<int64_t>(size_t(inputs * outputs), -1)};
    for (int64_t input = 0; input != inputs; ++input)
      for (int64_t output = 0; output != size; ++output)
        part.map[size_t(input * outputs + first + output)] = output * inputs + input;
    parts.push_back(std::move(part));
    first += size;
  }
  std::vector<std::string> turned;
  for (const UnfoldedPart &part : parts) {
    graph.addParts(*weight, *bytes, part, "onnx-simplifier joined it with others in", nameless.contains(part.name));
    graph.setModule(moduleOf(part.name));
    turned.push_back(graph.addNode("Transpose", {part.name}));
    graph.setAttribute("perm", ArrayRef<int64_t>({1, 0}));
  }
  graph.setModule("");
  graph.addNode("Concat", turned, weight->name());
  graph.setAttribute("axis", 1);
  graph.remove(*weight);
}

void lowtide::unfoldSplitProducts(UnfoldingGraph &graph, GraphProto &proto) {
  SplitProducts products(graph, proto);
  for (const NodeProto *node : map_to_vector(proto.node(), [](const NodeProto &n) { return &n; }))
    products.unfold(*node);
}
