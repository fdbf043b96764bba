//===- LookupFrequency.cpp - gradients divided by how often a row is looked up ---===//
//
// PyTorch's `Embedding(scale_grad_by_freq=True)` divides the gradient of each row by the number of look-ups of that row
// in the batch. ONNX has no word for it; the exporter's note keeps the operand, `(%weight, %indices, -1, True)`.
//
// Of a row y that is looked up n times, `y.detach() + (y - y.detach()) / n` has y's value and an n-th of its gradient.
//
//===----------------------------------------------------------------------===//

#include "LookupFrequency.h"

#include "Detached.h"
#include "Unfold.h"

#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"
#include "lowtide/Recover/NodeNotes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Whether node looks up rows of the table of its operation. An embedding bag is several nodes, of which the one that
/// reads a matrix of the file does.
static bool isLookup(const NodeProto &node, const UnfoldingGraph &graph) {
  if (node.op_type() != "Gather" || node.input_size() != 2 || !scalesGradientByFrequency(node) ||
      any_of(node.attribute(), [](const auto &attribute) { return attribute.name() == "axis" && attribute.i() != 0; }))
    return false;
  const TensorProto *table = graph.find(node.input(0));
  return findProgramPaddingRow(node) || (table && table->dims_size() == 2 && isFloatType(table->data_type()));
}

/// Writes after `lookup`, which gives up its name, what it lacks.
static void divide(UnfoldingGraph &graph, NodeProto &lookup) {
  const std::string name = lookup.output(0), table = lookup.input(0), rows = lookup.input(1), plain = name + "@plain";
  lookup.set_output(0, plain);
  graph.setModule(findModulePath(lookup).value_or(""));
  auto add = [&](StringRef op, ArrayRef<std::string> inputs) { return graph.addNode(op, inputs); };
  auto fill = [&](float value, const std::string &shape) {
    return add("CastLike", {add("Expand", {graph.addNumber(value), shape}), plain});
  };
  const std::string all = add("Reshape", {rows, graph.addIntegers({1}, {-1})});
  const std::string none = fill(0, add("Gather", {add("Shape", {table}), graph.addIntegers({1}, {0})}));
  const std::string counts = add("ScatterElements", {none, all, fill(1, add("Shape", {all}))});
  graph.setAttribute("reduction", StringRef("add"));
  const std::string times = add("Unsqueeze", {add("Gather", {counts, rows}), graph.addIntegers({1}, {-1})});
  const std::string still = add("Identity", {plain});
  graph.setAttribute(detachedAttrName, 1);
  graph.addNode("Add", {still, add("Div", {add("Sub", {plain, still}), times})}, name);
}

Recovered lowtide::restoreLookupFrequency(GraphProto &proto) {
  Recovered found;
  if (none_of(proto.node(), scalesGradientByFrequency))
    return found;
  UnfoldingGraph graph(proto);
  MapVector<StringRef, SmallVector<NodeProto *>> lookups; // by operation: its nodes share a note
  StringMap<std::string> results;
  for (NodeProto &node : *proto.mutable_node()) {
    if (!scalesGradientByFrequency(node) || node.output_size() == 0)
      continue;
    const StringRef note = findProgramNote(node);
    results[note] = node.output(0);
    if (lookups[note]; isLookup(node, graph))
      lookups[note].push_back(&node);
  }
  for (auto &[note, nodes] : lookups) {
    if (nodes.size() != 1) {
      found.unknown.push_back(results[note]);
      continue;
    }
    if (!is_contained(found.restored, nodes.front()->input(0)))
      found.restored.push_back(nodes.front()->input(0));
    divide(graph, *nodes.front());
  }
  return found;
}
