//===- Prefixes.cpp - names that a merge of models wrote something in front of ----===//
//
// PyTorch's exporters name a node and its value after each other, which tells where their names begin: `node_linear_3`
// gives `linear_3`, `/net/fc/Gemm` gives `/net/fc/Gemm_output_0`. So do nodes that are called after their operator.
//
//===----------------------------------------------------------------------===//

#include "Prefixes.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// `net_` of `net_node_linear_3`, which gives `net_linear_3`.
static StringRef findOfCurrentExporter(StringRef node, StringRef value) {
  constexpr StringLiteral mark = "node_";
  const size_t at = node.find(mark);
  if (at == StringRef::npos || at == 0)
    return "";
  StringRef prefix = node.take_front(at), rest = node.drop_front(at + mark.size());
  return !rest.empty() && !isUpper(rest[0]) && value.consume_front(prefix) && value == rest ? prefix : StringRef();
}

/// `net_` of `net_node_LSTM_4`, all of whose results begin so: nodes of several results are called after their
/// operator.
static StringRef findOfOperator(const NodeProto &node) {
  const StringRef name = node.name();
  const size_t at = name.find("node_" + node.op_type() + "_");
  const StringRef number = name.rsplit('_').second;
  if (at == StringRef::npos || at == 0 || number.empty() || !all_of(number, isDigit) ||
      name.size() != at + StringRef("node__").size() + node.op_type().size() + number.size())
    return "";
  const StringRef prefix = name.take_front(at);
  return all_of(node.output(),
                [&](const std::string &value) { return value.empty() || StringRef(value).starts_with(prefix); })
             ? prefix
             : StringRef();
}

/// `net_` of `net_/body/fc/Gemm_1`, which gives `net_/body/fc/Gemm_1_output_0`.
static StringRef findOfOldExporter(StringRef node, StringRef value, StringRef op) {
  const size_t twice = node.find("//");
  StringRef prefix =
      twice == StringRef::npos ? node.take_until([](char c) { return c == '/'; }) : node.take_front(twice + 1);
  if (prefix.empty() || prefix.size() == node.size() || !value.consume_front(node) ||
      !value.consume_front("_output_") || value.empty() || !all_of(value, isDigit))
    return "";
  StringRef last = node.rsplit('/').second;
  if (!last.consume_front(op))
    return "";
  return last.empty() || (last.consume_front("_") && !last.empty() && all_of(last, isDigit)) ? prefix : StringRef();
}

/// `net/` of `net/fc.weight`, where all initializers begin so and nodes are called as PyTorch's exporters call them:
/// `onnx.compose` may rename initializers alone, and programs give no slashes.
static StringRef findOfInitializers(const GraphProto &graph) {
  const StringRef first = graph.initializer().empty() ? "" : StringRef(graph.initializer(0).name());
  const StringRef prefix = first.take_front(first.find('/') + 1); // empty: there is none
  const bool isOfPyTorch = any_of(graph.node(), [](const NodeProto &node) {
    const StringRef name = node.name();
    return namesItsValue(node) ||
           (name.starts_with("/") && node.output_size() == 1 && node.output(0) == (name + "_output_0").str());
  });
  const bool isCommon = isOfPyTorch && prefix.size() > 1 && all_of(graph.initializer(), [&](const auto &tensor) {
                          return StringRef(tensor.name()).starts_with(prefix);
                        });
  return isCommon ? prefix : StringRef();
}

/// Calls `visit` with each node of the graph and of those within.
static void forEachNode(GraphProto &graph, function_ref<void(NodeProto &)> visitNode,
                        function_ref<void(GraphProto &)> visitGraph) {
  visitGraph(graph);
  for (NodeProto &node : *graph.mutable_node()) {
    visitNode(node);
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        forEachNode(*attribute.mutable_g(), visitNode, visitGraph);
      for (GraphProto &inner : *attribute.mutable_graphs())
        forEachNode(inner, visitNode, visitGraph);
    }
  }
}

/// `w_merged` of `w_merged_0`, as Optimum calls what two models of a decoder have in common; empty for other names.
static StringRef findMerged(StringRef name) {
  auto [stem, number] = name.rsplit('_');
  return stem.ends_with("_merged") && !number.empty() && all_of(number, isDigit) ? stem : StringRef();
}

StringMap<std::string> lowtide::removePrefixes(GraphProto &graph) {
  std::set<std::string> prefixes;
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      for (StringRef prefix : {findOfCurrentExporter(node.name(), output), findOfOperator(node),
                               findOfOldExporter(node.name(), output, node.op_type())})
        if (!prefix.empty())
          prefixes.insert(prefix.str());
  if (const StringRef prefix = findOfInitializers(graph); !prefix.empty())
    prefixes.insert(prefix.str());
  const bool isMerged = !graph.initializer().empty() && all_of(graph.initializer(), [](const auto &tensor) {
    return !findMerged(tensor.name()).empty();
  });
  StringMap<std::string> originals;
  if (prefixes.empty() && !isMerged)
    return originals;

  // The longest one that fits: `net_encoder_` before `net_`.
  auto strip = [&](StringRef name) {
    for (const std::string &prefix : reverse(prefixes))
      if (StringRef rest = name; rest.consume_front(prefix) && !rest.empty())
        return rest;
    StringRef stem = isMerged ? findMerged(name) : StringRef();
    return stem.consume_back("_merged") && !stem.empty() ? stem : name;
  };
  StringSet<> taken, kept;
  for (const auto *values : {&graph.input(), &graph.output()})
    for (const auto &value : *values)
      kept.insert(value.name());
  for (const auto &tensor : graph.initializer())
    kept.erase(tensor.name()); // listed as inputs as well
  StringMap<std::string> renamed;
  auto note = [&](StringRef name) {
    if (!name.empty())
      taken.insert(name);
  };
  forEachNode(
      graph, [&](NodeProto &node) { for_each(node.output(), note); },
      [&](GraphProto &inner) {
        for (const auto *values : {&inner.input(), &inner.output(), &inner.value_info()})
          for (const auto &value : *values)
            note(value.name());
        for (const auto &tensor : inner.initializer())
          note(tensor.name());
      });
  for (const auto &name : SmallVector<StringRef>(taken.keys()))
    if (StringRef rest = strip(name); rest != name && !kept.contains(name) && taken.insert(rest).second) {
      renamed[name] = rest.str();
      originals[rest] = name.str();
    }
  auto rename = [&](std::string &name) {
    if (auto at = renamed.find(name); at != renamed.end())
      name = at->second;
  };
  forEachNode(
      graph,
      [&](NodeProto &node) {
        for (auto *names : {node.mutable_input(), node.mutable_output()})
          for_each(*names, rename);
        node.set_name(strip(node.name()).str());
      },
      [&](GraphProto &inner) {
        for (auto *values : {inner.mutable_input(), inner.mutable_output(), inner.mutable_value_info()})
          for (auto &value : *values)
            rename(*value.mutable_name());
        for (auto &tensor : *inner.mutable_initializer())
          rename(*tensor.mutable_name());
      });
  return originals;
}
