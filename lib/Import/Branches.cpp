//===- Branches.cpp - branches that are chosen for good ---------------------------===//
//
// A file for inference may hold a model twice, as branches for an empty and a full cache (Optimum's merged decoders).
// What is left of the one that is chosen is a graph like any other, whose parameters have readers.
//
//===----------------------------------------------------------------------===//

#include "Branches.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <optional>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

void lowtide::countNames(const GraphProto &graph, StringMap<unsigned> &names) {
  for (const auto &input : graph.input())
    ++names[input.name()];
  for (const TensorProto &tensor : graph.initializer())
    ++names[tensor.name()];
  for (const NodeProto &node : graph.node()) {
    for (const std::string &output : node.output())
      ++names[output];
    for (const auto &attribute : node.attribute())
      if (attribute.has_g())
        countNames(attribute.g(), names);
  }
}

namespace {

class BranchChooser {
public:
  BranchChooser(GraphProto &graph, const std::map<std::string, std::string> &fixed);
  /// Puts the branches in; whether there was one.
  bool run();

private:
  void noteTensor(StringRef name, const TensorProto &tensor);
  /// What `node` makes of numbers that are known.
  void note(const NodeProto &node);
  void inlineBranch(NodeProto &node, GraphProto &branch, std::vector<NodeProto> &nodes);

  GraphProto &graph;
  StringMap<bool> known; ///< values of one boolean
  StringSet<> defined;   ///< names of the graph's own values
  StringMap<unsigned> names;
};

std::optional<bool> parseBoolean(StringRef text) {
  if (text.equals_insensitive("true") || text == "1")
    return true;
  if (text.equals_insensitive("false") || text == "0")
    return false;
  return std::nullopt;
}

const GraphProto *findBranch(const NodeProto &node, StringRef name) {
  for (const auto &attribute : node.attribute())
    if (attribute.name() == name && attribute.has_g())
      return &attribute.g();
  return nullptr;
}

/// Names that the graph, or one within it, reads or hands out.
void listReads(const GraphProto &graph, StringSet<> &reads) {
  for (const NodeProto &node : graph.node()) {
    for (const std::string &input : node.input())
      reads.insert(input);
    for (const auto &attribute : node.attribute())
      if (attribute.has_g())
        listReads(attribute.g(), reads);
  }
  for (const auto &output : graph.output())
    reads.insert(output.name());
}

void visitDefined(GraphProto &graph, function_ref<void(std::string &)> visit) {
  for (auto &input : *graph.mutable_input())
    visit(*input.mutable_name());
  for (TensorProto &tensor : *graph.mutable_initializer())
    visit(*tensor.mutable_name());
  for (NodeProto &node : *graph.mutable_node())
    for (std::string &output : *node.mutable_output())
      visit(output);
}

void rename(std::string &name, const StringMap<std::string> &renamed) {
  if (auto found = renamed.find(name); found != renamed.end())
    name = found->second;
}

/// Renames what nodes read; no graph within the graph has a value of such a name (WellFormed.h).
void renameReads(GraphProto &graph, const StringMap<std::string> &renamed) {
  for (NodeProto &node : *graph.mutable_node()) {
    for (std::string &input : *node.mutable_input())
      rename(input, renamed);
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        renameReads(*attribute.mutable_g(), renamed);
  }
  for (auto &output : *graph.mutable_output())
    rename(*output.mutable_name(), renamed);
}

} // namespace

BranchChooser::BranchChooser(GraphProto &graph, const std::map<std::string, std::string> &fixed) : graph(graph) {
  countNames(graph, names);
  visitDefined(graph, [&](const std::string &name) { defined.insert(name); });
  for (const TensorProto &tensor : graph.initializer())
    noteTensor(tensor.name(), tensor);
  for (const auto &input : graph.input()) {
    // A default that is listed as an input, too, is what a caller may change.
    known.erase(input.name());
    auto text = fixed.find(input.name());
    if (text == fixed.end() || input.type().tensor_type().elem_type() != TensorProto::BOOL)
      continue;
    if (std::optional<bool> value = parseBoolean(text->second))
      known[input.name()] = *value;
  }
}

void BranchChooser::noteTensor(StringRef name, const TensorProto &tensor) {
  const bool isOne = tensor.dims_size() == 0 || all_of(tensor.dims(), [](int64_t dim) { return dim == 1; });
  if (tensor.data_type() != TensorProto::BOOL || !isOne || tensor.data_location() == TensorProto::EXTERNAL)
    return;
  if (tensor.raw_data().size() == 1)
    known[name] = tensor.raw_data()[0] != 0;
  else if (tensor.int32_data_size() == 1)
    known[name] = tensor.int32_data(0) != 0;
}

