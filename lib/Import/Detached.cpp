//===- Detached.cpp - values through which no gradient flows ---------------------===//
//
// ONNX has no word for PyTorch's `detach`: the current exporter writes an `Identity`, and its optimizer removes that.
// The notes remain: an operation that read `%detach` says so. An operand that the operation does not name is what was
// detached.
//
//===----------------------------------------------------------------------===//

#include "Detached.h"

#include "Evidence.h"
#include "Unfold.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

static bool isDetachName(StringRef name) { return operationName(name) == "detach"; }

bool lowtide::isDetach(const NodeProto &node) {
  return node.op_type() == "Identity" && StringRef(findProgramOperator(node)).starts_with("aten.detach.");
}

/// The operand of `node` that holds `detached`; -1: not known. `operands`: what its operation reads; `inner`: results
/// of the same operation.
static int findOperand(const NodeProto &node, ArrayRef<std::string> operands, StringRef detached,
                       const StringSet<> &inner, const Signature &signature, const StringSet<> &initializers) {
  if (node.input_size() == int(operands.size()) && none_of(node.input(), [&](StringRef input) {
        return inner.contains(input) || (initializers.contains(input) && !signature.findTarget(input));
      })) {
    auto at = find(operands, detached);
    // Operands in the program's order: those that both name are in the same places.
    bool inOrder = all_of(enumerate(node.input()), [&](auto pair) {
      return !is_contained(operands, pair.value()) || operands[pair.index()] == pair.value() ||
             isDetachName(operands[pair.index()]);
    });
    if (inOrder && at != operands.end())
      return int(at - operands.begin());
  }
  int found = -1;
  for (auto [i, input] : enumerate(node.input())) {
    if (input.empty() || is_contained(operands, input) || inner.contains(input) ||
        (initializers.contains(input) && !signature.findTarget(input)))
      continue;
    if (const SignatureEntry *entry = signature.findTarget(input); entry && is_contained(operands, entry->placeholder))
      continue;
    if (found >= 0 && node.input(found) != input)
      return -1;
    found = int(i);
  }
  return found;
}

std::vector<std::string> lowtide::restoreDetached(GraphProto &graph) {
  std::vector<std::string> unknown;
  Signature signature(graph);
  if (!signature.isPresent())
    return unknown;
  StringSet<> produced, initializers;
  for (const auto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      produced.insert(output);
  struct Insertion {
    int before;
    NodeProto node;
  };
  std::vector<Insertion> insertions;
  StringMap<std::string> sources;
  /// Results by the operation that they are part of.
  StringMap<StringSet<>> partsOf;
  for (int i = 0, e = graph.node_size(); i != e; ++i) {
    NodeProto &node = *graph.mutable_node(i);
    std::vector<std::string> operands = findProgramOperands(node);
    StringRef note = findProgramNote(node);
    if (note.empty())
      continue;
    StringSet<> &parts = partsOf[note];
    SmallVector<StringRef> detached;
    for (const std::string &operand : operands)
      if (isDetachName(operand) && !produced.contains(operand) && !is_contained(detached, operand))
        detached.push_back(operand);
    for (StringRef name : detached) {
      int operand = -1;
      if (auto known = sources.find(name); known != sources.end())
        operand = int(find(node.input(), known->second) - node.input().begin());
      bool isFirst = parts.empty();
      if (operand < 0 || operand == node.input_size())
        operand = detached.size() == 1 ? findOperand(node, operands, name, parts, signature, initializers) : -1;
      if (operand < 0) {
        if (isFirst && !is_contained(unknown, name))
          unknown.push_back(name.str());
        continue;
      }
      std::string source = node.input(operand);
      if (sources.try_emplace(name, source).second) {
        NodeProto copy;
        copy.set_op_type("Identity");
        copy.set_name(name.str());
        copy.add_input(source);
        copy.add_output(name.str());
        *copy.mutable_metadata_props() = node.metadata_props();
        for (auto &prop : *copy.mutable_metadata_props())
          if (prop.key() == "pkg.torch.onnx.class_hierarchy")
            prop.set_value("['aten.detach.default']");
          else if (prop.key() == "pkg.torch.onnx.fx_node")
            prop.set_value("");
        insertions.push_back({i, std::move(copy)});
      }
      bool isAlsoRead = is_contained(operands, source);
      for (int k = 0; k != node.input_size(); ++k)
        if (node.input(k) == source && (!isAlsoRead || k == operand))
          node.set_input(k, name.str());
    }
    for (const std::string &output : node.output())
      parts.insert(output);
  }
  if (insertions.empty())
    return unknown;
  ::google::protobuf::RepeatedPtrField<NodeProto> nodes;
  auto next = insertions.begin();
  for (int i = 0, e = graph.node_size(); i != e; ++i) {
    for (; next != insertions.end() && next->before == i; ++next)
      nodes.Add()->Swap(&next->node);
    nodes.Add()->Swap(graph.mutable_node(i));
  }
  graph.mutable_node()->Swap(&nodes);
  return unknown;
}
