//===- ModelFile.h - names in a model file ----------------------*- C++ -*-===//
//
// What programs that compare a step with the model's own program ask of the file; nothing is compiled.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Compiler/Listener.h"
#include "lowtide/Support/Failure.h"
#include <string>
#include <vector>

namespace lowtide {

/// A node as the importer leaves it: functions are inlined.
struct ModelNode {
  std::string name, op;
  std::vector<std::string> outputs;
};

struct ModelNames {
  Failure failure;
  std::vector<std::string> inputs, outputs;
  std::vector<ModelNode> nodes;
};

/// Reads an ONNX file; errors go to `listener`.
ModelNames readModelNames(const std::string &path, Listener *listener = nullptr);

/// A value that modules of the exported program return, and these modules.
struct ModuleOutput {
  std::string value;
  std::vector<std::string> modules;
};

/// Of a file that says which module a node came from; empty: it does not, or it cannot be read.
std::vector<ModuleOutput> listModuleOutputs(const std::string &path);

} // namespace lowtide
