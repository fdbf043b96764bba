//===- ShapeSources.cpp - what gave only its shape to an evaluated tensor ---------===//

#include "ShapeSources.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

void lowtide::dropShapeSources(::onnx::GraphProto &graph) {
  llvm::StringSet<> computed;
  for (const auto &input : graph.input())
    computed.insert(input.name());
  for (const auto &tensor : graph.initializer())
    computed.erase(tensor.name());
  for (const ::onnx::NodeProto &node : graph.node())
    if (node.op_type() != "Constant")
      computed.insert(node.output().begin(), node.output().end());
  for (auto &value : *graph.mutable_value_info()) {
    std::vector<std::string> sources = findFoldedFrom(value);
    const size_t before = sources.size();
    llvm::erase_if(sources, [&](const std::string &name) { return computed.contains(name); });
    if (sources.size() != before)
      setFoldedFrom(value, sources);
  }
}
