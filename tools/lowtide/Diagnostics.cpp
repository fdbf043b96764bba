//===- Diagnostics.cpp - how the driver prints what went wrong --*- C++ -*-===//
//
// Severity, message, place; then notes.
//
//===----------------------------------------------------------------------===//

#include "Diagnostics.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace mlir;
using namespace lowtide::driver;

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

FileLineColLoc lowtide::driver::findPosition(Location loc) {
  return TypeSwitch<LocationAttr, FileLineColLoc>(loc)
      .Case<FileLineColLoc>([](FileLineColLoc file) { return file; })
      .Case<NameLoc>([](NameLoc name) { return findPosition(name.getChildLoc()); })
      .Case<CallSiteLoc>([](CallSiteLoc call) { return findPosition(call.getCallee()); })
      .Case<FusedLoc>([](FusedLoc fused) {
        for (Location part : fused.getLocations())
          if (FileLineColLoc found = findPosition(part))
            return found;
        return FileLineColLoc();
      })
      .Default([](LocationAttr) { return FileLineColLoc(); });
}

std::string lowtide::driver::describeLayer(Location loc) {
  return TypeSwitch<LocationAttr, std::string>(loc)
      .Case<NameLoc>([](NameLoc name) {
        std::string child = describeLayer(name.getChildLoc());
        return child.empty() ? name.getName().str() : child;
      })
      .Case<FusedLoc>([](FusedLoc fused) {
        for (Location part : fused.getLocations())
          if (std::string text = describeLayer(part); !text.empty())
            return text;
        return std::string();
      })
      .Case<CallSiteLoc>([](CallSiteLoc call) { return describeLayer(call.getCallee()); })
      .Default([](LocationAttr) { return std::string(); });
}

DiagnosticPrinter::DiagnosticPrinter(MLIRContext &context, int verbosity, const config::Log &log)
    : context(context), verbosity(verbosity), log(log), color(useColor()) {
  handler = context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    print(diagnostic);
    return success();
  });
}

DiagnosticPrinter::~DiagnosticPrinter() {
  context.getDiagEngine().eraseHandler(handler);
  if (numErrors > maxErrors)
    printError(llvm::Twine(numErrors - maxErrors) + " further errors are not shown");
}

void DiagnosticPrinter::printPlace(Diagnostic &diagnostic) const {
  FileLineColLoc position = findPosition(diagnostic.getLocation());
  if (!position || !source || position.getFilename() != source->getBufferIdentifier() || position.getLine() == 0)
    return;
  StringRef rest = source->getBuffer();
  for (unsigned i = 1; i < position.getLine(); ++i)
    rest = rest.split('\n').second;
  StringRef line = rest.split('\n').first.rtrim();
  // Of a long line (constants, lists of arguments), what is around the column.
  constexpr size_t width = 110;
  const size_t column = std::min<size_t>(position.getColumn() ? position.getColumn() - 1 : 0, line.size());
  const size_t begin = column > width - 20 ? column - 40 : 0;
  std::string mark;
  for (char c : line.slice(begin, column))
    mark += c == '\t' ? '\t' : ' ';
  llvm::errs() << line.substr(begin, width) << "\n" << mark << "^\n";
}

void DiagnosticPrinter::print(Diagnostic &diagnostic) {
  auto textOf = [&](Diagnostic &d) {
    std::string place = describeLayer(d.getLocation());
    return d.str() + (place.empty() || place == model ? "" : " (at '" + place + "')");
  };
  auto line = [&](Diagnostic &d, StringRef severity, raw_ostream::Colors paint) {
    FileLineColLoc position = findPosition(d.getLocation());
    if (position)
      llvm::errs() << position.getFilename().getValue() << ":" << position.getLine() << ":" << position.getColumn()
                   << ": ";
    printLine(severity, paint, color, textOf(d));
    if (position)
      printPlace(d);
  };
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    if (++numErrors > maxErrors)
      return;
    line(diagnostic, "error", raw_ostream::RED);
    break;
  case DiagnosticSeverity::Warning:
    // What is found again when a model is imported again was said.
    if (!warnings.insert(textOf(diagnostic)).second || verbosity < 0)
      return;
    line(diagnostic, "warning", raw_ostream::YELLOW);
    break;
  case DiagnosticSeverity::Remark:
    if (log.shows(config::LogLevel::Info, area)) {
      log.info(area, textOf(diagnostic));
      for (Diagnostic &note : diagnostic.getNotes())
        log.info(area, "note: " + textOf(note));
      return;
    }
    if (verbosity <= 0)
      return;
    line(diagnostic, "remark", raw_ostream::BLUE);
    break;
  case DiagnosticSeverity::Note:
    line(diagnostic, "note", raw_ostream::CYAN);
    break;
  }
  for (Diagnostic &note : diagnostic.getNotes())
    line(note, "note", raw_ostream::CYAN);
}

void lowtide::driver::printError(const llvm::Twine &message) {
  printLine("error", raw_ostream::RED, useColor(), message);
}
void lowtide::driver::printNote(const llvm::Twine &message) {
  printLine("note", raw_ostream::CYAN, useColor(), message);
}
