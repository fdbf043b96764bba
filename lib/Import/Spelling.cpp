//===- Spelling.cpp - one way of saying what can be said in several --------------===//
//
// `onnx.compose` lists the operator sets of both models that it joins. onnxruntime takes `ai.onnx` for the standard
// domain, and -1 for a size that is open. PyTorch's old exporter writes an instance norm that keeps statistics as a
// batch norm in the training form of operator sets below 14, whatever the set: five results, of which it reads one.
//
//===----------------------------------------------------------------------===//

#include "Spelling.h"

#include "onnx/onnx_pb.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace lowtide;

static void normalizeDomain(::onnx::NodeProto &node) {
  if (node.domain() == "ai.onnx")
    node.clear_domain();
}

static void openSizes(::onnx::ValueInfoProto &value) {
  if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape())
    return;
  for (auto &dim : *value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
    if (dim.has_dim_value() && dim.dim_value() == -1)
      dim.clear_value();
}

/// A batch norm with five results trains; later versions say so by an attribute, and have no place for the last two.
static void normalizeNorms(::onnx::GraphProto &graph) {
  llvm::StringSet<> read;
  for (const auto &node : graph.node())
    read.insert(node.input().begin(), node.input().end());
  for (const auto &output : graph.output())
    read.insert(output.name());
  for (auto &node : *graph.mutable_node()) {
    if (node.op_type() != "BatchNormalization" || !node.domain().empty() || node.output_size() != 5 ||
        read.contains(node.output(3)) || read.contains(node.output(4)))
      continue;
    node.mutable_output()->DeleteSubrange(3, 2);
    if (llvm::any_of(node.attribute(), [](const auto &attribute) { return attribute.name() == "training_mode"; }))
      continue;
    auto &mode = *node.add_attribute();
    mode.set_name("training_mode");
    mode.set_type(::onnx::AttributeProto::INT);
    mode.set_i(1);
  }
}

// The parse has bounded how deep graphs are.
static void normalizeGraph(::onnx::GraphProto &graph) {
  for (auto *values : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (auto &value : *values)
      openSizes(value);
  for (auto &node : *graph.mutable_node()) {
    normalizeDomain(node);
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        normalizeGraph(*attribute.mutable_g());
      for (auto &inner : *attribute.mutable_graphs())
        normalizeGraph(inner);
    }
  }
}

template <typename Opsets> static void normalizeOpsets(Opsets &opsets) {
  std::set<std::pair<std::string, int64_t>> seen;
  int kept = 0;
  for (int i = 0, e = opsets.size(); i != e; ++i) {
    if (opsets.Get(i).domain() == "ai.onnx")
      opsets.Mutable(i)->clear_domain();
    if (seen.insert({opsets.Get(i).domain(), opsets.Get(i).version()}).second)
      opsets.SwapElements(kept++, i);
  }
  opsets.DeleteSubrange(kept, opsets.size() - kept);
}

void lowtide::normalizeSpelling(::onnx::ModelProto &model) {
  normalizeOpsets(*model.mutable_opset_import());
  for (auto &function : *model.mutable_functions()) {
    normalizeOpsets(*function.mutable_opset_import());
    for (auto &node : *function.mutable_node())
      normalizeDomain(node);
  }
  if (!model.has_graph())
    return;
  normalizeGraph(*model.mutable_graph());
  if (llvm::any_of(model.opset_import(), [](const auto &set) { return set.domain().empty() && set.version() >= 14; }))
    normalizeNorms(*model.mutable_graph());
}
