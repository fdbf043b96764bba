//===- ModelFile.cpp - names in a model file --------------------*- C++ -*-===//
//
// Read as the importer reads them; what modules return is told by the file as it lies on the disk.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Compiler/ModelFile.h"
#include "Compilation.h"
#include "lowtide/Recover/WatchedValues.h"
#include "onnx/onnx_pb.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace lowtide;

/// The model as it lies on the disk; empty where it cannot be read.
static ::onnx::ModelProto readModel(const std::string &path) {
  ::onnx::ModelProto model;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer || !model.ParseFromArray((*buffer)->getBufferStart(), static_cast<int>((*buffer)->getBufferSize())))
    model.Clear();
  return model;
}

LogicalResult Compilation::loadModel() {
  if (options.watched.empty())
    return sources.bytes ? file->loadBytes(ArrayRef<char>(sources.bytes->data(), sources.bytes->size())) : file->load();
  ::onnx::ModelProto model;
  if (!sources.bytes)
    model = readModel(sources.model);
  else if (!model.ParseFromString(*sources.bytes))
    model.Clear();
  addedOutputs = addOutputs(model, options.watched);
  const std::string bytes = model.SerializeAsString();
  return file->loadBytes(ArrayRef<char>(bytes.data(), bytes.size()));
}

ModelNames lowtide::readModelNames(const std::string &path, Listener *listener) {
  ModelNames names;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  DiagnosticCollector diagnostics(context, listener);
  OnnxFile file(context, path);
  if (failed(file.load())) {
    names.failure = {file.getFailure(), diagnostics.getFirstError()};
    return names;
  }
  const ::onnx::GraphProto &graph = file.getModel().graph();
  for (const auto &input : graph.input())
    names.inputs.push_back(input.name());
  for (const auto &output : graph.output())
    names.outputs.push_back(output.name());
  for (const auto &node : graph.node())
    names.nodes.push_back({node.name(), node.op_type(), {node.output().begin(), node.output().end()}});
  return names;
}

std::vector<ModuleOutput> lowtide::listModuleOutputs(const std::string &path) {
  std::vector<ModuleOutput> outputs;
  for (WatchedValue &value : findModuleOutputs(readModel(path)))
    outputs.push_back({std::move(value.name), std::move(value.modules)});
  return outputs;
}
