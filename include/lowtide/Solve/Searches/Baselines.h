//===- Baselines.h - published ways to save memory --------------*- C++ -*-===//
//
// What others do, on the same graph, with the same count of bytes and seconds:
// to compare with, and to start from.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

namespace lowtide::solve {

/// Chen et al. 2016: forward in k segments of equal bytes, k = 1, 2, …; what
/// crosses a border is saved, everything else is recomputed once. One
/// schedule for each k that is valid.
std::vector<FittedSchedule> planSegments(const StepGraph &graph, std::span<const uint32_t> order);

/// PyTorch's partitioner: a minimum cut of bytes chooses what is saved; cheap
/// operations may run again, and a growing part of the expensive ones, those of the
/// fewest seconds a byte first (there a knapsack). Judged there by saved bytes, here by the peak.
std::vector<FittedSchedule> planCuts(const StepGraph &graph, std::span<const uint32_t> order);

/// XLA's HloRematerialization: walk the order; while it needs more than the
/// budget, compute that value again before its next use which frees the most
/// bytes, whatever that costs. Null if it does not get below the budget.
std::optional<FittedSchedule> planGreedily(const StepGraph &graph, std::span<const uint32_t> order,
                                           uint64_t budgetBytes);

/// Checkmate's two-phase rounding (Jain et al. 2020): the linear relaxation under 0.9 of the budget, and once more
/// under all of it, says how much of each value is kept when; all of which at least θ is kept stays, θ = 0.1 … 0.9, the
/// rest is recomputed on demand. The cheapest of them whose peak is within the budget; nothing if none is, or
/// without a solver (hasLinearSolver). `seconds`: time for the solver of each program, whose last values are rounded
/// when it is over.
std::optional<FittedSchedule> planByRounding(const StepGraph &graph, std::span<const uint32_t> order,
                                             uint64_t budgetBytes, double seconds = 120);

/// The order with every value of `saved` kept from forward to backward, and all
/// others that backward reads recomputed once, when first needed. Saves
/// more where an updated argument demands it.
FittedSchedule planFromSaved(const StepGraph &graph, std::span<const uint32_t> order, std::vector<char> saved,
                             const char *method);

} // namespace lowtide::solve
