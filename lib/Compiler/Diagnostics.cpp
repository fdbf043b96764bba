//===- Diagnostics.cpp - from MLIR's diagnostics to messages ----*- C++ -*-===//
//
// Severity, text, layer and place; then notes.
//
//===----------------------------------------------------------------------===//

#include "Diagnostics.h"
#include "lowtide/Support/DiagnosticFigures.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide;

Listener::~Listener() = default;

FileLineColLoc lowtide::findPosition(Location loc) {
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

std::string lowtide::describeLayer(Location loc) {
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

DiagnosticCollector::DiagnosticCollector(MLIRContext &context, Listener *listener)
    : context(context), listener(listener) {
  handler = context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    take(diagnostic);
    return success();
  });
}

DiagnosticCollector::~DiagnosticCollector() { context.getDiagEngine().eraseHandler(handler); }

/// Line number `line` of a text, from 1 on.
static StringRef getLine(StringRef text, unsigned line) {
  for (unsigned i = 1; i < line; ++i)
    text = text.split('\n').second;
  return text.split('\n').first.rtrim();
}

static Severity convert(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return Severity::Error;
  case DiagnosticSeverity::Warning:
    return Severity::Warning;
  case DiagnosticSeverity::Remark:
    return Severity::Remark;
  case DiagnosticSeverity::Note:
    return Severity::Note;
  }
  return Severity::Error;
}

Message DiagnosticCollector::describe(Diagnostic &diagnostic) const {
  Message message;
  message.severity = convert(diagnostic.getSeverity());
  message.text = diagnostic.str();
  message.area = area;
  message.figures = readFigures(diagnostic);
  if (std::string layer = describeLayer(diagnostic.getLocation()); layer != model)
    message.layer = std::move(layer);
  if (FileLineColLoc position = findPosition(diagnostic.getLocation())) {
    message.file = position.getFilename().str();
    message.line = position.getLine();
    message.column = position.getColumn();
    if (source && message.file == source->getBufferIdentifier() && message.line)
      message.sourceLine = getLine(source->getBuffer(), message.line).str();
  }
  return message;
}

void DiagnosticCollector::take(Diagnostic &diagnostic) {
  Message message = describe(diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    message.notes.push_back(describe(note));
  if (message.severity == Severity::Warning && !warnings.insert(message.text + "\n" + message.layer).second)
    return;
  add(std::move(message));
}

void DiagnosticCollector::add(Message message) {
  if (listener)
    listener->hear(message);
  messages.push_back(std::move(message));
}

void DiagnosticCollector::say(Severity severity, const llvm::Twine &text, ArrayRef<std::string> notes) {
  Message message;
  message.severity = severity;
  message.text = text.str();
  message.area = area;
  for (const std::string &note : notes) {
    message.notes.emplace_back().severity = Severity::Note;
    message.notes.back().text = note;
  }
  add(std::move(message));
}

void DiagnosticCollector::log(LogLevel level, StringRef area, const llvm::Twine &text) {
  if (wantsLog(level, area))
    listener->log(level, area.str(), text.str());
}

std::string DiagnosticCollector::getFirstError() const {
  for (const Message &message : messages)
    if (message.severity == Severity::Error)
      return message.text;
  return "";
}
