//===- Diagnostics.cpp - how the driver prints what went wrong --*- C++ -*-===//
//
// Severity, message, place; then notes.
//
//===----------------------------------------------------------------------===//

#include "Diagnostics.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace lowtide;
using namespace lowtide::driver;
using llvm::raw_ostream;
using llvm::StringRef;

static constexpr unsigned maxErrors = 100;

static bool useColor() { return llvm::errs().is_displayed() && !std::getenv("NO_COLOR"); }

static void printLine(StringRef severity, raw_ostream::Colors paint, bool color, const llvm::Twine &message) {
  llvm::raw_ostream &out = llvm::errs();
  if (color)
    out.changeColor(paint, /*Bold=*/true);
  out << severity << ": ";
  if (color)
    out.resetColor();
  out << message << "\n";
}

DiagnosticPrinter::DiagnosticPrinter(int verbosity, const config::Log &log)
    : verbosity(verbosity), lines(log), color(useColor()) {}

DiagnosticPrinter::~DiagnosticPrinter() {
  if (numErrors > maxErrors)
    printError(llvm::Twine(numErrors - maxErrors) + " further errors are not shown");
}

void DiagnosticPrinter::printPlace(const Message &message) const {
  if (!message.sourceLine)
    return;
  const StringRef line = *message.sourceLine;
  // Of a long line (constants, lists of arguments), what is around the column.
  constexpr size_t width = 110;
  const size_t column = std::min<size_t>(message.column ? message.column - 1 : 0, line.size());
  const size_t begin = column > width - 20 ? column - 40 : 0;
  std::string mark;
  for (char c : line.slice(begin, column))
    mark += c == '\t' ? '\t' : ' ';
  llvm::errs() << line.substr(begin, width) << "\n" << mark << "^\n";
}

static std::string textOf(const Message &message) {
  return message.text + (message.layer.empty() ? "" : " (at '" + message.layer + "')");
}

void DiagnosticPrinter::print(const Message &message) const {
  static constexpr std::pair<const char *, raw_ostream::Colors> severities[] = {{"error", raw_ostream::RED},
                                                                                {"warning", raw_ostream::YELLOW},
                                                                                {"remark", raw_ostream::BLUE},
                                                                                {"note", raw_ostream::CYAN}};
  auto [severity, paint] = severities[size_t(message.severity)];
  const bool isPlaced = !message.file.empty();
  if (isPlaced)
    llvm::errs() << message.file << ":" << message.line << ":" << message.column << ": ";
  printLine(severity, paint, color, textOf(message));
  if (isPlaced)
    printPlace(message);
}

void DiagnosticPrinter::hear(const Message &message) {
  if (message.severity == Severity::Error && ++numErrors > maxErrors)
    return;
  if (message.severity == Severity::Warning && verbosity < 0)
    return;
  if (message.severity == Severity::Remark) {
    if (lines.shows(config::LogLevel::Info, message.area)) {
      lines.info(message.area, textOf(message));
      for (const Message &note : message.notes)
        lines.info(message.area, "note: " + textOf(note));
      return;
    }
    if (verbosity <= 0)
      return;
  }
  print(message);
  for (const Message &note : message.notes)
    print(note);
}

bool DiagnosticPrinter::wantsLog(LogLevel level, const std::string &area) {
  return lines.shows(level == LogLevel::Debug ? config::LogLevel::Debug : config::LogLevel::Info, area);
}

void DiagnosticPrinter::log(LogLevel level, const std::string &area, const std::string &text) {
  level == LogLevel::Debug ? lines.debug(area, text) : lines.info(area, text);
}

void DiagnosticPrinter::progress(const std::string &text, bool isNews) {
  const bool isTerminal = llvm::errs().is_displayed();
  if (verbosity < 0 || (!isTerminal && !isNews && Clock::now() - shown < std::chrono::seconds(2)))
    return;
  shown = Clock::now();
  llvm::errs() << (isTerminal ? "\r\033[K" : "") << text << (isTerminal && !isNews ? "" : "\n");
}

void DiagnosticPrinter::endProgress() {
  if (llvm::errs().is_displayed() && verbosity >= 0)
    llvm::errs() << "\r\033[K";
}

void lowtide::driver::printError(const llvm::Twine &message) {
  printLine("error", raw_ostream::RED, useColor(), message);
}
void lowtide::driver::printNote(const llvm::Twine &message) {
  printLine("note", raw_ostream::CYAN, useColor(), message);
}
