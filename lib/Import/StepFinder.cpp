//===- StepFinder.cpp - training steps in ONNX's own terms ----------------===//
//
// The training step is the inference graph and the algorithm joined (onnx.proto, TrainingInfoProto); its outputs of
// update_binding replace initializers after each run.
//
//===----------------------------------------------------------------------===//

#include "StepFinder.h"
#include "lowtide/Interfaces/BindingNames.h"
#include "lowtide/OnnxModel/NodeNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace lowtide;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::TrainingInfoProto;
using ::onnx::ValueInfoProto;

/// State tensors per parameter of an optimizer operator; nullopt for all other operators.
static std::optional<int> slotsOf(const NodeProto &node) {
  if (node.domain() != "ai.onnx.preview.training")
    return std::nullopt;
  return llvm::StringSwitch<std::optional<int>>(node.op_type())
      .Cases({"Momentum", "Adagrad"}, 1)
      .Case("Adam", 2)
      .Default(std::nullopt);
}

template <typename Message> static void addProp(Message &message, StringRef key, StringRef value) {
  auto *entry = message.add_metadata_props();
  entry->set_key(key.str());
  entry->set_value(value.str());
}

static void addBinding(ValueInfoProto &value, StringRef kind, StringRef name) {
  addProp(value, "lowtide.binding", kind);
  addProp(value, "lowtide.name", name);
}

static const TensorProto *findTensor(const ::onnx::GraphProto &graph, StringRef name) {
  for (const TensorProto &tensor : graph.initializer())
    if (tensor.name() == name)
      return &tensor;
  return nullptr;
}

bool lowtide::hasUpdates(const ::onnx::GraphProto &graph) {
  return llvm::any_of(graph.node(), [&](const NodeProto &node) {
    return slotsOf(node) && node.input_size() > 2 && findTensor(graph, node.input(2));
  });
}

namespace {
/// A tensor that an update reads as the gradient of a parameter.
struct FoundGradient {
  std::string tensor, param;
  bool isDerived;
};
} // namespace

static std::vector<FoundGradient> findGradients(const ::onnx::GraphProto &graph) {
  llvm::StringSet<> derived;
  std::vector<FoundGradient> found;
  for (const NodeProto &node : graph.node()) {
    if (node.op_type() == "Gradient" && node.domain() == "ai.onnx.preview.training")
      derived.insert_range(node.output());
    for (const auto &prop : node.metadata_props())
      if (prop.key() == "lowtide.gradient" && node.output_size() == 1)
        found.push_back({node.output(0), prop.value(), true});
  }
  for (const NodeProto &node : graph.node())
    if (std::optional<int> slots = slotsOf(node); slots && node.input_size() > 2) {
      int count = (node.input_size() - 2) / (2 + *slots);
      for (int i = 0; i < count && 2 + count + i < node.input_size(); ++i) {
        const std::string &tensor = node.input(2 + count + i);
        found.push_back({tensor, node.input(2 + i), derived.contains(tensor)});
      }
    }
  return found;
}

void lowtide::addGradientOutputs(::onnx::ModelProto &model) {
  ::onnx::GraphProto &graph = *model.mutable_graph();
  llvm::StringMap<const ValueInfoProto *> inputs;
  for (const ValueInfoProto &input : graph.input())
    inputs[input.name()] = &input;
  for (const FoundGradient &gradient : findGradients(graph)) {
    auto param = inputs.find(gradient.param);
    if (param == inputs.end())
      continue;
    // A node of its own: the tensor may be an output of the step already.
    const std::string name = "lowtide." + gradientName(gradient.param);
    NodeProto &copy = *graph.add_node();
    copy.set_op_type("Identity");
    copy.add_input(gradient.tensor);
    copy.add_output(name);
    ValueInfoProto &output = *graph.add_output();
    output.set_name(name);
    *output.mutable_type() = param->second->type();
    std::string bound = gradient.param;
    for (const auto &prop : param->second->metadata_props())
      if (prop.key() == "lowtide.name")
        bound = prop.value();
    addBinding(output, "gradient", gradientName(bound));
    if (!gradient.isDerived)
      addProp(model, "lowtide.gradients", "given");
  }
}

LogicalResult StepFinder::joinAlgorithm() {
  if (model.training_info_size() == 0)
    return success();
  if (model.training_info_size() > 1)
    report.add(
        {FindingKind::TrainingsSkipped, graph.name(), {}, {{"number", std::to_string(model.training_info_size())}}});
  const TrainingInfoProto &info = model.training_info(0);
  if (info.initialization().node_size())
    report.add({FindingKind::InitializationSkipped, graph.name()});
  llvm::StringSet<> inference;
  for (const TensorProto &tensor : graph.initializer())
    inference.insert(tensor.name());
  const ::onnx::GraphProto &algorithm = info.algorithm();
  for (const TensorProto &tensor : algorithm.initializer())
    *graph.add_initializer() = tensor;
  for (const ValueInfoProto &input : algorithm.input())
    *graph.add_input() = input;
  for (const NodeProto &node : algorithm.node())
    *graph.add_node() = node;
  for (const ValueInfoProto &value : algorithm.value_info())
    *graph.add_value_info() = value;
  for (const ValueInfoProto &output : algorithm.output())
    *graph.add_output() = output;
  for (const auto &binding : info.update_binding()) {
    if (!findTensor(graph, binding.key())) {
      report.errorAt(FailureKind::BadInput, binding.key(),
                     "update_binding names " + quoteName(binding.key()) + ", which is no initializer");
      return failure();
    }
    updates.emplace_back(binding.key(), binding.value());
    updated.insert(binding.key());
    // The algorithm's own tensors are its state.
    if (!inference.contains(binding.key()))
      states.insert(binding.key());
  }
  model.clear_training_info();
  return success();
}

