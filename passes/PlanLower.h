//===- PlanLower.h - from steps to plans ------------------------*- C++ -*-===//
//
// The pass `plan-lower` for programs that collect the kernels of many plans.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Codegen/KernelModule.h"
#include "mlir/Pass/Pass.h"

namespace lowtide {

/// What `plan-lower` writes into the plan besides the steps.
struct PlanLowerSettings {
  std::string producer = "lowtide";
  /// Whether the artifact will hold what starts from the model file; else nothing has an image.
  bool weights = true;
};

/// On a module: SHA-256 of the model file that it was made of, hexadecimal.
inline constexpr llvm::StringLiteral modelDigestAttrName = "onnx.model_digest";
/// The module next to a plan that holds the functions of its kernels.
inline constexpr llvm::StringLiteral kernelsModuleName = "kernels";

/// `plan-lower` that adds its kernels to `kernels`, which must outlive the pass.
std::unique_ptr<mlir::Pass> createPlanLower(codegen::KernelModule &kernels, PlanLowerSettings settings);

} // namespace lowtide
