//===- BudgetFlips.h - what other budgets decide ----------------*- C++ -*-===//
//
// A step is planned at several budgets; on its instructions stands where they decide otherwise than its own
// (lowtide/Analysis/BudgetFlips.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/BudgetFlips.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <vector>

namespace lowtide {

/// Of each numbered instruction.
using BudgetDecisions = std::vector<BudgetDecision>;

/// Gives every instruction of the module's steps a number, by which it is known in plans that are made of it.
void numberInstructions(mlir::ModuleOp module);
/// What the plan in the module decides of instructions that were numbered.
BudgetDecisions readDecisions(mlir::ModuleOp module);
/// Puts flips in the place of numbers: `decided` holds what each budget in bytes decides, `ownBytes` among them.
void noteFlips(mlir::ModuleOp module, const std::map<uint64_t, BudgetDecisions> &decided, uint64_t ownBytes);

} // namespace lowtide
