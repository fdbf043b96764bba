//===- OperatorGroups.cpp - the operators of a model, grouped --------------------------===//

#include "OperatorGroups.h"

#include "lowtide/OnnxModel/NodeNames.h"
#include "lowtide/Recover/Evidence.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

static void collect(const ModelProto &model, const GraphProto &graph, StringMap<size_t> &index,
                    std::vector<OperatorGroup> &groups) {
  for (const NodeProto &node : graph.node()) {
    std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
    auto [at, isNew] = index.try_emplace(domain + "\n" + node.op_type(), groups.size());
    if (isNew) {
      groups.push_back({domain, node.op_type(), 0, {}});
      for (const auto &opset : model.opset_import())
        if (opset.domain() == domain || (domain.empty() && opset.domain() == "ai.onnx"))
          groups.back().version = opset.version();
    }
    std::optional<std::string> module = findModulePath(node);
    groups[at->second].places.push_back(module && !module->empty() ? *module : nodeLabel(node).str());
    for (const AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        collect(model, attribute.g(), index, groups);
      for (const GraphProto &inner : attribute.graphs())
        collect(model, inner, index, groups);
    }
  }
}

std::vector<OperatorGroup> lowtide::groupOperators(const ModelProto &model) {
  std::vector<OperatorGroup> groups;
  StringMap<size_t> index;
  collect(model, model.graph(), index, groups);
  return groups;
}
