//===- StepPass.cpp - passes on modules of steps --------------------------===//

#include "StepPass.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/ONNX/ONNX.h"
#include "lowtide/Dialect/Plan/Plan.h"
#include "lowtide/Support/OptionChoices.h"
#include "mlir/IR/Verifier.h"
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

LogicalResult lowtide::checkStaticArguments(func::FuncOp function, const llvm::Twine &rule) {
  for (BlockArgument argument : function.getArguments())
    if (auto tensor = dyn_cast<RankedTensorType>(argument.getType()); !tensor || !tensor.hasStaticShape())
      return emitError(argument.getLoc()) << "argument " << argument.getArgNumber() << " of @" << function.getSymName()
                                          << " is " << argument.getType() << "; " << rule;
  return success();
}

/// Whether a function is a model as the importer writes it.
static bool isImported(func::FuncOp function) {
  return llvm::any_of(function.getBody().front(), [](Operation &op) { return isa<onnx::NodeOp>(op); });
}

static bool hasKernel(func::FuncOp step) {
  return step.walk([](nn::KernelOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Whether a pass changes operations before they are in kernels, and none that is.
static bool comesBeforeKernels(StringRef pass) {
  return llvm::is_contained({"nn-fuse-patterns", "nn-split-sums", "nn-decompose", "nn-conv-layout", "nn-library-forms",
                             "train-chunk-loss-head", "train-tile-coded"},
                            pass);
}

void lowtide::noteOtherStage(Operation *op, StringRef pass) {
  // These are for that stage, or say themselves what they find.
  if (pass == "onnx-legalize" || pass == "verify-legal" || pass == "verify-budget")
    return;
  SmallVector<func::FuncOp> steps;
  if (auto module = dyn_cast<ModuleOp>(op))
    llvm::append_range(steps, module.getOps<func::FuncOp>());
  else if (auto step = dyn_cast<func::FuncOp>(op))
    steps.push_back(step);
  if (steps.empty() && llvm::hasSingleElement(cast<ModuleOp>(op).getOps<plan::ModuleOp>())) {
    op->emitRemark() << pass << " finds nothing to do: the module holds a plan, and no step";
    return;
  }
  for (func::FuncOp step : steps)
    if (isImported(step))
      step.emitRemark() << pass << " finds nothing to do: @" << step.getSymName()
                        << " is a model as it was imported; onnx-legalize makes a step of it";
    else if (comesBeforeKernels(pass) && hasKernel(step))
      step.emitRemark() << pass << " finds nothing to do: @" << step.getSymName()
                        << " is fitted, its operations are in kernels";
    else if (pass == "train-inline-saved" && !hasKernel(step) &&
             llvm::any_of(step.getOps(), [](Operation &op) { return op.hasTrait<OpTrait::Elementwise>(); }))
      step.emitRemark() << pass << " finds nothing to do: @" << step.getSymName()
                        << " holds no kernel; nn-cluster forms them";
}

bool lowtide::noteMissingPlan(ModuleOp module, StringRef pass) {
  if (!module.getOps<plan::ModuleOp>().empty())
    return true;
  module.emitRemark() << pass << " finds nothing to do: the module holds no plan; plan-lower makes one";
  return false;
}

LogicalResult lowtide::checkTarget(Operation *op, StringRef target) {
  if (std::optional<TargetInfo> known = findTarget(target); known && known->getArtifactTarget() == target)
    return success();
  return refuseTarget(op, target);
}

LogicalResult lowtide::refuseTarget(Operation *op, StringRef target) {
  InFlightDiagnostic error = op->emitError(describeUnknownTarget(target));
  error.attachNote() << "targets: " << llvm::join(listTargetNames(), ", ");
  return error;
}

LogicalResult lowtide::checkTypesAgree(Operation *op, const Twine &advice) {
  if (succeeded(verify(op)))
    return success();
  return op->emitError(advice);
}
