//===- StepUpdates.h - the updates that a step came with --------*- C++ -*-===//
//
// A step of a file that holds its backward pass, taken apart at its gradients, so that these can be scaled and clipped.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/Train/LossScaling.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace lowtide {

/// A step whose bound gradients are those that its own updates read.
class StepUpdates {
public:
  /// Fails, with a diagnostic that says what to type next, if the step does not say which values are gradients, scales
  /// its loss already, or updates a parameter by more than its gradient.
  static mlir::FailureOr<StepUpdates> find(mlir::ModuleOp module, mlir::func::FuncOp step);

  /// Derives the gradients anew from the loss, whose cotangent is the scale. Fails, with a diagnostic, where the file
  /// does not promise that its gradients are the loss's derivatives.
  llvm::LogicalResult derive(const train::LossScale &scale);

  /// Writes the updates again, for what the bound gradients are by now; where there is an output `finite`, they are
  /// made only if it is true, and skipped steps do not count. Takes these outputs out of the step.
  llvm::LogicalResult rebuild();

private:
  explicit StepUpdates(mlir::func::FuncOp step) : step(step) {}
  mlir::Operation *getTerminator() { return step.getBody().front().getTerminator(); }
  llvm::LogicalResult collect(unsigned result, const llvm::DenseSet<mlir::Value> &ends);

  mlir::func::FuncOp step;
  /// By parameter, the gradient as it came.
  llvm::MapVector<mlir::StringAttr, mlir::Value> gradients;
  /// Ops that make updates of gradients, and numbers of the results that are updates.
  llvm::SetVector<mlir::Operation *> ops;
  llvm::SetVector<unsigned> updates;
};

/// Attribute of a step: the file wrote its gradients out, they need not be derivatives of its loss.
inline constexpr llvm::StringLiteral givenGradientsAttrName = "train.given_gradients";

/// On a module: its steps get entries for other batches, parts or precisions, which have the same state.
inline constexpr llvm::StringLiteral entryVariantsAttrName = "train.entry_variants";

} // namespace lowtide
