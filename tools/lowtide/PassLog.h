//===- PassLog.h - log lines of passes --------------------------*- C++ -*-===//
//
// `debug` lines of a stage: each pass, its time, and how large the step is behind it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Log.h"
#include <memory>

namespace mlir {
class PassInstrumentation;
} // namespace mlir

namespace lowtide::driver {

/// Writes a `debug` line of `area` behind each named pass; `log` outlives it.
std::unique_ptr<mlir::PassInstrumentation> logPasses(const config::Log &log, std::string area);

} // namespace lowtide::driver
