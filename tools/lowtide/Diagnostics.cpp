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

std::string lowtide::driver::describeLocation(Location loc) {
  return TypeSwitch<LocationAttr, std::string>(loc)
      .Case<NameLoc>([](NameLoc name) {
        std::string child = describeLocation(name.getChildLoc());
        return child.empty() ? name.getName().str() : child;
      })
      .Case<FileLineColLoc>([](FileLineColLoc file) {
        return (file.getFilename().getValue() + ":" + llvm::Twine(file.getLine()) + ":" + llvm::Twine(file.getColumn()))
            .str();
      })
      .Case<FusedLoc>([](FusedLoc fused) {
        for (Location part : fused.getLocations())
          if (std::string text = describeLocation(part); !text.empty())
            return text;
        return std::string();
      })
      .Case<CallSiteLoc>([](CallSiteLoc call) { return describeLocation(call.getCallee()); })
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

void DiagnosticPrinter::print(Diagnostic &diagnostic) {
  auto textOf = [&](Diagnostic &d) {
    std::string place = describeLocation(d.getLocation());
    return d.str() + (place.empty() || place == model ? "" : " (at '" + place + "')");
  };
  auto line = [&](Diagnostic &d, StringRef severity, raw_ostream::Colors paint) {
    printLine(severity, paint, color, textOf(d));
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
