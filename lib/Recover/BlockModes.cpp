//===- BlockModes.cpp - blocks of a program with a mode ---------------------------===//
//
// PyTorch's current exporter puts the code of a block (`torch.no_grad`, `torch.autocast`) in place of an operation, and
// writes its operations without the mode. Of both modes the stack traces alone are left, of code that the exporter
// made: one that converts types is `autocast`, but another may be `no_grad` as well as `autocast(enabled=False)`. It is
// taken for the latter where it alone reads what a layer made, or has parameters of its own next to what the network
// made, or where every way from a parameter to the loss goes through such blocks: nothing would train them otherwise;
// and it is said where that decides about a gradient.
//
//===----------------------------------------------------------------------===//

#include "BlockModes.h"

#include "Detached.h"
#include "ProgramNames.h"
#include "Unfold.h"

#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <set>
#include <tuple>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

static constexpr StringLiteral withoutGradientKey = "lowtide.without_gradient";

bool lowtide::isWithoutGradient(const NodeProto &node) {
  return any_of(node.metadata_props(), [](const auto &prop) { return prop.key() == withoutGradientKey; });
}

namespace {
/// Takes what a program computes outside a block without gradients from what it computes inside, where the exporter
/// merged the two.
class BlockTwins {
public:
  BlockTwins(GraphProto &graph, const StringMap<std::string> &blockOf)
      : graph(graph), blockOf(blockOf), signature(graph), names(graph, signature) {
    for (auto [i, node] : enumerate(graph.node())) {
      for (const std::string &output : node.output())
        producers[output] = int(i);
      for (const std::string &operand : findProgramOperands(node))
        mentioned.insert(operand);
    }
  }

  void run();

private:
  std::string copyOf(const std::string &value);
  void renameParameters(NodeProto &copy) const;

  GraphProto &graph;
  const StringMap<std::string> &blockOf;
  Signature signature;
  ProgramNames names;
  StringMap<int> producers;
  StringSet<> mentioned;
  std::map<int, NodeProto> copies;
};
} // namespace

/// A copy outside the block reads the parameters of another module, whose own operations are gone.
void BlockTwins::renameParameters(NodeProto &copy) const {
  for (const std::string &operand : findProgramOperands(copy)) {
    const SignatureEntry *entry = signature.findPlaceholder(operand);
    if (!entry || entry->kind != SignatureEntry::Parameter || is_contained(copy.input(), entry->target))
      continue;
    const SignatureEntry *other = nullptr;
    size_t longest = 0;
    for (const SignatureEntry &candidate : signature.getEntries()) {
      if (candidate.kind != SignatureEntry::Parameter || mentioned.contains(candidate.placeholder))
        continue;
      StringRef a = candidate.target, b = entry->target;
      size_t common = 0;
      while (common < std::min(a.size(), b.size()) && a[a.size() - 1 - common] == b[b.size() - 1 - common])
        ++common;
      if (common > longest && leafOf(a) == leafOf(b)) {
        longest = common;
        other = &candidate;
      }
    }
    if (!other)
      continue;
    for (auto &prop : *copy.mutable_metadata_props()) {
      std::string &text = *prop.mutable_value();
      if (prop.key() == moduleScopesKey)
        text = "['', '" + moduleOf(other->target).str() + "', 'op']";
      for (size_t at = 0; (at = text.find("%" + operand, at)) != std::string::npos; ++at)
        if (size_t end = at + 1 + operand.size(); end >= text.size() || (!isAlnum(text[end]) && text[end] != '_'))
          text.replace(at + 1, operand.size(), other->placeholder);
    }
  }
}

/// The value that is computed outside as `value` is in the block.
std::string BlockTwins::copyOf(const std::string &value) {
  // Nodes are in order: what a node reads is copied before it.
  std::set<int> needed;
  SmallVector<int> worklist{producers.lookup(value)};
  while (!worklist.empty()) {
    int index = worklist.pop_back_val();
    if (copies.count(index) || !needed.insert(index).second)
      continue;
    for (const std::string &input : graph.node(index).input())
      if (blockOf.contains(input))
        worklist.push_back(producers.lookup(input));
  }
  for (int index : needed) {
    auto [at, isNew] = copies.try_emplace(index, graph.node(index));
    if (!isNew)
      continue;
    NodeProto &copy = at->second;
    copy.set_name(copy.name() + "@outside");
    for (std::string &input : *copy.mutable_input())
      if (blockOf.contains(input))
        input += "@outside";
    for (std::string &output : *copy.mutable_output())
      if (!output.empty())
        output += "@outside";
    renameParameters(copy);
    for (auto &prop : *copy.mutable_metadata_props())
      if (prop.key() == "pkg.torch.onnx.stack_trace")
        prop.clear_value();
  }
  return value + "@outside";
}

