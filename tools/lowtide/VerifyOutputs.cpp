//===- VerifyOutputs.cpp - which module is the first that differs -*- C++ -*-===//
//
// The step is compiled once more, and returns what its modules return.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "VerifyModel.h"
#include "lowtide/Import/WatchedValues.h"
#include "onnx/onnx_pb.h"
#include "runtime/Session.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::driver;

/// The model as it lies on the disk; empty where it cannot be read.
static ::onnx::ModelProto readModel(const std::string &path) {
  ::onnx::ModelProto model;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer || !model.ParseFromArray((*buffer)->getBufferStart(), static_cast<int>((*buffer)->getBufferSize())))
    model.Clear();
  return model;
}

LogicalResult driver::loadWatched(OnnxFile &file, const Options &options) {
  ::onnx::ModelProto model = readModel(options.input);
  addOutputs(model, options.watched);
  const std::string bytes = model.SerializeAsString();
  return file.loadBytes(ArrayRef<char>(bytes.data(), bytes.size()));
}

std::optional<std::vector<verify::Row>> driver::compareModules(const Options &step, const verify::Record &record) {
  if (record.outputs.empty())
    return std::nullopt;
  const std::vector<WatchedValue> values = findModuleOutputs(readModel(step.input));
  if (values.empty())
    return verify::compareOutputs({}, record, step.tolerance);
  Options watched = step;
  for (const WatchedValue &value : values)
    watched.watched.push_back(value.name);
  watched.outputs = {"all"};
  watched.entries = {"gradient"};
  watched.output += ".modules";
  watched.verbosity = -1;
  if (Compilation(watched).compile())
    return std::nullopt;
  auto session = rt::Session::load(watched.output);
  if (!session)
    return std::nullopt;
  auto outputs = verify::runOutputs(**session, record, "gradient");
  if (!outputs)
    return std::nullopt;
  std::map<std::string, std::vector<const verify::Array *>> modules;
  for (const WatchedValue &value : values)
    for (const std::string &module : value.modules)
      if (auto found = outputs->find(value.name); found != outputs->end())
        modules[module].push_back(&found->second);
  return verify::compareOutputs(modules, record, step.tolerance);
}
