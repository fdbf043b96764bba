//===- LostBiases.cpp - biases of zeros that are gone ------------------------------===//
//
// A linear layer on more than two dimensions is a product and a sum. onnxslim and onnx-simplifier drop the addition of
// zeros, and with it the bias. onnxslim gives the product the name of the sum: `/b1/q/Add_output_0`. PyTorch's current
// exporter drops biases of zeros itself; where a cleaner removed its notes, the node's new name is left: `node_Gemm_7`
// gives `addmm`, which has three operands.
//
//===----------------------------------------------------------------------===//

#include "LostBiases.h"

#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

int64_t lowtide::outputChannels(const UnfoldingGraph &graph, const NodeProto &node) {
  const TensorProto *weight = node.input_size() > 1 ? graph.find(node.input(1)) : nullptr;
  if (!weight || weight->dims_size() < 2)
    return 0;
  auto attribute = [&](StringRef name, int64_t otherwise) {
    for (const auto &attribute : node.attribute())
      if (attribute.name() == name)
        return attribute.i();
    return otherwise;
  };
  return StringSwitch<int64_t>(node.op_type())
      .Case("Conv", weight->dims(0))
      .Case("ConvTranspose", weight->dims(1) * attribute("group", 1))
      .Case("Gemm", weight->dims(attribute("transB", 0) ? 0 : 1))
      .Default(0);
}

/// The weight of a linear layer that `node` multiplies with; null: it is no such product.
static const TensorProto *findWeight(const UnfoldingGraph &graph, const NodeProto &node) {
  const TensorProto *weight = node.op_type() == "MatMul" && node.domain().empty() && node.input_size() == 2
                                  ? graph.find(node.input(1))
                                  : nullptr;
  return weight && weight->dims_size() == 2 && isFloatType(weight->data_type()) ? weight : nullptr;
}

/// Whether onnx-simplifier went through the file: it numbers what it evaluates, `_v_26`.
static bool isSimplified(const GraphProto &graph) {
  return any_of(graph.initializer(), [](const TensorProto &tensor) {
    StringRef name = tensor.name();
    return name.consume_front("_v_") && !name.empty() && all_of(name, isDigit);
  });
}

