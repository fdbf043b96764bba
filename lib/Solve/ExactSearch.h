//===- ExactSearch.h - the best schedules of a small step -------*- C++ -*-===//
//
// For steps of about a dozen tensors nothing needs to be guessed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Timeline.h"

namespace lowtide::solve {

/// For every budget the cheapest schedule there is that runs the operations for the first time in `order`: by peak,
/// from the smallest that any has to that without recomputation. Nothing if the step is too large for it.
std::optional<std::vector<FittedSchedule>> searchExactly(const StepGraph &graph, std::span<const uint32_t> order);

} // namespace lowtide::solve