void StepFinder::readOptimizers() {
  for (const NodeProto &node : graph.node()) {
    std::optional<int> slots = slotsOf(node);
    if (!slots || node.input_size() < 3)
      continue;
    scalars.try_emplace(node.input(0), rateScalar);
    scalars.try_emplace(node.input(1), stepScalar);
    int count = (node.input_size() - 2) / (2 + *slots);
    for (int i = 0; i < count; ++i)
      for (int slot = 0; slot <= *slots; ++slot) {
        int list = slot == 0 ? 0 : slot + 1, output = slot * count + i;
        int input = 2 + list * count + i;
        if (input >= node.input_size() || output >= node.output_size() || node.output(output).empty() ||
            !findTensor(graph, node.input(input)))
          continue;
        if (slot > 0)
          states.insert(node.input(input));
        if (updated.insert(node.input(input)).second)
          updates.emplace_back(node.input(input), node.output(output));
      }
  }
}

void StepFinder::bindUpdates() {
  for (const auto &[name, source] : updates) {
    const TensorProto *tensor = findTensor(graph, name);
    bool isFloat = tensor->data_type() == TensorProto::FLOAT || tensor->data_type() == TensorProto::DOUBLE ||
                   tensor->data_type() == TensorProto::FLOAT16 || tensor->data_type() == TensorProto::BFLOAT16;
    StringRef kind = isFloat && !states.contains(name) ? "param" : "state";
    auto describe = [&](ValueInfoProto &value) {
      auto *type = value.mutable_type()->mutable_tensor_type();
      type->set_elem_type(tensor->data_type());
      type->mutable_shape()->clear_dim();
      for (int64_t extent : tensor->dims())
        type->mutable_shape()->add_dim()->set_dim_value(extent);
      addBinding(value, kind, name);
    };
    auto find = [](auto &values, StringRef wanted) -> ValueInfoProto & {
      for (ValueInfoProto &value : values)
        if (value.name() == wanted)
          return value;
      ValueInfoProto &added = *values.Add();
      added.set_name(wanted.str());
      return added;
    };
    describe(find(*graph.mutable_input(), name));
    describe(find(*graph.mutable_output(), source));
  }
}

/// What Gradient differentiates is the loss; without that operator, an output of that name or the only scalar one.
LogicalResult StepFinder::bindLoss() {
  std::string loss;
  for (const NodeProto &node : graph.node())
    if (node.op_type() == "Gradient" && node.domain() == "ai.onnx.preview.training")
      for (const auto &attribute : node.attribute())
        if (attribute.name() == "y")
          loss = attribute.s();
  auto isFree = [](const ValueInfoProto &value) { return value.metadata_props_size() == 0; };
  SmallVector<ValueInfoProto *> scalarOutputs;
  for (ValueInfoProto &output : *graph.mutable_output()) {
    const auto &type = output.type().tensor_type();
    if (!isFree(output))
      continue;
    if (loss.empty() ? output.name() == "loss" : output.name() == loss) {
      addBinding(output, "metric", "loss");
      return success();
    }
    if (type.has_shape() && type.shape().dim_size() == 0)
      scalarOutputs.push_back(&output);
  }
  if (!loss.empty()) {
    ValueInfoProto &output = *graph.add_output();
    output.set_name(loss);
    addBinding(output, "metric", "loss");
    return success();
  }
  if (scalarOutputs.size() != 1) {
    report.errorAt(FailureKind::BadInput, graph.name(),
                   "the training step has " + Twine(scalarOutputs.size()) + " scalar outputs, so its loss is not known",
                   "call one of them 'loss'");
    return failure();
  }
  addBinding(*scalarOutputs[0], "metric", "loss");
  return success();
}

void StepFinder::bindInputs() {
  for (ValueInfoProto &input : *graph.mutable_input()) {
    if (input.metadata_props_size() || findTensor(graph, input.name()))
      continue;
    auto scalar = scalars.find(input.name());
    const auto &type = input.type().tensor_type();
    if (scalar != scalars.end() && type.shape().dim_size() == 0)
      addBinding(input, "scalar", scalar->second);
  }
}

LogicalResult StepFinder::run() {
  if (failed(joinAlgorithm()))
    return failure();
  readOptimizers();
  bindUpdates();
  if (failed(bindLoss()))
    return failure();
  bindInputs();
  addProp(model, "lowtide.entry", "train");
  return success();
}
