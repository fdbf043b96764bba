//===- UnfoldOperands.cpp - learned operands of operations that take steps --------===//
//
// The exporter writes some operations in steps: the scores of attention as the product of q · √s and kᵀ · √s, `lerp`
// with w and with 1 − w, `addcmul(x, w, y, value=c)` and `add(x, w, alpha=c)` with c · w. Where an operand depends on
// no input (the queries of a decoder, a learned mixture), the steps are evaluated, and the file holds these. √s and a
// causal mask are made of the operands' sizes, and the notes say of them, too, that they come from the parameter.
//
// Which operand of the program an operation reads, its note tells, and numbers of steps are in the file. The operand is
// put back as if the exporter had evaluated no more than that.
//
//===----------------------------------------------------------------------===//

#include "ElementFunctions.h"
#include "Unfold.h"
#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"
#include "lowtide/Support/StableSort.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace llvm;
using namespace lowtide;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

static bool isOf(const NodeProto &node, StringRef operation) {
  return StringRef(findProgramOperator(node)).starts_with(operation);
}
static constexpr StringLiteral attention = "aten.scaled_dot_product_attention.", mixture = "aten.lerp.Tensor";

/// The one element of a tensor of floats.
static std::optional<float> numberOf(const UnfoldingGraph &graph, const TensorProto *tensor) {
  const std::vector<float> values = tensor ? valuesOf(graph, *tensor) : std::vector<float>();
  return values.size() == 1 ? std::optional(values.front()) : std::nullopt;
}

namespace {
/// A tensor that an operation's steps made of an operand.
struct Step {
  enum Form { Itself, OneLess, Scaled, TransposedScaled } form;
  const TensorProto *tensor;
  std::string operand; ///< what the program calls the operand
  double number = 1;   ///< of `Scaled` and `TransposedScaled`
  std::string factor;  ///< the initializer that holds it, if there is one
};

/// Who makes a value, and who reads it.
struct Graph {
  const UnfoldingGraph &graph;
  StringMap<const NodeProto *> makers;
  StringMap<SmallVector<const NodeProto *>> readers;

  explicit Graph(const UnfoldingGraph &graph) : graph(graph) {
    for (const NodeProto &node : graph.getGraph().node()) {
      for (const std::string &output : node.output())
        makers[output] = &node;
      for (const std::string &input : node.input())
        readers[input].push_back(&node);
    }
  }
};
} // namespace

/// A query or key, scaled, next to one that was not evaluated.
static std::optional<Step> findScaled(const Graph &graph, const NodeProto &node) {
  if (node.op_type() != "MatMul" || node.input_size() != 2 || !isOf(node, attention))
    return std::nullopt;
  const std::vector<std::string> operands = findProgramOperands(node);
  for (int side : {0, 1}) {
    const TensorProto *tensor = graph.graph.find(node.input(side));
    const NodeProto *other = graph.makers.lookup(node.input(1 - side));
    const bool isScaled = other && other->op_type() == "Mul" && findProgramNote(*other) == findProgramNote(node);
    // Keys that several queries share are repeated.
    if (!tensor || !isScaled || operands.size() < 3 || tensor->dims_size() < 2 || (side == 1 && sharesKeys(node)))
      continue;
    for (const std::string &factor : other->input())
      if (std::optional<float> number = numberOf(graph.graph, graph.graph.find(factor)); number && *number > 0)
        return Step{side == 0 ? Step::Scaled : Step::TransposedScaled, tensor, operands[size_t(side)], *number, factor};
  }
  return std::nullopt;
}

/// x + w · (y − x), or y − (y − x) · (1 − w).
static std::optional<Step> findMixed(const Graph &graph, const NodeProto &node) {
  if (node.op_type() != "Mul" || node.input_size() != 2 || !isOf(node, mixture))
    return std::nullopt;
  const std::vector<std::string> operands = findProgramOperands(node);
  const SmallVector<const NodeProto *> readers = graph.readers.lookup(node.output(0));
  if (operands.size() != 3 || readers.size() != 1 || findProgramNote(*readers.front()) != findProgramNote(node))
    return std::nullopt;
  const StringRef reader = readers.front()->op_type();
  for (const std::string &input : node.input())
    if (const TensorProto *tensor = graph.graph.find(input); tensor && (reader == "Add" || reader == "Sub"))
      return Step{reader == "Add" ? Step::Itself : Step::OneLess, tensor, operands[2], 1, ""};
  return std::nullopt;
}