/// Whether a rule of the current exporter's optimizer wrote the layer anew without its bias.
static bool isRewrittenWithoutBias(const NodeProto &node) {
  StringRef name = node.name(), number = name.rsplit('_').second;
  if (!is_contained({"Gemm", "Conv", "ConvTranspose"}, node.op_type()) || node.output_size() != 1 ||
      node.input_size() < 2 || (node.input_size() > 2 && !node.input(2).empty()) || number.empty() ||
      !all_of(number, isDigit) || name.drop_back(number.size()) != "node_" + node.op_type() + "_")
    return false;
  return StringSwitch<bool>(operationName(node.output(0)))
      .Cases({"addmm", "linear", "convolution", "conv1d", "conv2d", "conv3d"}, true)
      .Cases({"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}, true)
      .Default(false);
}

/// What the layer's bias is called: as its weight tells, or else as its result.
static std::string findRewrittenBias(const NodeProto &node) {
  StringRef weight = node.input(1);
  return weight.contains('.') && weight.consume_back("weight") ? (weight + "bias").str() : node.output(0) + ".bias";
}

/// Whether the file holds biases, none of which is all zeros, as those of a model that was trained: a bias of zeros is
/// none of its.
static bool haveBiasesTrained(const UnfoldingGraph &graph, const GraphProto &proto) {
  bool areThere = false;
  for (const TensorProto &tensor : proto.initializer()) {
    if (tensor.dims_size() != 1 || leafOf(tensor.name()) != "bias" || !isFloatType(tensor.data_type()))
      continue;
    const std::string bytes = graph.read(tensor).value_or("");
    if (all_of(bytes, [](char byte) { return byte == 0; }))
      return false;
    areThere = true;
  }
  return areThere;
}

void lowtide::restoreRewrittenBiases(UnfoldingGraph &graph, GraphProto &proto) {
  StringSet<> restored; // a layer may be called again
  SmallVector<std::string> bare;
  std::optional<bool> isTrained;
  for (NodeProto &node : *proto.mutable_node()) {
    if (!isRewrittenWithoutBias(node))
      continue;
    // The exporter gives a convolution without a bias one of zeros, which it drops as well.
    if (!isTrained)
      isTrained = haveBiasesTrained(graph, proto);
    if (*isTrained && node.op_type() != "Gemm") {
      bare.push_back(node.output(0));
      continue;
    }
    const int64_t channels = outputChannels(graph, node);
    const std::string name = findRewrittenBias(node);
    if (!channels || (graph.find(name) && !restored.contains(name)))
      continue;
    const int32_t type = graph.find(node.input(1))->data_type();
    if (restored.insert(name).second)
      graph.addInitializer(
          name, {channels}, type, std::string(size_t(*checkedBytes(channels, type)), '\0'),
          {node.output(0), "the exporter dropped it, for it is all zeros; the name of its layer's node tells", true});
    while (node.input_size() < 3)
      node.add_input();
    node.set_input(2, name);
  }
  if (!bare.empty())
    graph.addDoubt({FindingKind::BiasesPerhapsRemoved, bare.front(), {bare.begin(), bare.end()}});
}

void lowtide::restoreNamedBiases(UnfoldingGraph &graph, GraphProto &proto) {
  for (int i = 0; i < proto.node_size(); ++i) {
    const NodeProto &node = proto.node(i);
    const TensorProto *weight = findWeight(graph, node);
    if (!weight || findEvaluatedOperator(node.output(0)) != "Add")
      continue;
    std::optional<std::string> module = findScope(node.output(0));
    if (!module || module->empty() || module != findScope(node.name()))
      continue;
    const std::string sum = node.output(0), product = sum + "@product", name = *module + ".bias";
    const int64_t channels = weight->dims(1);
    const TensorProto *bias = graph.find(name);
    if (bias && (bias->dims_size() != 1 || bias->dims(0) != channels || bias->data_type() != weight->data_type()))
      continue;
    if (!bias)
      graph.addInitializer(
          name, {channels}, weight->data_type(),
          std::string(size_t(*checkedBytes(channels, weight->data_type())), '\0'),
          {sum, "a cleaner dropped it, for it is all zeros; its product is called after the sum", true});
    proto.mutable_node(i)->set_output(0, product);
    NodeProto add;
    add.set_op_type("Add");
    add.set_name("/" + join(split(StringRef(*module), '.'), "/") + "/Add");
    add.add_input(product);
    add.add_input(name);
    add.add_output(sum);
    graph.insertNode(i + 1, std::move(add));
  }
  if (!isSimplified(proto))
    return;
  StringMap<SmallVector<const NodeProto *>> readers;
  for (const NodeProto &node : proto.node())
    for (const std::string &input : node.input())
      readers[input].push_back(&node);
  const bool hasBiases = any_of(proto.node(), [](const NodeProto &node) {
    return is_contained({"Gemm", "Conv"}, node.op_type()) && node.input_size() > 2;
  });
  SmallVector<std::string> bare;
  for (const NodeProto &node : proto.node()) {
    std::optional<std::string> module = findScope(node.name());
    if (!findWeight(graph, node) || !module || module->empty())
      continue;
    const auto &next = readers[node.output(0)];
    const bool isAdded = any_of(next, [&](const NodeProto *reader) {
      return reader->op_type() == "Add" && findScope(reader->name()) == module;
    });
    if (!isAdded)
      bare.push_back(*module);
  }
  if (hasBiases && !bare.empty())
    graph.addDoubt({FindingKind::BiasesPerhapsRemoved, bare.front(), {bare.begin(), bare.end()}});
}

/// The bias that the operation of `node` reads and that neither the file nor any evaluated tensor holds.
static const SignatureEntry *findDroppedBias(const UnfoldingGraph &graph, const Signature &signature,
                                             const StringSet<> &evaluatedFrom, const NodeProto &node) {
  if (node.input_size() != 2 || isRewritten(node))
    return nullptr;
  SmallVector<const SignatureEntry *> gone;
  for (const std::string &operand : findProgramOperands(node)) {
    const SignatureEntry *entry = signature.findPlaceholder(operand);
    if (!entry || entry->kind != SignatureEntry::Parameter || evaluatedFrom.contains(entry->target))
      continue;
    if (leafOf(entry->target) == "bias")
      return entry;
    if (entry->target != node.input(1))
      gone.push_back(entry);
  }
  // Under another name, it is the only one that the rule could have dropped, unless the program has another weight
  // here, which the exporter merged with the one that the node reads.
  const SignatureEntry *weight = signature.findTarget(node.input(1));
  const bool isMerged = weight && !is_contained(findProgramOperands(node), weight->placeholder);
  return isWithoutBias(node) && !isMerged && gone.size() == 1 ? gone.front() : nullptr;
}

void lowtide::restoreBiases(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  StringSet<> evaluatedFrom;
  for (const auto &value : proto.value_info())
    for (const std::string &name : findFoldedFrom(value))
      evaluatedFrom.insert(name);
  StringSet<> restored;
  for (NodeProto &node : *proto.mutable_node()) {
    int64_t channels = outputChannels(graph, node);
    const SignatureEntry *entry = channels ? findDroppedBias(graph, signature, evaluatedFrom, node) : nullptr;
    if (!entry)
      continue;
    int32_t type = graph.find(node.input(1))->data_type();
    if (graph.find(entry->target) && !restored.contains(entry->target))
      continue;
    if (restored.insert(entry->target).second)
      graph.addInitializer(entry->target, {channels}, type, std::string(size_t(*checkedBytes(channels, type)), '\0'),
                           {"", "the exporter dropped it, for it is all zeros", false});
    node.add_input(entry->target);
  }
}
