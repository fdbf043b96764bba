//===- UnfoldQueryBiases.cpp - a layer's bias without a part for keys -------------===//
//
// Attention that makes queries, keys and values in one product, but gives keys no bias (BEiT, EVA, Swin v2), joins a
// bias for queries, zeros, and a bias for values at each step. Exporters evaluate that. The zeros in the middle are not
// trained; fresh biases are zeros, too, and then the layers of all blocks read one tensor.
//
//===----------------------------------------------------------------------===//

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Whether `module` has biases of queries and of values that the file holds by themselves nowhere.
static bool hasGoneBiases(const UnfoldingGraph &graph, const Signature &signature, StringRef module) {
  return all_of(ArrayRef<StringRef>{"q_bias", "v_bias"}, [&](StringRef leaf) {
    const SignatureEntry *entry = signature.findTarget((module + "." + leaf).str());
    return entry && entry->kind == SignatureEntry::Parameter && !graph.find(entry->target);
  });
}

/// Makes value `name`, which is `tensor` with `bytes`, of the biases of `module`.
static void join(UnfoldingGraph &graph, const TensorProto &tensor, StringRef bytes, StringRef module,
                 const std::string &name) {
  const int64_t whole = tensor.dims(0), third = whole / 3;
  SmallVector<UnfoldedPart> parts;
  for (auto [leaf, first] : {std::pair("q_bias", int64_t(0)), std::pair("v_bias", 2 * third)}) {
    UnfoldedPart part{(module + "." + leaf).str(), {third}, std::vector<int64_t>(size_t(whole), -1)};
    for (int64_t i = 0; i != third; ++i)
      part.map[size_t(first + i)] = i;
    parts.push_back(std::move(part));
  }
  graph.setModule(module);
  graph.addParts(tensor, bytes, parts, "joined around zeros by the exporter in", true);
  std::string zeros = graph.addNode("Expand", {graph.addNumber(0), graph.addIntegers({1}, {third})});
  graph.addNode("Concat", {parts[0].name, zeros, parts[1].name}, name);
  graph.setAttribute("axis", 0);
}

bool lowtide::unfoldQueryBiases(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature,
                                const Evaluated &evaluated) {
  const TensorProto &tensor = *evaluated.tensor;
  const std::string name = tensor.name();
  const std::string owner = moduleOf(evaluated.parameters.front()->target).str();
  if (evaluated.parameters.size() != 2 || operationName(name) != "cat" || tensor.dims_size() != 1 ||
      tensor.dims(0) % 3 != 0 || tensor.data_type() != TensorProto::FLOAT || !hasGoneBiases(graph, signature, owner) ||
      any_of(evaluated.parameters, [&](const SignatureEntry *entry) { return moduleOf(entry->target) != owner; }))
    return false;
  std::optional<std::string> bytes = graph.read(tensor);
  const size_t third = bytes ? bytes->size() / 3 : 0;
  if (!third || StringRef(*bytes).substr(third, third).find_first_not_of('\0') != StringRef::npos)
    return false;
  MapVector<StringRef, std::vector<std::string *>> others;
  std::vector<std::string> modules; // names live here
  modules.reserve(size_t(proto.node_size()));
  for (NodeProto &node : *proto.mutable_node())
    for (std::string &input : *node.mutable_input())
      if (std::optional<std::string> module = findModulePath(node); module && input == name && *module != owner)
        others[modules.emplace_back(*module)].push_back(&input);
  if (any_of(others, [&](const auto &other) { return !hasGoneBiases(graph, signature, other.first); }))
    return false; // whose part it is, nothing tells
  for (auto &[module, inputs] : others)
    for (std::string *input : inputs)
      *input = name + "@" + module.str();
  join(graph, tensor, *bytes, owner, name);
  for (const auto &other : others)
    join(graph, tensor, *bytes, other.first, name + "@" + other.first.str());
  graph.remove(tensor);
  return true;
}
