//===- Inspect.h - commands that look at artifacts and at the machine -*- C++ -*-===//
//
// `lowtide verify`, `lowtide report` and `lowtide doctor`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Options.h"

namespace lowtide::driver {

/// Proves an artifact's plan again and prints what it holds. Returns an exit code.
int verifyArtifact(const Options &options);
/// Draws an artifact's memory into one HTML file (JSON if the output ends in .json). Returns an exit code.
int drawReport(const Options &options);
/// Prints versions and machine facts to paste into a bug report. Returns an exit code.
int describeMachine();

} // namespace lowtide::driver
