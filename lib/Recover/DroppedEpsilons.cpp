//===- DroppedEpsilons.cpp - small numbers that an optimizer dropped --------------------===//
//
// PyTorch's exporter rewrites `x + 0` to `x`, and takes every number up to 1e-8 for zero (onnxscript's rewriter
// compares constants within that tolerance). Programs write `log(p + 1e-8)` and `x / sqrt(s + 1e-8)` so that zeros do
// no harm; without the number they give infinities and NaN. The notes remain: the logarithm says that it read `%add_1`.
//
//===----------------------------------------------------------------------===//

#include "DroppedEpsilons.h"

#include "ProgramNames.h"
#include "Unfold.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// The largest number that is dropped, and the one that programs write most.
static constexpr float droppedNumber = 1e-8f;

/// What PyTorch's `cosine_embedding_loss` adds to each sum of squares.
static constexpr float cosineNumber = 1e-12f;

namespace {
/// Operands at which zero is no place for an operator, or for what reads its result after moving elements.
class SingularOperands {
public:
  explicit SingularOperands(const GraphProto &graph) {
    for (const NodeProto &node : graph.node())
      if (node.op_type() == "Sqrt" && node.input_size() == 1)
        underRoots.insert(node.input(0));
    for (const NodeProto &node : reverse(graph.node()))
      for (const int at : find(node))
        if (at < node.input_size())
          read.insert(node.input(at));
  }

  SmallVector<int, 2> find(const NodeProto &node) const {
    const StringRef op = node.op_type();
    if (any_of(node.output(), [&](const std::string &output) { return read.contains(output); })) {
      if (op == "Concat")
        return to_vector<2>(seq<int>(0, node.input_size()));
      // Not "Gather": sums of groups, which their members look up, are not zero.
      if (is_contained({"Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Split", "Expand"}, op))
        return {0};
    }
    if (op == "Div")
      return {1};
    if (op == "Log" || op == "Sqrt" || op == "Reciprocal" || op == "Pow")
      return {0};
    // √(a · b) of two lengths' squares
    if (op == "Mul" && node.output_size() == 1 && underRoots.contains(node.output(0)))
      return {0, 1};
    return {};
  }

private:
  StringSet<> underRoots;
  /// Values that are read where zero is no place.
  StringSet<> read;
};
} // namespace

std::vector<std::string> lowtide::restoreDroppedEpsilons(GraphProto &graph) {
  std::vector<std::string> restored;
  struct Producer {
    std::string note;
    bool isSum;
  };
  StringMap<Producer> producers;
  for (const NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      producers[output] = {findProgramNote(node).str(), StringRef(findProgramOperator(node)).starts_with("aten.add.")};
  StringMap<int> types;
  for (const auto *values : {&graph.input(), &graph.value_info(), &graph.output()})
    for (const auto &value : *values)
      types[value.name()] = value.type().tensor_type().elem_type();

  StringSet<> held;
  for (const TensorProto &tensor : graph.initializer())
    held.insert(tensor.name());

  const SingularOperands singular(graph);
  /// The sums that are put back, with what a number is added to.
  StringMap<std::string> sums;
  ::google::protobuf::RepeatedPtrField<NodeProto> nodes;
  for (NodeProto &node : *graph.mutable_node()) {
    std::vector<std::string> operands = findProgramOperands(node);
    for (const int at : singular.find(node)) {
      // An operand that is a number has no name: then the places differ.
      if (at >= node.input_size() ||
          (operands.size() != size_t(node.input_size()) && (at != 0 || operands.size() != 1)))
        continue;
      const std::string value = node.input(at), sum = operands[at];
      auto producer = producers.find(value);
      // What the program adds twice may have been merged; another operation's result is no sum.
      const bool isOther = producer == producers.end()
                               ? types.contains(value)
                               : !producer->second.isSum && producer->second.note != findProgramNote(node);
      const bool isLost = operationName(sum) == "add" && !producers.contains(sum) && !held.contains(sum) && isOther &&
                          types.lookup(value) == TensorProto::FLOAT;
      if (auto [found, isNew] = isLost ? sums.try_emplace(sum, value) : std::pair(sums.end(), false);
          isLost && found->second == value) {
        if (isNew) {
          restored.push_back(sum);
          NodeProto &add = *nodes.Add();
          add.set_op_type("Add");
          add.set_name(sum);
          add.add_input(value);
          add.add_input(sum + "_dropped");
          add.add_output(sum);
          for (const auto &note : node.metadata_props())
            if (note.key() == moduleScopesKey || note.key() == "namespace")
              *add.add_metadata_props() = note;
          TensorProto &number = *graph.add_initializer();
          number.set_name(sum + "_dropped");
          number.set_data_type(TensorProto::FLOAT);
          number.add_float_data(node.op_type() == "Mul" ? cosineNumber : droppedNumber);
        }
        node.set_input(at, sum);
      }
    }
    *nodes.Add() = std::move(node);
  }
  graph.mutable_node()->Swap(&nodes);
  return restored;
}

static bool isUnreducedLoss(const NodeProto &node) {
  return (node.op_type() == "SoftmaxCrossEntropyLoss" || node.op_type() == "NegativeLogLikelihoodLoss") &&
         node.output_size() == 1 && any_of(node.attribute(), [](const auto &attribute) {
           return attribute.name() == "reduction" && attribute.s() == "none";
         });
}

std::vector<std::string> lowtide::restoreLostReductions(GraphProto &graph) {
  std::vector<std::string> restored;
  Signature signature(graph);
  if (!signature.isPresent() || none_of(graph.node(), isUnreducedLoss))
    return restored;
  ProgramNames names(graph, signature);
  auto isLostReduction = [&](StringRef name) {
    return (operationName(name) == "sum" || operationName(name) == "mean") && names.isLost(name);
  };
  ::google::protobuf::RepeatedPtrField<NodeProto> nodes;
  StringMap<std::string> losses; // and what they are called from now on
  auto reduce = [&](const std::string &loss, StringRef name, const std::string &output) {
    if (is_contained(restored, name))
      return;
    restored.push_back(name.str());
    NodeProto &node = *nodes.Add();
    node.set_op_type(operationName(name) == "sum" ? "ReduceSum" : "ReduceMean");
    node.set_name(name.str());
    node.add_input(loss);
    node.add_output(output);
    auto &keep = *node.add_attribute();
    keep.set_name("keepdims");
    keep.set_type(::onnx::AttributeProto::INT);
    keep.set_i(0);
  };
  for (NodeProto &node : *graph.mutable_node()) {
    for (auto [operand, input] : enumerate(*node.mutable_input())) {
      auto loss = losses.find(input);
      std::string name = loss == losses.end() ? "" : names.find(node, int(operand));
      if (loss == losses.end())
        continue;
      if (isLostReduction(name))
        reduce(loss->second, name, name);
      input = isLostReduction(name) ? name : loss->second;
    }
    NodeProto &kept = *nodes.Add();
    kept.Swap(&node);
    if (!isUnreducedLoss(kept))
      continue;
    std::string value = kept.output(0);
    losses[value] = value;
    for (auto [output, name] : zip(graph.output(), signature.getOutputs()))
      if (output.name() == value && isLostReduction(name)) {
        losses[value] = value + "@unreduced";
        kept.set_output(0, losses[value]);
        reduce(losses[value], name, value);
        break;
      }
  }
  graph.mutable_node()->Swap(&nodes);
  return restored;
}