void BlockTwins::run() {
  std::vector<std::pair<std::pair<int, int>, std::string>> reads;
  for (auto [i, node] : enumerate(graph.node()))
    for (auto [operand, input] : enumerate(node.input())) {
      if (!blockOf.contains(input) || !findProgramBlock(node).empty())
        continue;
      std::string name = names.find(node, int(operand));
      if (name != input && names.isLost(name) && operationName(name) == operationName(input))
        reads.push_back({{int(i), int(operand)}, input});
    }
  for (auto &[read, value] : reads)
    graph.mutable_node(read.first)->set_input(read.second, copyOf(value));
  if (copies.empty())
    return;
  ::google::protobuf::RepeatedPtrField<NodeProto> nodes;
  for (int i = 0, e = graph.node_size(); i != e; ++i) {
    nodes.Add()->Swap(graph.mutable_node(i));
    if (auto copy = copies.find(i); copy != copies.end())
      nodes.Add()->Swap(&copy->second);
  }
  graph.mutable_node()->Swap(&nodes);
}

namespace {
/// How gradients flow from what a graph returns to its parameters, through blocks and around them.
class GradientPaths {
public:
  GradientPaths(const GraphProto &graph, const StringMap<std::string> &blockOf);

  /// Whether a gradient has to flow out of `block`: it alone reads what a layer of the network made, or it reads what
  /// the network made and parameters of its own.
  bool isNeeded(StringRef block) const;
  /// Those of `blocks` that what a layer outside of them made enters first, where every way from the layer's parameter
  /// goes through one of them.
  StringSet<> findOnlyWays(const StringSet<> &blocks) const;
  /// Whether a gradient that flows through `value`, of a block, into `reader` reaches a parameter.
  bool matters(const NodeProto &reader, StringRef value) const;

private:
  struct Node {
    bool passes = false, isReached = false, isOfParameters = false, isOfBatch = false;
    StringRef block;
    /// What gradients flow to: values that are made of parameters, and who makes them; parameters have no maker.
    SmallVector<std::pair<StringRef, int>, 4> operands;
  };
  static constexpr int noMaker = -1;

  void findReached();
  /// The nodes that gradients flow to other than through `blocks`.
  std::vector<bool> findAround(const StringSet<> &blocks) const;
  /// Whether the value depends on the inputs' numbers.
  bool isOfBatch(StringRef value) const;
  /// Whether the node gives what it reads in another shape or type, or times a number.
  bool isForm(int index) const;
  /// The parameter of which the value is a form; empty: it is none.
  StringRef findParameter(StringRef value, int maker) const;
  /// Whether it gives a part of what it reads; who reads other parts does not read this one.
  bool isPart(int index) const;
  /// Whether what reads the value for a result of the graph is in `block`, in whatever form it reads it.
  bool isReadInBlock(StringRef value, StringRef block) const;
  /// Whether the value is what a layer outside of blocks made for `block` alone, or a part of that.
  bool isLayerFor(StringRef value, int maker, StringRef block) const;

  const GraphProto &graph;
  StringMap<int> makers;
  StringMap<SmallVector<int, 2>> readers;
  StringSet<> ends;  ///< results that may be a loss
  StringSet<> batch; ///< inputs that are no initializers
  std::vector<Node> nodes;
};
} // namespace

/// Whether a gradient flows through the node: its results are numbers that change with its operands.
static bool passesGradient(const NodeProto &node) {
  constexpr StringLiteral flat[] = {"And",
                                    "ArgMax",
                                    "ArgMin",
                                    "BitShift",
                                    "Ceil",
                                    "ConstantOfShape",
                                    "Equal",
                                    "Floor",
                                    "Greater",
                                    "GreaterOrEqual",
                                    "IsInf",
                                    "IsNaN",
                                    "Less",
                                    "LessOrEqual",
                                    "NonZero",
                                    "Not",
                                    "OneHot",
                                    "Or",
                                    "RandomNormalLike",
                                    "RandomUniformLike",
                                    "Round",
                                    "Shape",
                                    "Sign",
                                    "Size",
                                    "Xor"};
  if (node.op_type() == "Cast")
    return none_of(node.attribute(), [](const auto &attribute) {
      return attribute.name() == "to" && !isFloatType(int32_t(attribute.i()));
    });
  return !is_contained(flat, node.op_type()) && !isDetach(node);
}

/// Running statistics have no gradient, and a norm that runs again goes on from what the run before made of them.
static bool isRunningStatistic(const NodeProto &node, size_t operand) {
  return node.op_type() == "BatchNormalization" && operand >= 3;
}

