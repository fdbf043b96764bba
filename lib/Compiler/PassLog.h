//===- PassLog.h - log lines of passes --------------------------*- C++ -*-===//
//
// `debug` lines of a stage: each pass, its time, and how large the step is after it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <memory>
#include <string>

namespace mlir {
class PassInstrumentation;
} // namespace mlir

namespace lowtide {

class DiagnosticCollector;

/// Writes a `debug` line of `area` after each named pass; `log` outlives it.
std::unique_ptr<mlir::PassInstrumentation> logPasses(DiagnosticCollector &log, std::string area);

} // namespace lowtide
