//===- StepNotes.h - what reports are told of fitted steps -----*- C++ -*-===//
//
// Budget, recomputations and the memory before: attributes of a plan that its format has no field for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Report/Report.h"
#include "mlir/IR/BuiltinOps.h"

namespace lowtide {

/// The notes of a module's programs, for the artifact's `meta` section: budget and memory before it, which instructions
/// compute again, and what values are.
report::Notes noteProgram(mlir::ModuleOp module);

} // namespace lowtide
