//===- Shrink.h - a failing graph made small --------------------*- C++ -*-===//
//
// Takes nodes and settings out of a graph for as long as it fails in the same way.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "StepGraph.h"

#include <functional>

namespace lowtide::test {

/// Whether the graph still fails as the one before did.
using StillFails = std::function<bool(const StepGraph &, const StepSettings &)>;

/// Smaller and smaller graphs that fail; at most `tries` are looked at.
void shrinkGraph(StepGraph &graph, StepSettings &settings, const StillFails &fails, unsigned tries = 400);

} // namespace lowtide::test