/// c · w, the tensor that `node` reads as `input`, named `name`: the second of the operation's `count` operands.
static std::optional<Step> findTimes(const Graph &graph, const NodeProto &node, int input, StringRef name, size_t count,
                                     std::optional<double> number) {
  const std::vector<std::string> operands = findProgramOperands(node);
  const TensorProto *tensor = node.input_size() == 2 ? graph.graph.find(node.input(input)) : nullptr;
  if (!number || *number == 0 || !std::isfinite(*number) || operands.size() != count || !tensor ||
      operationName(tensor->name()) != name)
    return std::nullopt;
  return Step{*number == 1 ? Step::Itself : Step::Scaled, tensor, operands[1], *number, ""};
}

/// x + (c · w) · y, where the notes state c. The exporter calls the product so; y may have been evaluated as well.
static std::optional<Step> findProduct(const Graph &graph, const NodeProto &node) {
  return node.op_type() == "Mul" ? findTimes(graph, node, 0, "tmp", 3, findProgramFactor(node)) : std::nullopt;
}

/// x + c · w, or x − c · w, where the notes state c.
static std::optional<Step> findMultiple(const Graph &graph, const NodeProto &node) {
  const bool isSum = node.op_type() == "Add" || node.op_type() == "Sub";
  return isSum ? findTimes(graph, node, 1, "val", 2, findProgramAlpha(node)) : std::nullopt;
}

/// Operations whose steps are known.
static std::optional<Step> (*const findSteps[])(const Graph &, const NodeProto &) = {findScaled, findMixed, findProduct,
                                                                                     findMultiple};

/// Exchanges the last two of `dims`, and the elements with them.
static void exchangeLast(std::vector<float> &values, SmallVectorImpl<int64_t> &dims) {
  const size_t rows = size_t(dims[dims.size() - 2]), columns = size_t(dims.back());
  std::vector<float> turned(values.size());
  for (size_t at = 0; at != values.size(); ++at) {
    const size_t matrix = at / (rows * columns), row = at / columns % rows, column = at % columns;
    turned[matrix * rows * columns + column * rows + row] = values[at];
  }
  values = std::move(turned);
  std::swap(dims[dims.size() - 2], dims.back());
}

/// What the step was made of.
static std::vector<float> findOperand(const UnfoldingGraph &graph, const Step &step, SmallVectorImpl<int64_t> &dims) {
  std::vector<float> values = valuesOf(graph, *step.tensor);
  if (step.form == Step::OneLess)
    for (float &value : values)
      value = float(1 - double(value));
  if (step.form == Step::Scaled || step.form == Step::TransposedScaled)
    for (float &value : values)
      value = float(double(value) / step.number);
  if (step.form == Step::TransposedScaled)
    exchangeLast(values, dims);
  return values;
}

/// Has the step computed from `value`, of `rank` dimensions.
static void compute(UnfoldingGraph &graph, const Step &step, std::string value, size_t rank) {
  const std::string &name = step.tensor->name();
  switch (step.form) {
  case Step::Itself:
    graph.addNode("Identity", {value}, name);
    break;
  case Step::OneLess:
    graph.addNode("Sub", {graph.addNumber(1), value}, name);
    break;
  case Step::TransposedScaled: {
    SmallVector<int64_t> order = to_vector(seq<int64_t>(0, int64_t(rank)));
    std::swap(order[rank - 2], order[rank - 1]);
    value = graph.addNode("Transpose", {value});
    graph.setAttribute("perm", order);
    [[fallthrough]];
  }
  case Step::Scaled:
    graph.addNode("Mul", {value, step.factor.empty() ? graph.addNumber(float(step.number)) : step.factor}, name);
    break;
  }
  graph.remove(*step.tensor);
}

