//===- ScatterMeans.cpp - means of what is scattered to one place ----------------===//
//
// ONNX's ScatterElements has no mean. PyTorch's current exporter writes it with `reduction = none`, which is undefined
// where two elements fall on one place; the note keeps the operands,
// `scatter_reduce.two](args = (%self, 1, %index, %src, mean), kwargs = {include_self: False})`.
//
// With c elements on a place, the mean is their sum by c, or, where the program counts what was there, (self + sum) by
// 1 + c. Places on which nothing falls keep what they hold.
//
//===----------------------------------------------------------------------===//

#include "ScatterMeans.h"

#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Writes after `scatter`, which gives up its name, a mean in its place; `self`: what the program scatters into.
static void takeMeans(UnfoldingGraph &graph, NodeProto &scatter, const std::string &self) {
  const bool countsSelf = includesSelf(scatter);
  const std::string name = scatter.output(0), index = scatter.input(1), elements = scatter.input(2);
  const std::string sums = name + "@sum";
  graph.setModule(findModulePath(scatter).value_or(""));
  auto add = [&](StringRef op, ArrayRef<std::string> inputs) { return graph.addNode(op, inputs); };
  auto like = [&](float value) { return add("CastLike", {graph.addNumber(value), self}); };
  auto fill = [&](float value, const std::string &shape) {
    return add("Expand", {like(value), add("Shape", {shape})});
  };
  std::string counts = add("ScatterElements", {fill(countsSelf ? 1 : 0, self), index, fill(1, elements)});
  for (const auto &attribute : scatter.attribute())
    if (attribute.name() == "axis")
      graph.setAttribute("axis", attribute.i());
  graph.setAttribute("reduction", StringRef("add"));
  std::string base = self;
  if (!countsSelf) {
    base = add("Where", {add("Greater", {counts, like(0)}), like(0), self});
    counts = add("Max", {counts, like(1)});
  }
  scatter.set_input(0, base);
  scatter.set_output(0, sums);
  auto &attributes = *scatter.mutable_attribute();
  attributes.erase(remove_if(attributes, [](const auto &attribute) { return attribute.name() == "reduction"; }),
                   attributes.end());
  auto &reduction = *scatter.add_attribute();
  reduction.set_name("reduction");
  reduction.set_type(::onnx::AttributeProto::STRING);
  reduction.set_s("add");
  graph.addNode("Div", {sums, counts}, name);
}

std::vector<std::string> lowtide::restoreScatterMeans(GraphProto &proto) {
  // A program that does not count what was there is written as two nodes: the first clears the places.
  MapVector<StringRef, SmallVector<NodeProto *>> scatters;
  for (NodeProto &node : *proto.mutable_node())
    if (isMeanOfScatter(node) && node.op_type() == "ScatterElements" && node.input_size() == 3)
      scatters[findProgramNote(node)].push_back(&node);
  std::vector<std::string> restored;
  if (scatters.empty())
    return restored;
  UnfoldingGraph graph(proto);
  StringSet<> cleared;
  for (auto &[note, nodes] : scatters) {
    NodeProto &last = *nodes.back();
    const bool isAlone = nodes.size() == 1, isChain = nodes.size() == 2 && last.input(0) == nodes.front()->output(0);
    if (includesSelf(last) ? !isAlone : !isChain)
      continue;
    restored.push_back(last.output(0));
    takeMeans(graph, last, nodes.front()->input(0));
    if (isChain)
      cleared.insert(nodes.front()->output(0));
  }
  auto &nodes = *proto.mutable_node();
  nodes.erase(
      remove_if(nodes,
                [&](const NodeProto &node) { return node.output_size() == 1 && cleared.contains(node.output(0)); }),
      nodes.end());
  return restored;
}
