//===- TensorFacts.cpp - initializers and who reads them --------------------------===//

#include "lowtide/Recover/TensorFacts.h"

#include "lowtide/OnnxModel/TensorData.h"
#include "lowtide/Recover/Evidence.h"

#include <cstring>

using namespace llvm;
using namespace lowtide;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

int64_t TensorFacts::getNumElements() const {
  return checkedElements({tensor->dims().data(), size_t(tensor->dims_size())}).value_or(0);
}

void lowtide::forEachRead(const GraphProto &graph, llvm::function_ref<void(StringRef, InitializerUse)> visit) {
  for (const NodeProto &node : graph.node()) {
    for (int i = 0, e = node.input_size(); i != e; ++i)
      visit(node.input(i), {&node, i});
    for (const AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        forEachRead(attribute.g(), visit);
      for (const GraphProto &inner : attribute.graphs())
        forEachRead(inner, visit);
    }
  }
}

std::vector<TensorFacts> lowtide::collectTensorFacts(const ModelView &file) {
  return collectTensorFacts(file.getModel().graph());
}

std::vector<TensorFacts> lowtide::collectTensorFacts(const GraphProto &graph) {
  std::vector<TensorFacts> facts;
  llvm::StringMap<size_t> index;
  for (const TensorProto &tensor : graph.initializer()) {
    index[tensor.name()] = facts.size();
    facts.push_back({&tensor, {}, false, {}});
  }
  forEachRead(graph, [&](StringRef name, InitializerUse use) {
    if (auto at = index.find(name); at != index.end())
      facts[at->second].uses.push_back(use);
  });
  for (const auto &output : graph.output())
    if (auto at = index.find(output.name()); at != index.end())
      facts[at->second].isGraphOutput = true;
  for (const auto &value : graph.value_info())
    if (auto at = index.find(value.name()); at != index.end())
      facts[at->second].foldedFrom = findFoldedFrom(value);
  return facts;
}

std::optional<bool> lowtide::isConstantValued(const ModelView &file, const TensorProto &tensor) {
  std::optional<std::string> bytes = file.tryReadInitializer(tensor.name());
  if (!bytes)
    return std::nullopt;
  const ElementType *type = findElementType(tensor.data_type());
  if (!type || !type->bytes || bytes->size() < type->bytes)
    return false;
  return std::memcmp(bytes->data(), bytes->data() + type->bytes, bytes->size() - type->bytes) == 0;
}

InitializerInfo lowtide::makeInfo(const TensorFacts &facts, std::string name, InitializerRole role, Certainty certainty,
                                  Reason reason) {
  InitializerInfo info;
  info.tensor = facts.tensor->name();
  info.name = std::move(name);
  info.role = role;
  info.certainty = certainty;
  info.reason = std::move(reason);
  info.dims.assign(facts.tensor->dims().begin(), facts.tensor->dims().end());
  info.dataType = facts.tensor->data_type();
  info.bytes = checkedBytes(info.getNumElements(), info.dataType).value_or(0);
  return info;
}
