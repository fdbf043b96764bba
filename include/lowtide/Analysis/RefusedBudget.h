//===- RefusedBudget.h - what a budget lacks --------------------*- C++ -*-===//
//
// Figures of a refusal, next to the words of its error: what a program that asks for budgets goes by.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

/// A budget that no plan keeps. Bytes are everything that the runtime allocates.
struct RefusedBudget {
  uint64_t budgetBytes = 0;
  uint64_t smallestBytes = 0; ///< of the smallest plan found
  uint64_t leastBytes = 0;    ///< needed whatever is recomputed
  uint64_t largestBytes = 0;  ///< without recomputation
  /// Options of which each lets a smaller budget do, or of a budget that does: "--micro-batches=2".
  std::vector<std::string> advice = {};
};

/// Leaves on a module what its steps take without a budget, where their form is another then: only a budget asks for
/// loss heads in finer parts and for segments of steps that recompute. 0 takes it off.
void setUnplannedBytes(mlir::ModuleOp module, uint64_t bytes);
/// 0: nothing is known.
uint64_t getUnplannedBytes(mlir::ModuleOp module);

/// Leaves on a module why its steps were refused.
void setRefusedBudget(mlir::ModuleOp module, const RefusedBudget &refused);
/// Nothing: no budget was refused.
std::optional<RefusedBudget> getRefusedBudget(mlir::ModuleOp module);

} // namespace lowtide
