//===- StepPass.h - passes on modules of steps ------------------*- C++ -*-===//
//
// Every function of a module is a step, or the model that steps are made of: one block that ends in a return. Legal IR
// may hold others, which no pass has to think of.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "DeclaredChecks.h"
#include "Passes.h"
#include "lowtide/Dialect/Train/Target.h"

namespace lowtide {

/// Refuses a function without a body, of several blocks, or that ends in something else than a return; a module that
/// holds one.
mlir::LogicalResult checkStepShape(mlir::func::FuncOp function);
mlir::LogicalResult checkStepShape(mlir::ModuleOp module);

/// Refuses a function with an argument that is no tensor of static shape; `rule` says what is of those alone.
mlir::LogicalResult checkStaticArguments(mlir::func::FuncOp function, const llvm::Twine &rule);

/// Refuses a plan for a target that does not exist.
mlir::LogicalResult checkTarget(mlir::Operation *op, llvm::StringRef target);
/// Says that there is no such target, and which there are.
mlir::LogicalResult refuseTarget(mlir::Operation *op, llvm::StringRef target);

/// Says where a pass finds nothing to do because its input is of another stage: a plan has no steps, a model that is
/// not legalized has no operation that it knows.
void noteOtherStage(mlir::Operation *op, llvm::StringRef pass);
/// The same of a pass on plans where there is none; false then.
bool noteMissingPlan(mlir::ModuleOp module, llvm::StringRef pass);
/// Refuses what a change of types has left that its verifiers do not take; `advice` says what the pass is for.
mlir::LogicalResult checkTypesAgree(mlir::Operation *op, const llvm::Twine &advice);

/// A pass, of the base that TableGen made for it, that runs on steps or modules of steps only.
template <typename Base> class StepPass : public Base {
public:
  using Base::Base;

  void runOnOperation() final {
    if (failed(checkStepShape(this->getOperation())))
      return this->signalPassFailure();
    target = train::getTarget(this->getOperation());
    noteOtherStage(this->getOperation(), this->getArgument());
    runOnSteps();
  }

protected:
  virtual void runOnSteps() = 0;

  /// What the module is compiled for.
  TargetInfo target;
};

} // namespace lowtide