GradientPaths::GradientPaths(const GraphProto &graph, const StringMap<std::string> &blockOf)
    : graph(graph), nodes(graph.node_size()) {
  const Signature signature(graph);
  auto isParameter = [&](const std::string &name) {
    const SignatureEntry *entry = signature.findTarget(name);
    return entry && entry->kind == SignatureEntry::Parameter && !entry->isAssignedParameter;
  };
  StringSet<> parameters;
  for (const auto &input : graph.input())
    batch.insert(input.name());
  for (const auto &tensor : graph.initializer()) {
    batch.erase(tensor.name());
    if (isParameter(tensor.name()))
      parameters.insert(tensor.name());
  }
  for (const auto &value : graph.value_info())
    if (any_of(findFoldedFrom(value), isParameter))
      parameters.insert(value.name());
  for (auto [i, node] : enumerate(graph.node()))
    for (const std::string &output : node.output())
      makers[output] = int(i);
  for (auto [i, node] : enumerate(graph.node())) {
    Node &facts = nodes[i];
    facts.passes = passesGradient(node);
    if (node.output_size())
      if (auto block = blockOf.find(node.output(0)); block != blockOf.end())
        facts.block = block->second;
    for (auto [operand, input] : enumerate(node.input())) {
      if (isRunningStatistic(node, operand))
        continue;
      // The file's order is that of the program.
      const auto maker = makers.find(input);
      facts.isOfBatch |= node.op_type() != "Shape" && isOfBatch(input);
      if (maker == makers.end() ? !parameters.contains(input) : !nodes[maker->second].isOfParameters)
        continue;
      facts.operands.emplace_back(input, maker == makers.end() ? noMaker : maker->second);
      readers[input].push_back(int(i));
    }
    facts.isOfParameters = facts.passes && !facts.operands.empty();
  }
  StringSet<> assigned;
  for (const SignatureEntry &entry : signature.getEntries())
    assigned.insert(entry.assigned);
  for (const auto &output : graph.output())
    if (!assigned.contains(output.name()))
      ends.insert(output.name());
  findReached();
}

void GradientPaths::findReached() {
  SmallVector<int> open;
  for (const auto &end : ends)
    if (auto maker = makers.find(end.first()); maker != makers.end())
      open.push_back(maker->second);
  while (!open.empty()) {
    Node &node = nodes[open.pop_back_val()];
    if (!node.passes || std::exchange(node.isReached, true))
      continue;
    for (const auto &[value, maker] : node.operands)
      if (maker != noMaker)
        open.push_back(maker);
  }
}

bool GradientPaths::isOfBatch(StringRef value) const {
  const auto maker = makers.find(value);
  return maker == makers.end() ? batch.contains(value) : nodes[maker->second].isOfBatch;
}

bool GradientPaths::isForm(int index) const {
  const NodeProto &node = graph.node(index);
  const StringRef op = node.op_type();
  if (nodes[index].operands.size() != 1)
    return false;
  if (op == "Div" || op == "Mul") // of a number, not of data
    return all_of(node.input(), [&](const std::string &input) {
      return input == nodes[index].operands.front().first || !isOfBatch(input);
    });
  return is_contained(
      {"Cast", "CastLike", "Expand", "Flatten", "Identity", "Neg", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}, op);
}

bool GradientPaths::isPart(int index) const {
  return graph.node(index).op_type() == "Slice" || graph.node(index).op_type() == "Split";
}

StringRef GradientPaths::findParameter(StringRef value, int maker) const {
  while (maker != noMaker && isForm(maker))
    std::tie(value, maker) = nodes[maker].operands.front();
  return maker == noMaker ? value : StringRef();
}

bool GradientPaths::isReadInBlock(StringRef value, StringRef block) const {
  const auto all = readers.find(value);
  return !ends.contains(value) && (all == readers.end() || all_of(all->second, [&](int reader) {
                                     return !nodes[reader].isReached || nodes[reader].block == block ||
                                            isPart(reader) ||
                                            (isForm(reader) && isReadInBlock(graph.node(reader).output(0), block));
                                   }));
}

bool GradientPaths::isLayerFor(StringRef value, int maker, StringRef block) const {
  while (nodes[maker].block.empty() && isReadInBlock(value, block)) {
    const auto &operands = nodes[maker].operands;
    if (any_of(operands, [&](const auto &operand) { return !findParameter(operand.first, operand.second).empty(); }))
      return true;
    if (operands.empty() || (!isForm(maker) && !isPart(maker)))
      return false;
    std::tie(value, maker) = operands.front();
  }
  return false;
}