/// Whether numbers are equal but for what a step rounds.
static bool areNear(ArrayRef<float> values, ArrayRef<float> others, bool isDifference) {
  return values.size() == others.size() && all_of(zip(values, others), [&](auto pair) {
           auto [x, y] = pair;
           const double size = std::max({std::abs(double(x)), std::abs(double(y)), isDifference ? 1.0 : 0.0});
           return std::abs(double(x) - double(y)) <= 3e-7 * size;
         });
}

/// Puts the operand `name` back, made of the parameter and the operations in `made`, the parameter first.
static void restoreOperand(UnfoldingGraph &graph, const Step &step, const std::string &name,
                           std::vector<std::string> made) {
  const TensorProto &tensor = *step.tensor;
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  std::vector<float> values = findOperand(graph, step, dims);
  if (const TensorProto *held = graph.find(name)) {
    if (!llvm::equal(held->dims(), dims) || !areNear(valuesOf(graph, *held), values, step.form == Step::OneLess))
      return;
  } else {
    // What another operation reads of the same is not rounded.
    for (const auto &value : graph.getGraph().value_info())
      if (const TensorProto *other = graph.find(value.name()); other && other != &tensor && step.form != Step::Itself &&
                                                               llvm::equal(other->dims(), dims) &&
                                                               is_contained(findFoldedFrom(value), made.front()))
        if (std::vector<float> exact = valuesOf(graph, *other); areNear(exact, values, step.form == Step::OneLess))
          values = std::move(exact);
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    if (name == made.front()) {
      graph.addInitializer(
          name, dims, TensorProto::FLOAT, std::move(bytes),
          {tensor.name(), "the exporter evaluated a step of an operation of it as " + tensor.name(), false});
    } else {
      // Numbers of the steps are called so.
      llvm::erase_if(made, [&](StringRef from) {
        return from == name || is_contained({"val", "value", "value_cast"}, operationName(from));
      });
      graph.addEvaluated(name, dims, TensorProto::FLOAT, std::move(bytes), made);
    }
  }
  graph.setModule(moduleOf(made.front()));
  compute(graph, step, name, dims.size());
}

void lowtide::unfoldOperands(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  StringMap<std::vector<std::string>> notes;
  for (const auto &value : proto.value_info())
    if (const TensorProto *tensor = graph.find(value.name()); tensor && tensor->data_type() == TensorProto::FLOAT)
      notes[value.name()] = findFoldedFrom(value);
  SmallVector<Step> steps;
  const Graph known(graph);
  for (const NodeProto &node : proto.node())
    for (auto find : findSteps)
      if (std::optional<Step> step = find(known, node); step && notes.contains(step->tensor->name()))
        steps.push_back(std::move(*step));
  // What is not rounded comes first.
  sortStably(steps, [](const Step &a, const Step &b) { return a.form == Step::Itself && b.form != Step::Itself; });
  for (const Step &step : steps) {
    std::vector<std::string> made = notes.lookup(step.tensor->name());
    SmallVector<std::string> parameters;
    for (const std::string &name : made)
      if (const SignatureEntry *entry = signature.findTarget(name); entry && entry->kind == SignatureEntry::Parameter)
        parameters.push_back(name);
    const SignatureEntry *entry = signature.findPlaceholder(step.operand);
    const std::string name = entry ? entry->target : step.operand;
    if (parameters.size() != 1 || !is_contained(made, name) || graph.isRemoved(step.tensor->name()))
      continue;
    sortStably(made, [&](StringRef a, StringRef b) { return a == parameters.front() && b != parameters.front(); });
    restoreOperand(graph, step, name, std::move(made));
  }
}

