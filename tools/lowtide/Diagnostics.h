//===- Diagnostics.h - how the driver prints what went wrong ----*- C++ -*-===//
//
// The compiler's messages in the house grammar: `error: … (at 'h.0/attn/MatMul')`, notes below, colour only on a
// terminal. What is located in a text starts with `file:line:column: ` and shows the line.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Log.h"
#include "lowtide/Compiler/Listener.h"
#include "llvm/ADT/Twine.h"
#include <chrono>

namespace lowtide::driver {

/// Prints what it hears to standard error. Remarks only when `verbosity` > 0, warnings unless it is negative; after 100
/// errors the rest are counted. A remark of an area that `log` shows is a log line.
class DiagnosticPrinter : public Listener {
public:
  DiagnosticPrinter(int verbosity, const config::Log &log);
  ~DiagnosticPrinter() override;

  void hear(const Message &message) override;
  bool wantsLog(LogLevel level, const std::string &area) override;
  void log(LogLevel level, const std::string &area, const std::string &text) override;
  /// A line that is rewritten on a terminal, now and then elsewhere.
  void progress(const std::string &text, bool isNews) override;
  void endProgress() override;

private:
  void print(const Message &message) const;
  /// The line that a message is at, and a caret below the column.
  void printPlace(const Message &message) const;

  using Clock = std::chrono::steady_clock;
  int verbosity;
  const config::Log &lines;
  bool color;
  unsigned numErrors = 0;
  /// When progress was shown last.
  Clock::time_point shown = Clock::now();
};

/// Prints `error: …` or `note: …` in the same form.
void printError(const llvm::Twine &message);
void printNote(const llvm::Twine &message);

} // namespace lowtide::driver
