//===- LossWeights.cpp - what weighs losses ---------------------------------------===//
//
// `BCEWithLogitsLoss(weight=w)`, a focal loss with a buffer of one factor for each class: files of PyTorch's old
// exporter list w like any parameter, and so does every file where a program holds it as one (`requires_grad=False`).
// What tells is its place: everything that reads it leads to the loss by sums, means and factors alone, and it
// multiplies a logarithm, a power or a distance, perhaps after numbers were added and labels multiplied (`pos_weight`,
// quantiles). A parameter there has no least loss.
//
//===----------------------------------------------------------------------===//

#include "LossWeights.h"

#include "Detached.h"
#include "lowtide/Recover/Evidence.h"

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
      .Cases({"Gather", "GatherElements", "GatherND"}, true)
      .Default(false);
}

/// Whether the operand holds weights of classes.
static bool weighsClasses(StringRef op, int operand) {
  return operand == 2 && (op == "SoftmaxCrossEntropyLoss" || op == "NegativeLogLikelihoodLoss");
}

/// Whether the result is linear in operand `operand` while the others stay as they are.
static bool isLinearIn(const NodeProto &node, int operand) {
  const StringRef op = node.op_type();
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Sum")
    return true;
  if (weighsClasses(op, operand))
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
  bool isSquare(const NodeProto &product) const;
  bool isDeviation(StringRef value) const;
  bool isData(StringRef value) const;
  bool isNumber(StringRef value) const;
  bool isSumOf(StringRef value, StringRef name) const;
  bool isDetached(const NodeProto &node, StringRef operand) const;

  StringMap<Reads> readers;
  StringMap<const NodeProto *> producers;
  StringSet<> elsewhere, outputs, inputs, numbers;
};

constexpr size_t farthest = 32; // nodes that are looked at from one value
} // namespace

LossEnd::LossEnd(const GraphProto &graph) {
  for (const auto &input : graph.input())
    inputs.insert(input.name());
  for (const auto &tensor : graph.initializer()) {
    inputs.erase(tensor.name());
    if (all_of(tensor.dims(), [](int64_t extent) { return extent == 1; }))
      numbers.insert(tensor.name());
  }
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
            .Case("Mul", isSquare(*node))
            .Cases({"Relu", "Max", "Min", "Clip"}, any_of(node->input(), [&](const auto &x) { return isDeviation(x); }))
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

/// Whether both factors are one value; exporters write equal differences twice.
bool LossEnd::isSquare(const NodeProto &product) const {
  if (product.input_size() != 2)
    return false;
  const NodeProto *a = producers.lookup(product.input(0)), *b = producers.lookup(product.input(1));
  return product.input(0) == product.input(1) ||
         (a && b && a->op_type() == "Sub" && b->op_type() == "Sub" && equal(a->input(), b->input()));
}

/// Whether `value` is a difference from what the batch holds, as a pinball loss or a hinge is made of.
bool LossEnd::isDeviation(StringRef value) const {
  for (size_t steps = 0; steps != farthest; ++steps) {
    const NodeProto *node = producers.lookup(value);
    if (!node)
      return false;
    const StringRef op = node->op_type();
    if (op == "Sub" && node->input_size() == 2)
      return isData(node->input(0)) != isData(node->input(1));
    if (op != "Neg" && !movesFirst(op))
      return false;
    value = node->input(0);
  }
  return false;
}

/// Whether `value` is made of inputs of the model and single numbers alone.
bool LossEnd::isData(StringRef value) const {
  SmallVector<StringRef> open{value};
  SmallPtrSet<const NodeProto *, 16> seen;
  bool isOfBatch = false;
  while (!open.empty()) {
    const StringRef at = open.pop_back_val();
    const NodeProto *node = producers.lookup(at);
    isOfBatch |= inputs.contains(at);
    if (inputs.contains(at) || isNumber(at) || (node && !seen.insert(node).second))
      continue;
    if (!node || seen.size() == farthest)
      return false;
    open.append(node->input().begin(), node->input().end());
  }
  return isOfBatch;
}

/// Whether the graph holds `value` as a number.
bool LossEnd::isNumber(StringRef value) const {
  if (value.empty() || numbers.contains(value))
    return true;
  const NodeProto *node = producers.lookup(value);
  return node && (node->op_type() == "Constant" ||
                  ((node->op_type() == "Cast" || node->op_type() == "Identity") && isNumber(node->input(0))));
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

/// Whether the program detaches what `node` reads as `operand`. A term that is a weight times that trains the weight,
/// as the temperature of soft actor-critic, or nothing.
bool LossEnd::isDetached(const NodeProto &node, StringRef operand) const {
  const NodeProto *producer = producers.lookup(operand);
  return (producer && isDetach(*producer)) || any_of(findProgramOperands(node), isDetachName);
}

bool LossEnd::isWeight(StringRef name) const {
  if (!endsIn(name))
    return false;
  SmallVector<StringRef> open{name};
  SmallPtrSet<const NodeProto *, 16> seen;
  bool multiplies = false;
  while (!open.empty()) {
    const StringRef value = open.pop_back_val();
    for (auto [node, operand] : readers.lookup(value)) {
      const StringRef op = node->op_type();
      const StringRef other = node->input_size() == 2 ? StringRef(node->input(1 - operand)) : "";
      if (op == "Mul" && isDetached(*node, other))
        return false;
      if ((op == "Mul" && isLoss(other)) || weighsClasses(op, operand)) {
        multiplies = true;
        continue;
      }
      const bool isAffine = ((op == "Add" || op == "Sub") && isNumber(other)) ||
                            (op == "Mul" && (isNumber(other) || isData(other))) ||
                            (op == "Div" && operand == 0 && isNumber(other));
      const bool isMoved = (movesFirst(op) || op == "ReduceSum") && operand == 0;
      if (isAffine || isMoved) {
        // What ends here was added to the loss.
        if (outputs.contains(node->output(0)))
          return false;
        if (seen.insert(node).second)
          open.push_back(node->output(0));
      } else if (op != "Div" || operand != 1 || !isSumOf(value, name)) {
        return false;
      }
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
