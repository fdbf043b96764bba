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
// where R is the reduction; a mean divides by the sum of the labels' weights. Labels that are probabilities are mixed
// with the uniform ones instead.
//
//===----------------------------------------------------------------------===//

#include "LabelSmoothing.h"

#include "Detached.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

/// Writes after `loss`, which gives up its name, what it lacks.
static void smooth(UnfoldingGraph &graph, NodeProto &loss, double smoothing) {
  const std::string name = loss.output(0), labels = loss.input(1), weights = loss.input_size() > 2 ? loss.input(2) : "";
  std::string reduction = "mean";
  std::optional<int64_t> ignored;
  for (const auto &attribute : loss.attribute())
    if (attribute.name() == "reduction")
      reduction = attribute.s();
    else if (attribute.name() == "ignore_index")
      ignored = attribute.i();
  const std::string hard = name + "@hard", logProbabilities = name + "@log_probabilities";
  loss.set_output(0, hard);
  loss.add_output(logProbabilities);

  graph.setModule(findModulePath(loss).value_or(""));
  auto add = [&](StringRef op, ArrayRef<std::string> inputs) { return graph.addNode(op, inputs); };
  auto reduce = [&](StringRef op, ArrayRef<std::string> inputs) {
    std::string result = graph.addNode(op, inputs);
    graph.setAttribute("keepdims", 0);
    return result;
  };
  auto like = [&](const std::string &value, const std::string &other) { return add("CastLike", {value, other}); };

  std::string perClass = logProbabilities;
  if (!weights.empty()) {
    // Classes are dimension 1, whatever the rank.
    const std::string rank = add("Size", {add("Shape", {logProbabilities})}), one = graph.addIntegers({}, {1});
    const std::string after = add("Range", {one, add("Sub", {rank, one}), one});
    perClass = add("Mul", {perClass, add("Unsqueeze", {weights, after})});
  }
  std::string each = reduce("ReduceMean", {perClass, graph.addIntegers({1}, {1})}), counts;
  if (ignored) {
    const std::string isIgnored = add("Equal", {labels, like(graph.addIntegers({}, {*ignored}), labels)});
    const std::string zero = like(graph.addNumber(0), logProbabilities);
    each = add("Where", {isIgnored, zero, each});
    if (weights.empty()) {
      counts = like(add("Not", {isIgnored}), logProbabilities);
    } else {
      const std::string rows = add("Where", {isIgnored, like(graph.addIntegers({}, {0}), labels), labels});
      counts = add("Where", {isIgnored, zero, add("Gather", {weights, rows})});
    }
  } else if (!weights.empty()) {
    counts = add("Gather", {weights, labels});
  }
  std::string reduced = each;
  if (reduction == "mean" && counts.empty())
    reduced = reduce("ReduceMean", {each});
  else if (reduction != "none")
    reduced = reduce("ReduceSum", {each});
  if (reduction == "mean" && !counts.empty())
    reduced = add("Div", {reduced, reduce("ReduceSum", {counts})});

  const std::string kept = add("Mul", {hard, like(graph.addNumber(float(1 - smoothing)), hard)});
  const std::string spread = add("Mul", {reduced, like(graph.addNumber(float(smoothing)), hard)});
  graph.addNode("Sub", {kept, spread}, name);
}

/// Labels that are a probability for each class are smoothed themselves: (1 - s) · t + s / C.
static void smoothProbabilities(UnfoldingGraph &graph, NodeProto &loss, double smoothing) {
  const std::string labels = loss.input(1);
  graph.setModule(findModulePath(loss).value_or(""));
  auto add = [&](StringRef op, ArrayRef<std::string> inputs) { return graph.addNode(op, inputs); };
  auto like = [&](const std::string &value) { return add("CastLike", {value, labels}); };
  const std::string classes = add("Gather", {add("Shape", {labels}), graph.addIntegers({}, {1})});
  const std::string kept = add("Mul", {labels, like(graph.addNumber(float(1 - smoothing)))});
  const std::string spread = add("Div", {like(graph.addNumber(float(smoothing))), like(classes)});
  loss.set_input(1, add("Add", {kept, spread}));
}

/// Values whose element type the file states to be a float, and what nodes without a stated type make of them that only
/// pass it on: those that were put in to detach.
static StringSet<> findFloats(const GraphProto &graph) {
  StringSet<> floats;
  for (const auto *values : {&graph.input(), &graph.value_info()})
    for (const auto &value : *values)
      if (isFloatType(value.type().tensor_type().elem_type()))
        floats.insert(value.name());
  for (const TensorProto &tensor : graph.initializer())
    if (isFloatType(tensor.data_type()))
      floats.insert(tensor.name());
  for (const NodeProto &node : graph.node())
    if (isDetach(node) && floats.contains(node.input(0)))
      floats.insert(node.output(0));
  return floats;
}

/// Whether another node of the same operation of the program goes on with the loss: then the exporter has written it
/// out.
static bool isWrittenOut(const NodeProto &loss, const GraphProto &graph) {
  return any_of(graph.node(), [&](const NodeProto &node) {
    return is_contained(node.input(), loss.output(0)) && findProgramNote(node) == findProgramNote(loss);
  });
}

std::vector<std::string> lowtide::restoreLabelSmoothing(GraphProto &proto) {
  SmallVector<std::pair<NodeProto *, double>> losses;
  for (NodeProto &node : *proto.mutable_node())
    if (node.op_type() == "SoftmaxCrossEntropyLoss" && node.output_size() == 1)
      if (std::optional<double> smoothing = findProgramSmoothing(node);
          smoothing.value_or(0) != 0 && !isWrittenOut(node, proto))
        losses.emplace_back(&node, *smoothing);
  std::vector<std::string> restored;
  if (losses.empty())
    return restored;
  const StringSet<> floats = findFloats(proto);
  UnfoldingGraph graph(proto);
  for (auto [loss, smoothing] : losses) {
    restored.push_back(loss->output(0));
    if (floats.contains(loss->input(1)))
      smoothProbabilities(graph, *loss, smoothing);
    else
      smooth(graph, *loss, smoothing);
  }
  // New nodes stay at the end: in front of the file's own they would hold their results until the loss.
  return restored;
}
