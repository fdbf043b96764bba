//===- PlanLower.h - from steps to plans ------------------------*- C++ -*-===//
//
// The pass `plan-lower` for pipelines that need the kernels' machine code too.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Codegen/KernelModule.h"
#include "mlir/Pass/Pass.h"

namespace lowtide {

/// What `plan-lower` writes into the plan besides the steps.
struct PlanLowerSettings {
  /// "cpu:x86-64-v3", "reference".
  std::string target = "cpu:x86-64-v3";
  std::string producer = "lowtide";
  /// SHA-256 of the model file, hexadecimal.
  std::string modelDigest;
  /// Scratch of kernels is planned for this many threads.
  unsigned threadsMax = 8;
  /// Whether the artifact will hold what starts from the model file; else nothing has an image.
  bool weights = true;
};

/// `plan-lower` that adds its kernels to `kernels`, which must outlive the pass.
std::unique_ptr<mlir::Pass> createPlanLower(codegen::KernelModule &kernels, PlanLowerSettings settings);

} // namespace lowtide
