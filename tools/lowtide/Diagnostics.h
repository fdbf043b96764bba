//===- Diagnostics.h - how the driver prints what went wrong ----*- C++ -*-===//
//
// MLIR's diagnostics in the house grammar: `error: … (at 'h.0/attn/MatMul')`, notes below, colour only on a terminal.
// What is located in a text starts with `file:line:column: ` and shows the line.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Log.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

namespace lowtide::driver {

/// Where in a text something is; nothing for what came from a model.
mlir::FileLineColLoc findPosition(mlir::Location loc);

/// `h.0/attn/MatMul` from an ONNX node's location; empty when unknown.
std::string describeLayer(mlir::Location loc);

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
  void setModel(mlir::Location loc) { model = describeLayer(loc); }
  /// The text that positions are in.
  void setSource(const llvm::MemoryBuffer *text) { source = text; }
  /// Different warnings so far, printed or not.
  unsigned countWarnings() const { return warnings.size(); }

private:
  void print(mlir::Diagnostic &diagnostic);
  /// The line that a diagnostic is at, and a caret below the column.
  void printPlace(mlir::Diagnostic &diagnostic) const;

  mlir::MLIRContext &context;
  mlir::DiagnosticEngine::HandlerID handler;
  int verbosity;
  const config::Log &log;
  std::string area = "import";
  std::string model;
  const llvm::MemoryBuffer *source = nullptr;
  bool color;
  unsigned numErrors = 0;
  llvm::StringSet<> warnings;
};

/// Prints `error: …` or `note: …` in the same form as diagnostics.
void printError(const llvm::Twine &message);
void printNote(const llvm::Twine &message);

} // namespace lowtide::driver
