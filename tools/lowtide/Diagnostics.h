//===- Diagnostics.h - how the driver prints what went wrong ----*- C++ -*-===//
//
// MLIR's diagnostics in the house grammar: `error: … (at 'h.0/attn/MatMul')`, notes below, colour only on a terminal.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Log.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"

namespace lowtide::driver {

/// `h.0/attn/MatMul` from an ONNX node's location, `file:line:column` from text; empty when unknown.
std::string describeLocation(mlir::Location loc);

/// Prints diagnostics of a context to standard error while it lives. Remarks only when `verbosity` > 0, warnings unless
/// it is negative, each once; after 100 errors the rest are counted. A remark of an area that `log` shows is a log
/// line.
class DiagnosticPrinter {
public:
  DiagnosticPrinter(mlir::MLIRContext &context, int verbosity, const config::Log &log);
  ~DiagnosticPrinter();

  /// The log's area that remarks belong to from here on.
  void enter(std::string area) { this->area = std::move(area); }
  /// What is located at the whole model has no place: its graph's name says nothing.
  void setModel(mlir::Location loc) { model = describeLocation(loc); }
  /// Different warnings so far, printed or not.
  unsigned countWarnings() const { return warnings.size(); }

private:
  void print(mlir::Diagnostic &diagnostic);

  mlir::MLIRContext &context;
  mlir::DiagnosticEngine::HandlerID handler;
  int verbosity;
  const config::Log &log;
  std::string area = "import";
  std::string model;
  bool color;
  unsigned numErrors = 0;
  llvm::StringSet<> warnings;
};

/// Prints `error: …` or `note: …` in the same form as diagnostics.
void printError(const llvm::Twine &message);
void printNote(const llvm::Twine &message);

} // namespace lowtide::driver