/// Whether an operation reads nothing but the shape of its operand.
static bool readsShapeOnly(StringRef name) {
  return StringSwitch<bool>(operationName(name))
      .Cases({"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}, true)
      .Default(false);
}

/// Whether the numbers hide: zeros, and −∞ or the lowest number.
static bool isMask(ArrayRef<float> values) {
  auto hides = [](float x) { return x == -INFINITY || x == std::numeric_limits<float>::lowest(); };
  return any_of(values, hides) && all_of(values, [&](float x) { return x == 0 || hides(x); });
}

void lowtide::unfoldHiddenRows(UnfoldingGraph &graph, GraphProto &proto, const Signature &) {
  StringSet<> guarded;
  for (const NodeProto &node : proto.node())
    if (node.op_type() == "IsNaN" && isOfMaskedAttention(node))
      guarded.insert(findProgramNote(node));
  for (NodeProto &node : *proto.mutable_node())
    for (std::string &input : *node.mutable_input()) {
      // A mask of numbers is a value of the program, and goes by its name.
      const TensorProto *tensor = graph.find(input);
      if (node.op_type() != "Add" || !guarded.contains(findProgramNote(node)) || !tensor ||
          operationName(input) != "val")
        continue;
      std::vector<float> values = valuesOf(graph, *tensor);
      if (!isMask(values) || is_contained(values, -INFINITY))
        continue;
      for (float &value : values)
        value = value == 0 ? value : -INFINITY;
      std::string bytes(values.size() * sizeof(float), '\0'), name = input + "@hidden";
      std::memcpy(bytes.data(), values.data(), bytes.size());
      if (!graph.find(name))
        graph.addEvaluated(name, {tensor->dims().data(), size_t(tensor->dims_size())}, TensorProto::FLOAT,
                           std::move(bytes), {});
      input = std::move(name);
    }
}

/// Whether the program's recurrent layer has the parameter as a weight or a bias, and not as its first state.
static bool isOfLayer(const NodeProto &node, const SignatureEntry &entry) {
  const StringRef leaf = leafOf(entry.target);
  return is_contained(findProgramOperands(node), entry.placeholder) &&
         (leaf.starts_with("weight") || leaf.starts_with("bias"));
}

void lowtide::forgetShapes(UnfoldingGraph &graph, GraphProto &proto, const Signature &signature) {
  // Of attention, by whether all that read it do so as a factor or as a mask.
  StringMap<bool> ofAttention;
  for (const NodeProto &node : proto.node())
    for (const std::string &input : node.input()) {
      const TensorProto *tensor = graph.find(input);
      if (!tensor || operationName(input) != "val" || !isFloatType(tensor->data_type()))
        continue;
      const bool isSize = isOf(node, attention) && ((node.op_type() == "Mul" && numberOf(graph, tensor)) ||
                                                    (node.op_type() == "Add" && isMask(valuesOf(graph, *tensor))));
      ofAttention.try_emplace(input, true).first->second &= isSize;
    }
  // Weights and biases of recurrent layers, which are laid out by the size of the first state.
  StringMap<const NodeProto *> ofLayers;
  for (const NodeProto &node : proto.node())
    if (is_contained({"LSTM", "GRU", "RNN"}, node.op_type()))
      for (int operand : {1, 2, 3})
        if (operand < node.input_size())
          ofLayers[node.input(operand)] = &node;
  for (auto &value : *proto.mutable_value_info()) {
    if (!graph.find(value.name()))
      continue;
    const NodeProto *layer = ofLayers.lookup(value.name());
    const std::vector<std::string> all = findFoldedFrom(value);
    const bool isOfShape = readsShapeOnly(value.name()) || ofAttention.lookup(value.name());
    std::vector<std::string> made = all;
    // What was evaluated depends on no input's numbers.
    auto isOthers = [&](const SignatureEntry *entry) {
      return entry && (isOfShape || (layer && !isOfLayer(*layer, *entry)));
    };
    llvm::erase_if(
        made, [&](const std::string &name) { return signature.isInput(name) || isOthers(signature.findTarget(name)); });
    // Not all notes name the weights.
    if (layer && none_of(made, [&](const std::string &name) { return signature.findTarget(name); }))
      continue;
    if (made.size() != all.size())
      setFoldedFrom(value, made);
  }
}
