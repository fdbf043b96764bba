//===- LaunchBatches.h - many small kernels in one launch -------*- C++ -*-===//
//
// The last thing that happens to a fitted step before it becomes a program of a GPU: kernels of one form go together.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace lowtide {

/// Exact: makes one kernel op, of emitter "batch", of kernels that share their code (codegen::getBatchForm) and may
/// wait for one another: nobody needs their results meanwhile, and the arena of no step grows. `target`, `cpu`: what
/// they run on, and the instruction
/// set of generated kernels. Fails, with a diagnostic, where code generation does or if a value of a step has changed.
llvm::LogicalResult batchLaunches(mlir::ModuleOp module, llvm::StringRef target, llvm::StringRef cpu,
                                  unsigned threadsMax);

} // namespace lowtide
