//===- WatchedValues.cpp - what modules return, as outputs of a model -------------===//

#include "lowtide/Recover/WatchedValues.h"

#include "ModulePaths.h"

#include "lowtide/Recover/Evidence.h"

#include "llvm/ADT/StringSet.h"

using namespace lowtide;
using llvm::StringRef;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::ValueInfoProto;

/// Whether a value may be one that a module returns; files of PyTorch's old exporter do not state all types.
static bool mayBeFloat(const NodeProto &node, const ValueInfoProto *value) {
  const int type = value ? value->type().tensor_type().elem_type() : int(TensorProto::UNDEFINED);
  if (type == TensorProto::UNDEFINED)
    return node.op_type() != "Shape" && node.op_type() != "Constant" && node.op_type() != "ConstantOfShape";
  return type == TensorProto::FLOAT || type == TensorProto::DOUBLE || type == TensorProto::FLOAT16 ||
         type == TensorProto::BFLOAT16;
}

static bool isInside(StringRef path, StringRef module) {
  return path == module || (path.starts_with(module) && path.drop_front(module.size()).starts_with("."));
}

std::vector<WatchedValue> lowtide::findModuleOutputs(const ::onnx::ModelProto &model) {
  GraphProto graph = model.graph();
  ModulePaths(graph).annotate(graph);
  // By value: modules of its readers; the empty path is the module that is called.
  llvm::StringMap<std::vector<std::string>> readers;
  for (const NodeProto &node : graph.node())
    for (const std::string &input : node.input())
      readers[input].push_back(findModulePath(node).value_or(""));
  for (const ValueInfoProto &output : graph.output())
    readers[output.name()].push_back("");
  llvm::StringMap<const ValueInfoProto *> types;
  for (const ValueInfoProto &value : graph.value_info())
    types[value.name()] = &value;
  std::vector<WatchedValue> found;
  for (const NodeProto &node : graph.node()) {
    std::optional<std::string> path = findModulePath(node);
    for (const std::string &output : node.output()) {
      if (!path || output.empty() || !mayBeFloat(node, types.lookup(output)))
        continue;
      WatchedValue value{output, {}};
      for (StringRef module = *path; !module.empty(); module = moduleOf(module))
        if (llvm::any_of(readers[output], [&](const std::string &reader) { return !isInside(reader, module); }))
          value.modules.push_back(module.str());
      if (!value.modules.empty())
        found.push_back(std::move(value));
    }
  }
  return found;
}

std::vector<std::string> lowtide::addOutputs(::onnx::ModelProto &model, const std::vector<std::string> &names) {
  GraphProto &graph = *model.mutable_graph();
  llvm::StringSet<> outputs;
  for (const ValueInfoProto &output : graph.output())
    outputs.insert(output.name());
  llvm::StringMap<ValueInfoProto> types;
  for (const ValueInfoProto &value : graph.value_info())
    types[value.name()] = value;
  std::vector<std::string> missing;
  for (const std::string &name : names) {
    if (!outputs.insert(name).second)
      continue;
    missing.push_back(name);
    ValueInfoProto &added = *graph.add_output();
    if (auto type = types.find(name); type != types.end())
      added = type->second;
    added.set_name(name);
  }
  return missing;
}
