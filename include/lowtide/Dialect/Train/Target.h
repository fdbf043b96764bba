//===- Target.h - the target of a module ------------------------*- C++ -*-===//
//
// Between the attribute `train.target` and the figures that passes and code generation ask for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/Train/Train.h"
#include "mlir/IR/BuiltinOps.h"

namespace lowtide::train {

/// Module attribute: what the module is compiled for, a TargetAttr.
inline constexpr llvm::StringLiteral targetAttrName = "train.target";

/// The target of the module that `op` is or is in; the default one where the module names none.
TargetInfo getTarget(mlir::Operation *op);
/// Whether the module names one.
bool hasTarget(mlir::ModuleOp module);
void setTarget(mlir::ModuleOp module, const TargetInfo &target);

/// The attribute of these figures, which have no fault.
TargetAttr makeTargetAttr(mlir::MLIRContext *context, const TargetInfo &target);
/// The figures of an attribute.
TargetInfo getTargetInfo(TargetAttr attribute);

} // namespace lowtide::train
