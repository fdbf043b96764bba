//===- StepFinder.h - training steps in ONNX's own terms --------*- C++ -*-===//
//
// Reads `training_info` and the optimizers of ai.onnx.preview.training, and writes what they say as our metadata.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_STEPFINDER_H
#define LOWTIDE_LIB_IMPORT_STEPFINDER_H

#include "lowtide/Recover/Report.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include "onnx/onnx_pb.h"

namespace lowtide {

/// Whether an optimizer operator of `graph` updates an initializer.
bool hasUpdates(const ::onnx::GraphProto &graph);

/// Makes the gradients that a step's updates read outputs of it, bound as gradients: those that a node's metadata name
/// (our own models), and those that optimizers of ai.onnx.preview.training read. Notes it in the model's metadata if
/// one of them is not promised to be a derivative of the loss.
void addGradientOutputs(::onnx::ModelProto &model);

class StepFinder {
public:
  StepFinder(::onnx::ModelProto &model, Report &report) : model(model), graph(*model.mutable_graph()), report(report) {}

  /// Turns the model into a step with metadata.
  llvm::LogicalResult run();
  /// training_info: one graph out of two, and what is updated by what.
  llvm::LogicalResult joinAlgorithm();

private:
  /// Optimizer operators: tensors and state that are initializers are updated by the outputs; R and T are scalars.
  void readOptimizers();
  void bindUpdates();
  llvm::LogicalResult bindLoss();
  void bindInputs();

  ::onnx::ModelProto &model;
  ::onnx::GraphProto &graph;
  Report &report;
  /// Output that updates each initializer, in the order in which they were found.
  std::vector<std::pair<std::string, std::string>> updates;
  llvm::StringSet<> updated, states;
  /// The rate or the step number, by input.
  llvm::StringMap<std::string> scalars;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_STEPFINDER_H
