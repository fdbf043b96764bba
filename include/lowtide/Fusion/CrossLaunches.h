//===- CrossLaunches.h - one traversal for rows and sums of columns -------===//
#pragma once

#include "lowtide/Analysis/StepProblem.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lowtide {

namespace codegen {
class KernelModule;
}

/// Puts column reductions of `step` into the launches that compute, or read, the same values row by row: the gradient
/// of a norm's input with those of its scale and offset, of a product's input with that of its bias. `kernels` decides
/// what a launch can do; no sum moves up past more than `reach` instructions. Calls `forget` for each op before it
/// goes. The number of kernels that are gone.
unsigned crossLaunches(mlir::func::FuncOp step, codegen::KernelModule &kernels, unsigned reach,
                       llvm::function_ref<void(mlir::Operation *)> forget);

} // namespace lowtide
