//===- TrainingInfo.cpp - a step in ONNX's own terms ----------------------===//
//
// 1. What the step's outputs (not its loss, unless there is nothing else) need is
//    the inference graph.
// 2. Everything else is the algorithm, which sees the graph's values by name.
//
//===----------------------------------------------------------------------===//
#include "TrainingInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <cstdlib>

using namespace lowtide;
using llvm::StringRef;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::ValueInfoProto;

static StringRef propOf(const ValueInfoProto &value, StringRef key) {
  for (const auto &prop : value.metadata_props())
    if (prop.key() == key)
      return prop.value();
  return "";
}

/// Names that a node reads, those of its subgraphs' outer values included.
static void forEachRead(const NodeProto &node, llvm::function_ref<void(StringRef)> visit) {
  for (const std::string &input : node.input())
    visit(input);
  for (const auto &attribute : node.attribute())
    if (attribute.has_g())
      for (const NodeProto &inner : attribute.g().node())
        forEachRead(inner, visit);
}

/// Moves the elements for which `isMoved` is true to the end of `to`, in order.
template <typename List> static void move(List &from, List &to, llvm::function_ref<bool(int)> isMoved) {
  List kept;
  for (int i = 0; i < from.size(); ++i)
    (isMoved(i) ? to : kept).Add()->Swap(from.Mutable(i));
  from.Swap(&kept);
}

/// The first value of a state: one number in all elements.
static std::string makeInitial(const ValueInfoProto &input, TensorProto &tensor) {
  const auto &type = input.type().tensor_type();
  tensor.set_name(input.name());
  tensor.set_data_type(type.elem_type());
  int64_t count = 1;
  for (const auto &dim : type.shape().dim()) {
    tensor.add_dims(dim.dim_value());
    count *= dim.dim_value();
  }
  const double value = std::strtod(propOf(input, "lowtide.initial").str().c_str(), nullptr);
  for (int64_t i = 0; i < count; ++i)
    switch (type.elem_type()) {
    case TensorProto::FLOAT:
      tensor.add_float_data(float(value));
      break;
    case TensorProto::DOUBLE:
      tensor.add_double_data(value);
      break;
    case TensorProto::INT32:
      tensor.add_int32_data(int32_t(value));
      break;
    case TensorProto::INT64:
      tensor.add_int64_data(int64_t(value));
      break;
    default:
      if (value != 0.0)
        return "state '" + input.name() + "' is of a type whose first value is only written as zero";
      // 16-bit types keep their bits in int32_data.
      tensor.add_int32_data(0);
    }
  return "";
}

std::string lowtide::partTrainingInfo(::onnx::ModelProto &model) {
  GraphProto &graph = *model.mutable_graph();
  auto kindOf = [](const ValueInfoProto &value) { return propOf(value, "lowtide.binding"); };
  const bool hasOutputs = llvm::any_of(graph.output(), [&](const auto &value) { return kindOf(value) == "output"; });
  auto isInferred = [&](const ValueInfoProto &value) { return kindOf(value) == (hasOutputs ? "output" : "metric"); };

  llvm::StringSet<> needed;
  for (const ValueInfoProto &output : graph.output())
    if (isInferred(output))
      needed.insert(output.name());
  if (needed.empty())
    return "the step has no output that an inference graph could compute";
  std::vector<char> inGraph(graph.node_size());
  for (int i = graph.node_size(); i-- > 0;) {
    const NodeProto &node = graph.node(i);
    inGraph[i] = llvm::any_of(node.output(), [&](const std::string &name) { return needed.contains(name); });
    if (inGraph[i])
      forEachRead(node, [&](StringRef name) { needed.insert(name); });
  }

  ::onnx::TrainingInfoProto &info = *model.add_training_info();
  GraphProto &algorithm = *info.mutable_algorithm();
  algorithm.set_name(graph.name() + ".algorithm");
  llvm::StringSet<> initialized;
  for (const TensorProto &tensor : graph.initializer())
    initialized.insert(tensor.name());
  for (const ValueInfoProto &input : graph.input()) {
    if (kindOf(input) != "state" || initialized.contains(input.name()))
      continue;
    if (std::string reason = makeInitial(input, *algorithm.add_initializer()); !reason.empty())
      return reason;
    initialized.insert(input.name());
  }
  llvm::StringMap<StringRef> updated;
  for (const ValueInfoProto &input : graph.input())
    if (kindOf(input) == "param" || kindOf(input) == "state")
      updated[propOf(input, "lowtide.name")] = input.name();
  for (const ValueInfoProto &output : graph.output()) {
    auto found = updated.find(propOf(output, "lowtide.name"));
    if ((kindOf(output) != "param" && kindOf(output) != "state") || found == updated.end())
      continue;
    if (!initialized.contains(found->second))
      return "'" + found->second.str() + "' has no value in the file, which only an initializer can be updated from";
    auto &binding = *info.add_update_binding();
    binding.set_key(found->second.str());
    binding.set_value(output.name());
  }

  llvm::StringSet<> made;
  for (int i = 0; i < graph.node_size(); ++i)
    if (!inGraph[i])
      made.insert_range(graph.node(i).output());
  move(*graph.mutable_value_info(), *algorithm.mutable_value_info(),
       [&](int i) { return made.contains(graph.value_info(i).name()); });
  move(*graph.mutable_node(), *algorithm.mutable_node(), [&](int i) { return !inGraph[i]; });
  // Parameters belong to the model, whoever reads them.
  auto isAlgorithms = [&](StringRef name, StringRef kind) {
    return kind != "param" && kind != "constant" && !needed.contains(name);
  };
  llvm::StringMap<std::string> kinds;
  for (const ValueInfoProto &input : graph.input())
    kinds[input.name()] = kindOf(input).str();
  move(*graph.mutable_initializer(), *algorithm.mutable_initializer(), [&](int i) {
    const std::string &name = graph.initializer(i).name();
    return isAlgorithms(name, kinds.lookup(name));
  });
  move(*graph.mutable_input(), *algorithm.mutable_input(),
       [&](int i) { return isAlgorithms(graph.input(i).name(), kindOf(graph.input(i))); });
  std::vector<char> isMoved;
  for (const ValueInfoProto &output : graph.output())
    isMoved.push_back(!isInferred(output));
  move(*graph.mutable_output(), *algorithm.mutable_output(), [&](int i) { return isMoved[i]; });
  return "";
}
