//===- VerifyModel.h - a model's training step next to PyTorch's -*- C++ -*-===//
#pragma once

#include "Options.h"
#include "ProofReport.h"
#include <optional>
#include <string>
#include <vector>

namespace lowtide::driver {

/// Compares the training step of a model with a record of it, or with the module that it was exported from. Prints
/// tables and what to type. Returns an exit code: 0 only when everything agrees, 9 when something differs.
int verifyModel(const Options &options);

/// Names in the model file, as `makeRecord` hands them on.
struct FileNames {
  std::vector<std::string> inputs, outputs;
};

/// Has the user's Python write the record of `module.py:make` to `path`. Returns an exit code; what went wrong is
/// printed.
int makeRecord(const Options &options, const FileNames &names, const std::string &path);

/// Has the user's Python write what ONNX Runtime computes at every node of the model. Returns an exit code.
int makeValues(const Options &options, const std::string &path);

/// Compares every node's forward value with ONNX Runtime's; names the first that differs. Returns an exit code.
int verifyNodes(const Options &options, const std::string &scratch);

/// The forward pass that a record's numbers are of: f64, no random numbers. Shapes are the batch's.
Options proofOptions(const Options &options, const std::string &artifact);
/// The batch binds what the file leaves open.
void bindShapes(const verify::Record &record, const FileNames &names, Options &step);
/// Names of inputs and outputs. Returns an exit code.
int readNames(const Options &options, FileNames &names);

/// Outputs of modules in the step that `step` describes next to those of the record, in the record's order. Nothing:
/// the record has none, or the step cannot be compiled with them.
std::optional<std::vector<verify::Row>> compareModules(const Options &step, const verify::Record &record);

} // namespace lowtide::driver
