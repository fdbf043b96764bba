//===- LabelSmoothing.cpp - a part of cross-entropies that an exporter drops -----===//
//
// ONNX's SoftmaxCrossEntropyLoss has no label smoothing. PyTorch's current exporter writes the operator without a word
// where a program asks for it; the note keeps the operands, `(%logits, %labels, None, 1, -100, 0.1)`.
//
// With smoothing s, log-probabilities p of C classes, weights w and the labels that are not ignored, PyTorch computes
// (ATen/native/LossNLL.cpp, cross_entropy_loss_label_smoothing)
//
//   (1 - s) · nll + s · R(-Σ_c w_c p_c / C)
//
// where R is the reduction; a mean divides by the sum of the labels' weights.
//
//===----------------------------------------------------------------------===//

#include "LabelSmoothing.h"

#include "Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace {

/// Writes what one loss lacks behind it.
class SmoothedLoss {
public:
  using Nodes = ::google::protobuf::RepeatedPtrField<NodeProto>;

  SmoothedLoss(GraphProto &graph, Nodes &nodes, std::string name) : graph(graph), nodes(nodes), name(std::move(name)) {}

  void write(NodeProto loss, double smoothing) {
    const std::string labels = loss.input(1), weights = loss.input_size() > 2 ? loss.input(2) : "";
    std::string reduction = "mean";
    std::optional<int64_t> ignored;
    for (const auto &attribute : loss.attribute())
      if (attribute.name() == "reduction")
        reduction = attribute.s();
      else if (attribute.name() == "ignore_index")
        ignored = attribute.i();

    const std::string hard = name + "@hard";
    logProbabilities = name + "@log_probabilities";
    loss.set_output(0, hard);
    loss.add_output(logProbabilities);
    *nodes.Add() = std::move(loss);

    std::string perClass = logProbabilities;
    if (!weights.empty())
      perClass = add("Mul", {perClass, alongClasses(weights)});
    std::string each = add("ReduceMean", {perClass, addIntegers({1})}, /*keepdims=*/0);
    std::string counts;
    if (ignored) {
      const std::string isIgnored = add("Equal", {labels, like(addInteger(*ignored), labels)});
      const std::string zero = like(addNumber(0), logProbabilities);
      each = add("Where", {isIgnored, zero, each});
      if (weights.empty()) {
        counts = like(add("Not", {isIgnored}), logProbabilities);
      } else {
        const std::string rows = add("Where", {isIgnored, like(addInteger(0), labels), labels});
        counts = add("Where", {isIgnored, zero, add("Gather", {weights, rows})});
      }
    } else if (!weights.empty()) {
      counts = add("Gather", {weights, labels});
    }
    std::string reduced = each;
    if (reduction == "mean" && counts.empty())
      reduced = add("ReduceMean", {each}, 0);
    else if (reduction != "none")
      reduced = add("ReduceSum", {each}, 0);
    if (reduction == "mean" && !counts.empty())
      reduced = add("Div", {reduced, add("ReduceSum", {counts}, 0)});

    const std::string kept = add("Mul", {hard, like(addNumber(1 - smoothing), hard)});
    const std::string spread = add("Mul", {reduced, like(addNumber(smoothing), hard)});
    add("Sub", {kept, spread}, std::nullopt, name);
  }

private:
  std::string add(StringRef op, ArrayRef<std::string> inputs, std::optional<int64_t> keepDims = std::nullopt,
                  std::string output = "") {
    NodeProto &node = *nodes.Add();
    node.set_op_type(op.str());
    for (const std::string &input : inputs)
      node.add_input(input);
    if (output.empty())
      output = makeName();
    node.set_name(output);
    node.add_output(output);
    if (keepDims) {
      auto &attribute = *node.add_attribute();
      attribute.set_name("keepdims");
      attribute.set_type(::onnx::AttributeProto::INT);
      attribute.set_i(*keepDims);
    }
    return output;
  }

  /// `value` in the type of `other`.
  std::string like(const std::string &value, const std::string &other) { return add("CastLike", {value, other}); }

  /// One number per class, as a factor of log-probabilities of any rank: classes are dimension 1.
  std::string alongClasses(const std::string &weights) {
    const std::string rank = add("Size", {add("Shape", {logProbabilities})}), one = addInteger(1);
    return add("Unsqueeze", {weights, add("Range", {one, add("Sub", {rank, one}), one})});
  }

  std::string makeName() { return name + "@smoothing_" + std::to_string(counter++); }

  TensorProto &addConstant(TensorProto::DataType type) {
    TensorProto &tensor = *graph.add_initializer();
    tensor.set_name(makeName());
    tensor.set_data_type(type);
    return tensor;
  }
  std::string addNumber(double value) {
    TensorProto &tensor = addConstant(TensorProto::DOUBLE);
    tensor.add_double_data(value);
    return tensor.name();
  }
  std::string addInteger(int64_t value) {
    TensorProto &tensor = addConstant(TensorProto::INT64);
    tensor.add_int64_data(value);
    return tensor.name();
  }
  std::string addIntegers(ArrayRef<int64_t> values) {
    TensorProto &tensor = addConstant(TensorProto::INT64);
    tensor.add_dims(int64_t(values.size()));
    for (int64_t value : values)
      tensor.add_int64_data(value);
    return tensor.name();
  }

  GraphProto &graph;
  Nodes &nodes;
  std::string name, logProbabilities;
  unsigned counter = 0;
};

} // namespace

/// Whether another node of the same operation of the program goes on with the loss: then the exporter has written it
/// out.
static bool isWrittenOut(const NodeProto &loss, const GraphProto &graph) {
  return any_of(graph.node(), [&](const NodeProto &node) {
    return is_contained(node.input(), loss.output(0)) && findProgramNote(node) == findProgramNote(loss);
  });
}

std::vector<std::string> lowtide::restoreLabelSmoothing(GraphProto &graph) {
  std::vector<std::string> restored;
  StringMap<double> smoothings;
  for (const NodeProto &node : graph.node())
    if (node.op_type() == "SoftmaxCrossEntropyLoss" && node.output_size() == 1)
      if (std::optional<double> smoothing = findProgramSmoothing(node);
          smoothing.value_or(0) != 0 && !isWrittenOut(node, graph))
        smoothings[node.output(0)] = *smoothing;
  if (smoothings.empty())
    return restored;
  SmoothedLoss::Nodes nodes;
  for (NodeProto &node : *graph.mutable_node()) {
    auto smoothing = node.output_size() ? smoothings.find(node.output(0)) : smoothings.end();
    if (smoothing == smoothings.end()) {
      nodes.Add()->Swap(&node);
      continue;
    }
    restored.push_back(node.output(0));
    SmoothedLoss(graph, nodes, node.output(0)).write(node, smoothing->second);
  }
  graph.mutable_node()->Swap(&nodes);
  return restored;
}
