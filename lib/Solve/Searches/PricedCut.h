//===- PricedCut.h - what to save when bytes have a price -------*- C++ -*-===//
//
// Saved sets for the whole range between "save everything" and "save next to
// nothing", each the cheapest one at a price in seconds per byte.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

namespace lowtide::solve {

/// Values that stay from forward to backward pass: of each value, whether it does.
using SavedSet = std::vector<char>;

/// One family for each notion of when bytes are short: only at the peak, about it, always. From low prices to high
/// ones.
std::vector<std::vector<SavedSet>> listPricedCuts(const StepGraph &graph, std::span<const uint32_t> order);

/// Where bytes are short at all times and the values of `isFree` cost nothing: what lies between them is chosen apart.
/// From low prices to high ones.
std::vector<SavedSet> listCutsBetween(const StepGraph &graph, std::span<const uint32_t> order,
                                      const std::vector<char> &isFree);

} // namespace lowtide::solve
