//===- Ordering.h - in which order a step needs few bytes -------*- C++ -*-===//
//
// Candidates for the order of a step's operations, judged by the exact count.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

namespace lowtide::solve {

/// What must run before each operation: makers of its operands and readers of
/// the arguments that it updates.
std::vector<std::vector<uint32_t>> listPredecessors(const StepGraph &graph);

/// An order of all operations and its figures; the method is "as given", "list", "depth first", …
using Ordering = FittedSchedule;

/// The order with the lowest peak among: the given one; updates pulled up and
/// single uses pushed down in it; list scheduling by bytes freed; depth first
/// from the outputs; then moves of single operations that lower the peak.
/// Recomputes nothing. The given order must be valid. Bodies of loops first, each for itself.
Ordering findOrder(const StepGraph &graph);

} // namespace lowtide::solve
