//===- StepSignature.h - models that hold a whole training step -*- C++ -*-===//
//
// A graph that already computes gradients and updates says which tensors are parameters, state, data and scalars: our
// own models in the metadata of their inputs and outputs (docs/onnx-model.md), others by `training_info` or by the
// optimizer operators of ai.onnx.preview.training.
//
//===----------------------------------------------------------------------===//

#ifndef LOWTIDE_LIB_IMPORT_STEPSIGNATURE_H
#define LOWTIDE_LIB_IMPORT_STEPSIGNATURE_H

#include "lowtide/Recover/Report.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "onnx/onnx_pb.h"

#include <optional>
#include <string>

namespace lowtide {

/// What an input or output of a step is bound to.
struct StepBinding {
  std::string kind; ///< param, state, constant, batch, scalar, metric, output
  std::string name;
  double initial = 0.0;  ///< state that no initializer holds
  int64_t batchDim = -1; ///< batch
};

/// Gives every step one form: `training_info` is joined with the graph, tensors that the step updates become inputs
/// and outputs with metadata, scalars lose the values that stand in for them. Leaves all other models alone. Fails
/// (and says why) on bindings that contradict the graph.
llvm::LogicalResult normalizeStep(::onnx::ModelProto &model, Report &report);

/// Whether the model, normalized, is a step.
bool isStep(const ::onnx::ModelProto &model);

/// The binding of an input or output of a normalized step; nullopt where its metadata say nothing.
std::optional<StepBinding> readBinding(const ::onnx::ValueInfoProto &value);
/// The binding of the input that initializer `name` is the value of.
std::optional<StepBinding> findInputBinding(const ::onnx::ModelProto &model, llvm::StringRef name);

/// Writes the bindings of a step as attributes `onnx.binding` of arguments and results, and `onnx.step` on `function`,
/// with the settings of optimizer and schedule as text.
void annotateStep(const ::onnx::ModelProto &model, mlir::func::FuncOp function);

} // namespace lowtide

#endif // LOWTIDE_LIB_IMPORT_STEPSIGNATURE_H
