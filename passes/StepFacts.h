//===- StepFacts.h - what kernels and libraries need ------------*- C++ -*-===//
//
// Scratch, workspaces and permitted overwrites of a step's instructions, from
// code generation and from the runtime's libraries.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "mlir/Pass/AnalysisManager.h"

namespace lowtide {

namespace codegen {
class KernelModule;
}

/// Facts of every instruction of a module's steps and of the loops in them; kept from pass to pass.
class StepFacts {
public:
  explicit StepFacts(mlir::Operation *module) : module(module) {}

  /// Looks at every instruction that is not known yet. Fails, with a diagnostic, where code generation does, or on an
  /// op that is neither kernel nor library call.
  mlir::LogicalResult update(const TargetInfo &target);
  FactsTable &getTable() { return table; }
  /// Forgets all instructions: they are about to go.
  void clear() { table.clear(); }

  bool isInvalidated(const mlir::AnalysisManager::PreservedAnalyses &preserved) {
    return !preserved.isPreserved<StepFacts>();
  }

private:
  mlir::LogicalResult updateBlock(mlir::Block &block, const TargetInfo &target, codegen::KernelModule &kernels);

  mlir::Operation *module;
  FactsTable table;
};

} // namespace lowtide
