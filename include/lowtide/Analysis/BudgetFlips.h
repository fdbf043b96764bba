//===- BudgetFlips.h - at which budgets a value's fate changes --*- C++ -*-===//
//
// Written by train-rematerialize on instructions, read by reports.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace lowtide {

/// What a plan does with the results of an instruction: they stay on the device until their last use, the instruction
/// runs again, or they are loaded from another memory.
enum class BudgetDecision : uint8_t { Keep, Recompute, Store };
inline constexpr unsigned numBudgetDecisions = 3;

/// Of the device budgets that were planned, the one nearest to the plan's own at which `decision` is taken instead.
struct BudgetFlip {
  BudgetDecision decision = BudgetDecision::Keep;
  /// That budget, and the next one towards the plan's own, where it is not taken: bytes, all told.
  uint64_t bytes = 0, nearerBytes = 0;
};

/// The device budgets that were planned: how many, the smallest and the largest in bytes, all told.
struct PlannedBudgets {
  uint64_t count = 0, leastBytes = 0, mostBytes = 0;
};

/// Attribute of an instruction: its BudgetFlips, first to a smaller budget, then to a larger one; three numbers each,
/// an array of i64. Absent: every planned budget decides alike. While those are planned it is the instruction's number,
/// an i64.
inline constexpr llvm::StringLiteral flipsAttrName = "train.flips";

/// Attribute of a step: its PlannedBudgets as an array of i64.
inline constexpr llvm::StringLiteral plannedBudgetsAttrName = "train.planned_budgets";

} // namespace lowtide
