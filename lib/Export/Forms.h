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
void attachStorageForms(mlir::MLIRContext *context);
void attachOptimizerForms(mlir::MLIRContext *context);

/// Zeros of `type` to which `updates` are added at `indices` (of equal shapes) along `axis`: 16-bit floats are added up
/// in f32 and rounded once, as everywhere, and because runtimes add no others.
mlir::Value writeScatterSum(FormBuilder &form, mlir::Value indices, mlir::Value updates, mlir::RankedTensorType type,
                            int64_t axis);

} // namespace lowtide
