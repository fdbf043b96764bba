//===- StepPass.cpp - passes on modules of steps --------------------------===//

#include "StepPass.h"
#include "lowtide/Codegen/Chips.h"
#include "lowtide/Pipeline.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowtide;

LogicalResult lowtide::checkStepShape(func::FuncOp function) {
  const char *fault = function.isExternal()                                              ? " has no body"
                      : !function.getBody().hasOneBlock()                                ? " is not one block"
                      : !isa<func::ReturnOp>(function.getBody().front().getTerminator()) ? " does not end in a return"
                                                                                         : nullptr;
  if (!fault)
    return success();
  InFlightDiagnostic error = function.emitError("@") << function.getSymName() << fault;
  error.attachNote() << "a step is one block of operations that ends in a return, without control flow";
  return error;
}

LogicalResult lowtide::checkStepShape(ModuleOp module) {
  return success(
      llvm::all_of(module.getOps<func::FuncOp>(), [](func::FuncOp step) { return succeeded(checkStepShape(step)); }));
}

LogicalResult lowtide::checkTarget(Operation *op, StringRef target) {
  const std::vector<std::string> targets = codegen::listTargets();
  if (target.empty() || llvm::is_contained(targets, target))
    return success();
  return op->emitError("unknown target '") << target << "'; there are " << llvm::join(targets, ", ");
}

LogicalResult lowtide::checkThreadsMax(Operation *op, unsigned threadsMax) {
  if (threadsMax >= 1 && threadsMax <= mostThreads)
    return success();
  return op->emitError("threads-max=") << threadsMax << " is not between 1 and " << mostThreads;
}
