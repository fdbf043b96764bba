//===- NodeOrder.cpp - nodes after what they read ---------------------------------===//

#include "lowtide/OnnxModel/NodeOrder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <queue>

using namespace llvm;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Every name that `node` reads, or a node of a graph within it without defining it.
static void forEachRead(const NodeProto &node, function_ref<void(StringRef)> visit) {
  auto visitGraph = [&](const GraphProto &graph) {
    StringSet<> own;
    for (const auto &input : graph.input())
      own.insert(input.name());
    for (const auto &tensor : graph.initializer())
      own.insert(tensor.name());
    for (const NodeProto &inner : graph.node())
      own.insert_range(inner.output());
    auto visitOuter = [&](StringRef name) {
      if (!own.contains(name))
        visit(name);
    };
    for (const NodeProto &inner : graph.node())
      forEachRead(inner, visitOuter);
    for (const auto &output : graph.output())
      visitOuter(output.name());
  };
  for (const std::string &name : node.input())
    visit(name);
  for (const AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      visitGraph(attribute.g());
    for (const GraphProto &inner : attribute.graphs())
      visitGraph(inner);
  }
}

/// For each position the node that belongs there; empty when no node has to move, or none can.
static SmallVector<int> findOrder(const GraphProto &graph) {
  StringMap<int> producers;
  for (int i = 0; i != graph.node_size(); ++i)
    for (const std::string &output : graph.node(i).output())
      if (!output.empty())
        producers.try_emplace(output, i);
  std::vector<SmallVector<int, 2>> readers(size_t(graph.node_size()));
  SmallVector<int> waitsFor(size_t(graph.node_size()), 0);
  bool isSorted = true;
  for (int i = 0; i != graph.node_size(); ++i)
    forEachRead(graph.node(i), [&](StringRef name) {
      auto producer = producers.find(name);
      if (producer == producers.end())
        return;
      isSorted &= producer->second < i;
      readers[size_t(producer->second)].push_back(i);
      ++waitsFor[size_t(i)];
    });
  if (isSorted)
    return {};
  SmallVector<int> order;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i != graph.node_size(); ++i)
    if (!waitsFor[size_t(i)])
      ready.push(i);
  while (!ready.empty()) {
    int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (int reader : readers[size_t(next)])
      if (--waitsFor[size_t(reader)] == 0)
        ready.push(reader);
  }
  return order.size() == size_t(graph.node_size()) ? order : SmallVector<int>();
}

bool lowtide::sortNodes(GraphProto &graph, unsigned depth) {
  SmallVector<int> order = findOrder(graph);
  bool moved = !order.empty();
  if (moved) {
    auto &nodes = *graph.mutable_node();
    SmallVector<NodeProto *> old(nodes.pointer_begin(), nodes.pointer_end());
    for (auto [to, from] : zip(make_range(nodes.pointer_begin(), nodes.pointer_end()), order))
      to = old[size_t(from)];
  }
  for (NodeProto &node : *graph.mutable_node())
    for (AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g() && depth)
        moved |= sortNodes(*attribute.mutable_g(), depth - 1);
      for (int i = 0; depth && i != attribute.graphs_size(); ++i)
        moved |= sortNodes(*attribute.mutable_graphs(i), depth - 1);
    }
  return moved;
}

void lowtide::insertAfter(GraphProto &graph, std::map<int, std::vector<NodeProto>> added) {
  if (added.empty())
    return;
  ::google::protobuf::RepeatedPtrField<NodeProto> nodes;
  for (int i = 0, e = graph.node_size(); i != e; ++i) {
    nodes.Add()->Swap(graph.mutable_node(i));
    for (NodeProto &copy : added[i])
      nodes.Add()->Swap(&copy);
  }
  graph.mutable_node()->Swap(&nodes);
}
