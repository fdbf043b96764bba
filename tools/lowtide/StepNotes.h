//===- StepNotes.h - what reports are told of fitted steps -----*- C++ -*-===//
//
// Budget, recomputations and the memory before: what a plan does not say.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Target/Report.h"
#include "mlir/IR/BuiltinOps.h"

namespace lowtide::driver {

/// The notes of a module's fitted steps, for the artifact's `meta` section: budget and memory before it.
report::Notes noteSteps(mlir::ModuleOp module);
/// Adds which instructions of the plan in `module` compute again, and what its values are.
void notePrograms(mlir::ModuleOp module, report::Notes &notes);

} // namespace lowtide::driver
