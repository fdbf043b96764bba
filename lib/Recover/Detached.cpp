//===- Detached.cpp - values through which no gradient flows ---------------------===//
//
// ONNX has no word for PyTorch's `detach`: the current exporter writes an `Identity`, and its optimizer removes that.
// The notes remain: an operation that read `%detach` says so. An operand that the operation does not name is what was
// detached.
//
// The commitment of a codebook, `mse(q, z.detach()) + c · mse(q.detach(), z)`, is one node then that two names read.
//
//===----------------------------------------------------------------------===//

#include "Detached.h"

#include "ProgramNames.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/NodeOrder.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

bool lowtide::isDetachName(StringRef name) { return operationName(name) == "detach"; }

bool lowtide::isDetach(const NodeProto &node) {
  return node.op_type() == "Identity" && StringRef(findProgramOperator(node)).starts_with("aten.detach.");
}

NodeProto lowtide::makeDetach(const std::string &name, const std::string &input, const std::string &output,
                              const NodeProto &reader) {
  constexpr StringLiteral hierarchyKey = "pkg.torch.onnx.class_hierarchy";
  NodeProto node;
  node.set_op_type("Identity");
  node.set_name(name);
  node.add_input(input);
  node.add_output(output);
  bool isNoted = false;
  *node.mutable_metadata_props() = reader.metadata_props();
  for (auto &prop : *node.mutable_metadata_props())
    if (prop.key() == hierarchyKey) {
      prop.set_value("['aten.detach.default']");
      isNoted = true;
    } else if (prop.key() == "pkg.torch.onnx.fx_node") {
      prop.set_value("");
    }
  if (isNoted)
    return node;
  auto &prop = *node.add_metadata_props();
  prop.set_key(hierarchyKey.str());
  prop.set_value("['aten.detach.default']");
  return node;
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
  StringSet<> produced, initializers, integers;
  for (const auto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  for (const auto &value : graph.value_info())
    if (int32_t type = value.type().tensor_type().elem_type(); type != 0 && !isFloatType(type))
      integers.insert(value.name());
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      produced.insert(output);
  struct Insertion {
    int before;
    NodeProto node;
  };
  std::vector<Insertion> insertions;
  StringMap<std::string> sources;
  /// Results by the operation that they are part of, and the other way around.
  StringMap<StringSet<>> partsOf;
  StringMap<std::string> operationOf;
  for (int i = 0, e = graph.node_size(); i != e; ++i) {
    NodeProto &node = *graph.mutable_node(i);
    std::vector<std::string> operands = findProgramOperands(node);
    StringRef note = findProgramNote(node);
    if (note.empty())
      continue;
    StringSet<> &parts = partsOf[note];
    for (const std::string &output : node.output())
      operationOf[output] = note.ltrim('%').split(' ').first.str();
    // What another operand of this operation became under a name of the exporter's is not what was detached, nor are
    // the sizes of a shape.
    StringSet<> inner = parts;
    for (const std::string &input : node.input()) {
      auto made = operationOf.find(input);
      bool isPart = made != operationOf.end() && made->second != input && is_contained(operands, made->second);
      if (isPart || (integers.contains(input) && !is_contained(operands, input)))
        inner.insert(input);
    }
    // Those that an operation before tells come first: one that is left is what no other operand is.
    SmallVector<StringRef> detached;
    auto isKnown = [&](StringRef name) { return sources.contains(name); };
    for (bool first : {true, false})
      for (const std::string &operand : operands)
        if (isDetachName(operand) && !produced.contains(operand) && isKnown(operand) == first &&
            !is_contained(detached, operand))
          detached.push_back(operand);
    for (StringRef name : detached) {
      int operand = -1;
      if (initializers.contains(name)) {
        // A parameter, of which the exporter evaluated the detach: the tensor is called after it.
        if (!is_contained(node.input(), name))
          continue;
        const std::string value = name.str() + "@detached";
        if (sources.try_emplace(value, name.str()).second)
          insertions.push_back({i, makeDetach(value, name.str(), value, node)});
        for (std::string &input : *node.mutable_input())
          if (input == name)
            input = value;
        continue;
      }
      if (auto known = sources.find(name); known != sources.end())
        operand = int(find(node.input(), known->second) - node.input().begin());
      bool isFirst = parts.empty();
      // Of an operation in several nodes each reads its own operands: what is left is what no node before has told.
      if (operand < 0 || operand == node.input_size())
        operand = !isKnown(name) && count_if(detached, isKnown) + 1 == int(detached.size())
                      ? findOperand(node, operands, name, inner, signature, initializers)
                      : -1;
      if (operand < 0) {
        if (isFirst && !is_contained(unknown, name))
          unknown.push_back(name.str());
        continue;
      }
      std::string source = node.input(operand);
      if (sources.try_emplace(name, source).second)
        insertions.push_back({i, makeDetach(name.str(), source, name.str(), node)});
      bool isAlsoRead = is_contained(operands, source);
      for (int k = 0; k != node.input_size(); ++k)
        if (node.input(k) == source && (!isAlsoRead || k == operand))
          node.set_input(k, name.str());
    }
    for (const std::string &output : node.output())
      parts.insert(output);
  }
  // An operation that reads no more than the shape does not tell; another one may.
  erase_if(unknown, [&](const std::string &name) { return sources.contains(name); });
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

namespace {
/// Takes apart what was computed of detached values from what was computed of the values themselves.
class DetachedTwins {
public:
  explicit DetachedTwins(GraphProto &graph) : graph(graph), signature(graph), names(graph, signature) {
    StringSet<> mentioned;
    for (const auto &tensor : graph.initializer())
      if (isFloatType(tensor.data_type()))
        trained.insert(tensor.name());
    for (auto [i, node] : enumerate(graph.node())) {
      bool isTrained = any_of(node.input(), [&](StringRef input) { return trained.contains(input); });
      for (const std::string &output : node.output()) {
        producers[output] = int(i);
        if (isTrained)
          trained.insert(output);
      }
      for (auto [operand, input] : enumerate(node.input()))
        readers[input].push_back({int(i), int(operand)});
      for (const std::string &name : findProgramOperands(node))
        if (isDetachName(name))
          mentioned.insert(name);
    }
    // `detach`, `detach_1` …: one that nothing reads was in front of what is gone.
    int64_t last = -1;
    for (StringRef name : mentioned.keys()) {
      int64_t number = 0;
      if (name.contains('_'))
        name.rsplit('_').second.getAsInteger(10, number);
      last = std::max(last, number);
    }
    detachesMore = last >= int64_t(mentioned.size());
  }

  std::vector<std::string> run() {
    std::vector<std::string> split;
    for (int i = 0, e = graph.node_size(); i != e; ++i)
      if (!isDetach(graph.node(i)) && graph.node(i).output_size() == 1)
        separate(i, split);
    finish();
    return split;
  }

private:
  void separate(int index, std::vector<std::string> &split);
  /// The nodes between detached values and node `index`; empty: there are none, or too many.
  std::set<int> findWay(int index) const;
  /// A distance of two values, one of them detached, is the other's distance as well.
  std::string findOther(const NodeProto &node) const;
  void copyWay(const std::set<int> &way, int last, const std::string &name);
  void finish();

  /// Nodes on the longest way that is copied.
  static constexpr size_t longestWay = 64;

  GraphProto &graph;
  Signature signature;
  ProgramNames names;
  StringMap<int> producers;
  StringMap<SmallVector<std::pair<int, int>>> readers;
  /// Values that depend on what may be trained.
  StringSet<> trained;
  bool detachesMore = false;
  /// New nodes, by the node that they follow.
  std::map<int, std::vector<NodeProto>> added;
};
} // namespace

std::set<int> DetachedTwins::findWay(int index) const {
  // Whether a node depends on a detached value; no node is asked twice.
  std::map<int, bool> depends;
  std::set<int> way;
  auto visit = [&](auto &self, int at) -> bool {
    if (auto known = depends.find(at); known != depends.end())
      return known->second;
    if (depends.size() > longestWay)
      return false;
    bool &found = depends[at] = false;
    for (const std::string &input : graph.node(at).input())
      if (auto producer = producers.find(input); producer != producers.end())
        found |= (isDetach(graph.node(producer->second)) && trained.contains(input)) || self(self, producer->second);
    if (found)
      way.insert(at);
    return found;
  };
  visit(visit, index);
  return depends.size() > longestWay ? std::set<int>() : way;
}

std::string DetachedTwins::findOther(const NodeProto &node) const {
  std::vector<std::string> operands = findProgramOperands(node);
  if (node.op_type() != "Sub" || node.input_size() != 2 || operands.size() != 2)
    return "";
  for (int i : {0, 1}) {
    auto producer = producers.find(node.input(i));
    if (producer != producers.end() && isDetach(graph.node(producer->second)) && producers.contains(node.input(1 - i)))
      return node.input(1 - i);
  }
  return "";
}

void DetachedTwins::copyWay(const std::set<int> &way, int last, const std::string &name) {
  std::set<std::string> made;
  for (int index : way)
    for (const std::string &output : graph.node(index).output())
      made.insert(output);
  std::vector<NodeProto> &copies = added[last];
  for (int index : way) {
    NodeProto copy = graph.node(index);
    std::string other = findOther(copy);
    if (!other.empty())
      copies.push_back(makeDetach(name + "@detach", other, name + "@" + other + "@detach", copy));
    for (std::string &input : *copy.mutable_input()) {
      auto producer = producers.find(input);
      if (made.count(input))
        input += "@" + name;
      else if (input == other)
        input = name + "@" + other + "@detach";
      else if (producer != producers.end() && isDetach(graph.node(producer->second)))
        input = graph.node(producer->second).input(0);
    }
    for (std::string &output : *copy.mutable_output())
      output = index == last ? name : output + "@" + name;
    copy.set_name(copy.name() + "@" + name);
    copies.push_back(std::move(copy));
  }
}

void DetachedTwins::separate(int index, std::vector<std::string> &split) {
  const std::string value = graph.node(index).output(0);
  std::map<std::string, SmallVector<std::pair<int, int>>> byName;
  bool isReadItself = false; // or else an operation is gone that did nothing
  for (auto [node, operand] : readers.lookup(value)) {
    std::string name = names.find(graph.node(node), operand);
    isReadItself |= name == value;
    // The first of two is the one that is there.
    if (name != value && names.isLost(name) && operationName(name) == operationName(value))
      byName[name].push_back({node, operand});
  }
  std::set<int> way = byName.empty() || !isReadItself ? std::set<int>() : findWay(index);
  bool isDistance = any_of(way, [&](int at) { return !findOther(graph.node(at)).empty(); });
  // What detaches once more may detach the same.
  if (way.empty() || (detachesMore && !isDistance))
    return;
  for (auto &[name, reads] : byName) {
    copyWay(way, index, name);
    for (auto [node, operand] : reads)
      graph.mutable_node(node)->set_input(operand, name);
    split.push_back(name);
  }
}

void DetachedTwins::finish() { insertAfter(graph, std::move(added)); }

std::vector<std::string> lowtide::splitDetached(GraphProto &graph) {
  return any_of(graph.node(), isDetach) ? DetachedTwins(graph).run() : std::vector<std::string>();
}

std::vector<std::string> lowtide::findDetachedTwins(const GraphProto &graph) {
  StringSet<> detached;
  for (const NodeProto &node : graph.node())
    if (isDetach(node) && node.input_size() == 1)
      detached.insert(node.input(0));
  std::vector<std::string> twins;
  if (detached.empty())
    return twins;
  Signature signature(graph);
  ProgramNames names(graph, signature);
  for (const NodeProto &node : graph.node())
    for (auto [operand, input] : enumerate(node.input())) {
      if (!detached.contains(input) || isDetach(node))
        continue;
      std::string name = names.find(node, int(operand));
      if (name != input && names.isLost(name) && operationName(name) == operationName(input) &&
          !is_contained(twins, name))
        twins.push_back(std::move(name));
    }
  return twins;
}
