//===- Inspect.h - commands that look at artifacts and at the machine -*- C++ -*-===//
//
// `lowtide verify`, `report`, `explain`, `diff` and `doctor`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Options.h"
#include "runtime/Status.h"

namespace lowtide::driver {

/// Proves an artifact's plan again and prints what it holds. Returns an exit code.
int verifyArtifact(const Options &options);
/// Draws an artifact's memory, in the format asked for or by the output's extension. Returns an exit code.
int drawReport(const Options &options);
/// Says of an artifact, or of one of its tensors or layers, what was decided and what it costs. Returns an exit code.
int explainArtifact(const Options &options);
/// Says what changed from one artifact, or one IR file, to another. Differences are no failure. Returns an exit code.
int showDifference(const Options &options);
/// Prints versions and machine facts to paste into a bug report. Returns an exit code.
int describeMachine();

/// Prints a failure of the runtime's readers; returns the exit code that it stands for.
int fail(const rt::Status &status);

} // namespace lowtide::driver
