//===- PackingSlack.h - another plan, with room to pack ------------*- C++ -*-===//
//
// For plans whose buffers, in this order or any near it, find no addresses
// within the bytes that are alive.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Portfolio/PackedPlans.h"

namespace lowtide::solve {

/// A plan whose arena is below that of `packed`, near its bytes alive, and whose time is from `leastSeconds` to
/// `mostSeconds`: the cheapest of a few. Nothing if there is none. Full program points have `room` times the bytes
/// reserved that the arena is too large by.
std::optional<PackedPlan> findPlanWithSlack(const StepGraph &graph, const PackedPlan &packed,
                                            const PackingOptions &options, double leastSeconds, double mostSeconds,
                                            unsigned room = 1);

} // namespace lowtide::solve