bool GradientPaths::isNeeded(StringRef block) const {
  bool readsNetwork = false, hasParameters = false;
  for (const Node &node : nodes) {
    if (node.block != block || !node.isReached)
      continue;
    for (auto [value, maker] : node.operands) {
      if (const StringRef parameter = findParameter(value, maker); !parameter.empty()) {
        hasParameters |= isReadInBlock(parameter, block);
        continue;
      }
      if (nodes[maker].block == block)
        continue;
      readsNetwork = true;
      if (isLayerFor(value, maker, block))
        return true;
    }
  }
  return readsNetwork && hasParameters;
}

std::vector<bool> GradientPaths::findAround(const StringSet<> &blocks) const {
  std::vector<bool> isAround(nodes.size());
  SmallVector<int> open;
  for (const auto &end : ends)
    if (auto maker = makers.find(end.first()); maker != makers.end())
      open.push_back(maker->second);
  while (!open.empty()) {
    const int index = open.pop_back_val();
    if (!nodes[index].passes || isAround[index] || blocks.contains(nodes[index].block))
      continue;
    isAround[index] = true;
    for (const auto &[value, maker] : nodes[index].operands)
      if (maker != noMaker)
        open.push_back(maker);
  }
  return isAround;
}

StringSet<> GradientPaths::findOnlyWays(const StringSet<> &blocks) const {
  const std::vector<bool> isAround = findAround(blocks);
  auto isOnlyThrough = [&](StringRef parameter) {
    return none_of(readers.lookup(parameter), [&](int reader) { return bool(isAround[reader]); });
  };
  StringSet<> found;
  std::vector<bool> isSeen(nodes.size());
  SmallVector<int> open;
  for (auto [i, node] : enumerate(nodes))
    if (node.isReached && !blocks.contains(node.block) && any_of(node.operands, [&](const auto &operand) {
          return operand.second == noMaker && isOnlyThrough(operand.first);
        }))
      open.push_back(int(i));
  while (!open.empty()) {
    const int index = open.pop_back_val();
    if (isSeen[index] || !nodes[index].isReached)
      continue;
    isSeen[index] = true;
    if (blocks.contains(nodes[index].block)) {
      found.insert(nodes[index].block);
      continue;
    }
    for (const std::string &output : graph.node(index).output())
      append_range(open, readers.lookup(output));
  }
  return found;
}

bool GradientPaths::matters(const NodeProto &reader, StringRef value) const {
  return nodes[makers.lookup(value)].isOfParameters && reader.output_size() &&
         nodes[makers.lookup(reader.output(0))].isReached;
}

Recovered lowtide::detachBlocks(GraphProto &graph) {
  StringMap<std::string> blockOf; // by value
  StringSet<> flowing;
  for (const NodeProto &node : graph.node()) {
    std::string block = findProgramBlock(node).str();
    if (block.empty())
      continue;
    if (StringRef(findProgramOperator(node)).starts_with("aten._to_copy"))
      flowing.insert(block);
    for (const std::string &output : node.output())
      if (!output.empty())
        blockOf[output] = block;
  }
  Recovered found;
  if (blockOf.empty())
    return found;
  StringMap<std::string> quiet; // without those that convert
  StringSet<> blocks;
  for (const auto &entry : blockOf)
    if (!flowing.contains(entry.second)) {
      quiet[entry.first()] = entry.second;
      blocks.insert(entry.second);
    }
  BlockTwins(graph, quiet).run();
  const GradientPaths paths(graph, blockOf);
  for (const auto &block : blocks)
    if (paths.isNeeded(block.first()))
      flowing.insert(block.first());
  for (const auto &block : flowing)
    blocks.erase(block.first());
  for (const auto &block : paths.findOnlyWays(blocks))
    flowing.insert(block.first());
  StringMap<std::string> detached;
  ::google::protobuf::RepeatedPtrField<NodeProto> nodes;
  auto say = [](std::vector<std::string> &names, const std::string &name) {
    if (!is_contained(names, name))
      names.push_back(name);
  };
  for (NodeProto &node : *graph.mutable_node()) {
    std::string block = findProgramBlock(node).str();
    for (auto [operand, input] : enumerate(*node.mutable_input())) {
      auto made = blockOf.find(input);
      if (made == blockOf.end() || made->second == block || isRunningStatistic(node, operand))
        continue;
      if (flowing.contains(made->second)) {
        say(found.unknown, input);
        continue;
      }
      if (paths.matters(node, input))
        say(found.restored, input);
      auto [name, isNew] = detached.try_emplace(input, input + "@detach");
      if (isNew)
        *nodes.Add() = makeDetach(name->second, input, name->second, node);
      input = name->second;
    }
    if (!block.empty() && !flowing.contains(block)) {
      auto &mark = *node.add_metadata_props();
      mark.set_key(withoutGradientKey.str());
      mark.set_value("1");
    }
    nodes.Add()->Swap(&node);
  }
  graph.mutable_node()->Swap(&nodes);
  return found;
}
