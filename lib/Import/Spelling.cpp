//===- Spelling.cpp - one way of saying what can be said in several --------------===//
//
// `onnx.compose` lists the operator sets of both models that it joins. onnxruntime takes `ai.onnx` for the standard
// domain, and -1 for a size that is open.
//
//===----------------------------------------------------------------------===//

#include "Spelling.h"

#include "onnx/onnx_pb.h"

#include "llvm/ADT/STLExtras.h"

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
  if (model.has_graph())
    normalizeGraph(*model.mutable_graph());
}
