//===- Diagnostics.h - from MLIR's diagnostics to messages ------*- C++ -*-===//
//
// What MLIR and the library itself have to say, for the listener and for the result.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Compiler/Listener.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

namespace lowtide {

/// Where in a text something is; nothing for what came from a model.
mlir::FileLineColLoc findPosition(mlir::Location loc);

/// `h.0/attn/MatMul` from an ONNX node's location; empty when unknown.
std::string describeLayer(mlir::Location loc);

/// Collects the diagnostics of a context while it lives, and passes each on to a listener, which may be null. A warning
/// that is found again, when a model is imported again, was said.
class DiagnosticCollector {
public:
  DiagnosticCollector(mlir::MLIRContext &context, Listener *listener);
  ~DiagnosticCollector();

  /// The area that messages belong to from here on.
  void enter(std::string area) { this->area = std::move(area); }
  /// What is located at the whole model has no place: its graph's name says nothing.
  void setModel(mlir::Location loc) { model = describeLayer(loc); }
  /// The text that positions are in.
  void setSource(const llvm::MemoryBuffer *text) { source = text; }

  /// Something that no operation stands for, with its notes.
  void say(Severity severity, const llvm::Twine &text, llvm::ArrayRef<std::string> notes = {});
  void log(LogLevel level, llvm::StringRef area, const llvm::Twine &text);
  bool wantsLog(LogLevel level, llvm::StringRef area) const {
    return listener && listener->wantsLog(level, area.str());
  }

  /// Different warnings so far.
  unsigned countWarnings() const { return warnings.size(); }
  llvm::ArrayRef<Message> getMessages() const { return messages; }
  /// The text of the first error; empty: there was none.
  std::string getFirstError() const;
  Listener *getListener() const { return listener; }

private:
  void take(mlir::Diagnostic &diagnostic);
  Message describe(mlir::Diagnostic &diagnostic) const;
  void add(Message message);

  mlir::MLIRContext &context;
  mlir::DiagnosticEngine::HandlerID handler;
  Listener *listener;
  std::string area = "import";
  std::string model;
  const llvm::MemoryBuffer *source = nullptr;
  llvm::StringSet<> warnings;
  std::vector<Message> messages;
};

} // namespace lowtide
