//===- Failure.h - kinds of failure of the compiler -------------*- C++ -*-===//
//
// The one enumeration of why the compiler made nothing: importer, passes and library say it in these words, and the
// tools make exit codes of it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir {
class Operation;
} // namespace mlir

namespace lowtide {

/// Whose failure it is.
enum class FailureKind {
  None,
  Usage,        ///< an option does not fit the model, or another option
  BadInput,     ///< the model or the text contradicts itself, or its format
  Unsupported,  ///< understood, but not offered
  Budget,       ///< no plan fits the bytes that there are
  Verification, ///< what was made cannot be proved: a defect of the compiler
  Io,           ///< a file cannot be read or written
  Internal,     ///< a broken promise of the compiler
};

/// "usage", "bad-input", "unsupported", "budget", "verification", "io", "internal"; "none".
llvm::StringRef getName(FailureKind kind);

/// Why there is no result; false: there is one.
struct Failure {
  FailureKind kind = FailureKind::None;
  /// The first error, without its place and its notes; may be empty.
  std::string message = {};

  Failure() = default;
  Failure(FailureKind kind, std::string message = {}) : kind(kind), message(std::move(message)) {}
  explicit operator bool() const { return kind != FailureKind::None; }
};

/// Leaves on a module why its passes fail: a pass that knows whose mistake it is says so.
void setFailure(mlir::Operation *module, FailureKind kind);
/// What `setFailure` left; None: nothing.
FailureKind getFailure(mlir::Operation *module);

} // namespace lowtide
