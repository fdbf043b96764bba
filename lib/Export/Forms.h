//===- Forms.h - attaches ONNX forms to ops ---------------------*- C++ -*-===//
//
// Each family's file writes one function per op and attaches it here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Export/FormBuilder.h"

namespace lowtide {

template <typename Op, llvm::LogicalResult (*write)(Op, FormBuilder &)>
struct OnnxForm : OnnxFormInterface::ExternalModel<OnnxForm<Op, write>, Op> {
  llvm::LogicalResult writeOnnx(mlir::Operation *op, FormBuilder &form) const {
    return write(llvm::cast<Op>(op), form);
  }
};

/// Attaches `write` to `Op`.
template <typename Op, llvm::LogicalResult (*write)(Op, FormBuilder &)> void attachForm(mlir::MLIRContext *context) {
  Op::template attachInterface<OnnxForm<Op, write>>(*context);
}

void attachActivationForms(mlir::MLIRContext *context);
void attachMovementForms(mlir::MLIRContext *context);
void attachReductionForms(mlir::MLIRContext *context);
void attachContractionForms(mlir::MLIRContext *context);
void attachPoolingForms(mlir::MLIRContext *context);
void attachIndexingForms(mlir::MLIRContext *context);
void attachOptimizerForms(mlir::MLIRContext *context);

} // namespace lowtide
