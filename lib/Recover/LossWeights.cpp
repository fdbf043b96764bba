//===- LossWeights.cpp - what weighs losses, in files without notes ---------------===//
//
// `BCEWithLogitsLoss(weight=w)`, a focal loss with a buffer of one factor for each class: files of PyTorch's old
// exporter list w like any parameter. What tells is its place: everything that reads it leads to the loss by sums,
// means and factors alone, and it multiplies a logarithm, a power or a distance. A parameter there has no least loss.
//
//===----------------------------------------------------------------------===//

#include "LossWeights.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Whether the operator only arranges its first operand, or spreads it.
static bool movesFirst(StringRef op) {
  return StringSwitch<bool>(op)
      .Cases({"Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Expand", "Transpose", "Slice"}, true)
      .Cases({"Gather", "GatherElements"}, true)
      .Default(false);
}

/// Whether the result is linear in operand `operand` while the others stay as they are.
static bool isLinearIn(const NodeProto &node, int operand) {
  const StringRef op = node.op_type();
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Sum")
    return true;
  return operand == 0 && (op == "Neg" || op == "Div" || op == "ReduceMean" || op == "ReduceSum" || movesFirst(op));
}

namespace {
class LossEnd {
public:
  explicit LossEnd(const GraphProto &graph);

  /// Whether all that reads initializer `name` multiplies losses by it, or sums it for their mean.
  bool isWeight(StringRef name) const;

private:
  using Reads = SmallVector<std::pair<const NodeProto *, int>, 2>;
  /// Whether `value` leads to the loss and only by linear operations.
  bool endsIn(StringRef value) const { return !elsewhere.contains(value) && readers.contains(value); }
  bool isLoss(StringRef value) const;
  bool isSumOf(StringRef value, StringRef name) const;

  StringMap<Reads> readers;
  StringMap<const NodeProto *> producers;
  StringSet<> elsewhere, outputs;
};
} // namespace

LossEnd::LossEnd(const GraphProto &graph) {
  for (const auto &output : graph.output()) {
    const auto &type = output.type().tensor_type();
    if (!type.has_shape() || any_of(type.shape().dim(), [](const auto &dim) { return dim.dim_value() != 1; }))
      return;
    outputs.insert(output.name());
  }
  for (const NodeProto &node : graph.node()) {
    // What a subgraph reads is in no list of operands.
    if (any_of(node.attribute(), [](const AttributeProto &a) { return a.has_g() || a.graphs_size() != 0; })) {
      readers.clear();
      return;
    }
    for (int i = 0; i != node.input_size(); ++i)
      readers[node.input(i)].emplace_back(&node, i);
    for (const std::string &output : node.output())
      producers[output] = &node;
  }
  for (const NodeProto &node : reverse(graph.node())) {
    const StringRef result = node.output_size() ? StringRef(node.output(0)) : "";
    const bool ends = outputs.contains(result) ? !readers.contains(result) : endsIn(result);
    for (int i = 0; i != node.input_size(); ++i)
      if (!ends || !isLinearIn(node, i))
        if (!(ends && node.op_type() == "Div" && i == 1))
          elsewhere.insert(node.input(i));
  }
}

/// Whether `value` is a loss of each element: what is computed of it element by element goes back to a function that
/// losses are made of, before any layer.
bool LossEnd::isLoss(StringRef value) const {
  constexpr size_t farthest = 32; // nodes
  SmallVector<StringRef> open{value};
  SmallPtrSet<const NodeProto *, 16> seen;
  while (!open.empty() && seen.size() < farthest) {
    const NodeProto *node = producers.lookup(open.pop_back_val());
    if (!node || !seen.insert(node).second)
      continue;
    const StringRef op = node->op_type();
    if (StringSwitch<bool>(op)
            .Cases({"Log", "LogSoftmax", "Softplus", "Abs", "Pow"}, true)
            .Cases({"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}, true)
            .Case("Mul", node->input_size() == 2 && node->input(0) == node->input(1))
            .Default(false))
      return true;
    if (movesFirst(op) || op == "Neg" || op == "ReduceSum" || op == "ReduceMean")
      open.push_back(node->input(0));
    else if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div")
      open.append(node->input().begin(), node->input().end());
    else if (op == "Where")
      open.append({node->input(1), node->input(2)});
  }
  return false;
}

/// Whether `value` is the sum of what is read of `name` alone: the divisor of a weighted mean.
bool LossEnd::isSumOf(StringRef value, StringRef name) const {
  bool sums = false;
  while (value != name) {
    const NodeProto *node = producers.lookup(value);
    if (!node || !(movesFirst(node->op_type()) || node->op_type() == "ReduceSum"))
      return false;
    sums |= node->op_type() == "ReduceSum";
    value = node->input(0);
  }
  return sums;
}

bool LossEnd::isWeight(StringRef name) const {
  if (!endsIn(name))
    return false;
  SmallVector<StringRef> open{name};
  bool multiplies = false;
  while (!open.empty()) {
    const StringRef value = open.pop_back_val();
    for (auto [node, operand] : readers.lookup(value)) {
      const StringRef op = node->op_type();
      if (op == "Mul" && isLoss(node->input(1 - operand)))
        multiplies = true;
      else if ((movesFirst(op) || op == "ReduceSum") && operand == 0)
        open.push_back(node->output(0));
      else if (op != "Div" || operand != 1 || !isSumOf(value, name))
        return false;
    }
  }
  return multiplies;
}

StringSet<> lowtide::findLossWeights(const GraphProto &graph) {
  StringSet<> found;
  const LossEnd end(graph);
  for (const auto &tensor : graph.initializer())
    if (end.isWeight(tensor.name()))
      found.insert(tensor.name());
  return found;
}