void BranchChooser::note(const NodeProto &node) {
  if (!node.domain().empty() || node.output_size() != 1)
    return;
  const StringRef op = node.op_type();
  if (op == "Constant" && node.attribute_size() == 1 && node.attribute(0).has_t())
    return noteTensor(node.output(0), node.attribute(0).t());
  auto input = node.input_size() ? known.find(node.input(0)) : known.end();
  if (input == known.end())
    return;
  if (op == "Not")
    known[node.output(0)] = !input->second;
  else if (op == "Identity" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze")
    known[node.output(0)] = bool(input->second);
}

/// The branch's nodes as nodes of the graph: its results have the names of the node's, and what else it calls as the
/// graph calls another value gets a name of its own.
void BranchChooser::inlineBranch(NodeProto &node, GraphProto &branch, std::vector<NodeProto> &nodes) {
  StringMap<std::string> renamed;
  StringSet<> computed, held;
  for (const TensorProto &tensor : branch.initializer())
    held.insert(tensor.name());
  for (const NodeProto &inner : branch.node()) {
    computed.insert(inner.output().begin(), inner.output().end());
    if (inner.op_type() == "Constant")
      held.insert(inner.output().begin(), inner.output().end());
  }
  auto define = [&](const std::string &name) {
    if (name.empty() || renamed.count(name))
      return;
    // As what is lifted out of graphs within the graph: by such a name a tensor is found in the file again.
    std::string own = held.contains(name) && names.lookup(name) > 1 ? name + "@" + branch.name() : name;
    while (!defined.insert(own).second)
      own += "#";
    renamed[name] = own;
  };
  std::vector<std::pair<std::string, std::string>> copies;
  for (int i = 0, e = node.output_size(); i != e; ++i) {
    const std::string &result = branch.output(i).name();
    if (node.output(i).empty())
      continue;
    if (computed.contains(result) && !renamed.count(result))
      renamed[result] = node.output(i);
    else
      copies.push_back({result, node.output(i)});
  }
  visitDefined(branch, define);
  renameReads(branch, renamed);
  for (NodeProto &inner : *branch.mutable_node()) {
    for (std::string &output : *inner.mutable_output())
      rename(output, renamed);
    nodes.emplace_back().Swap(&inner);
  }
  for (TensorProto &tensor : *branch.mutable_initializer()) {
    rename(*tensor.mutable_name(), renamed);
    noteTensor(tensor.name(), tensor);
    graph.add_initializer()->Swap(&tensor);
  }
  for (auto &info : *branch.mutable_value_info()) {
    rename(*info.mutable_name(), renamed);
    graph.add_value_info()->Swap(&info);
  }
  for (auto &[from, to] : copies) {
    rename(from, renamed);
    NodeProto &copy = nodes.emplace_back();
    copy.set_op_type("Identity");
    copy.set_name(to);
    copy.add_input(from);
    copy.add_output(to);
  }
}

bool BranchChooser::run() {
  bool isChanged = false;
  std::vector<NodeProto> waiting, kept;
  for (NodeProto &node : reverse(*graph.mutable_node()))
    waiting.emplace_back().Swap(&node);
  // A branch's nodes come next, and may have branches of their own.
  while (!waiting.empty()) {
    NodeProto node;
    node.Swap(&waiting.back());
    waiting.pop_back();
    note(node);
    auto condition = node.op_type() == "If" && node.domain().empty() && node.input_size() == 1
                         ? known.find(node.input(0))
                         : known.end();
    const GraphProto *branch =
        condition == known.end() ? nullptr : findBranch(node, condition->second ? "then_branch" : "else_branch");
    if (!branch || branch->output_size() != node.output_size()) {
      kept.emplace_back().Swap(&node);
      continue;
    }
    isChanged = true;
    GraphProto taken = *branch;
    std::vector<NodeProto> nodes;
    inlineBranch(node, taken, nodes);
    for (NodeProto &inner : reverse(nodes))
      waiting.emplace_back().Swap(&inner);
  }
  graph.clear_node();
  for (NodeProto &node : kept)
    graph.add_node()->Swap(&node);
  return isChanged;
}

std::vector<std::string> lowtide::chooseBranches(GraphProto &graph, const std::map<std::string, std::string> &fixed) {
  if (none_of(graph.node(), [](const NodeProto &node) { return node.op_type() == "If"; }))
    return {};
  StringSet<> before, after;
  listReads(graph, before);
  if (!BranchChooser(graph, fixed).run())
    return {};
  listReads(graph, after);
  std::vector<std::string> dropped;
  int kept = 0;
  for (int i = 0, e = graph.input_size(); i != e; ++i) {
    const std::string &name = graph.input(i).name();
    if (before.contains(name) && !after.contains(name) && !fixed.count(name))
      dropped.push_back(name);
    else
      graph.mutable_input()->SwapElements(kept++, i);
  }
  graph.mutable_input()->DeleteSubrange(kept, graph.input_size() - kept);
  return dropped;
}
