//===- ExitCodes.h - what a tool ends with ----------------------*- C++ -*-===//
//
// The one place where a failure becomes a number (docs/reference/exit-codes.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Support/Failure.h"

namespace lowtide::driver {

/// Documented exit codes of every tool.
enum ExitCode : int {
  exitOk = 0,
  exitUsage = 1,
  exitBadInput = 2,
  exitUnsupported = 3,
  exitBudget = 4,
  exitVerification = 5,
  exitDevice = 6,
  exitNonFinite = 7,
  exitIo = 8,
  exitExpectation = 9,
  exitInternal = 70,
};

/// The exit code of a failure of the compiler; exitOk: there is none.
inline int getExitCode(FailureKind kind) {
  switch (kind) {
  case FailureKind::None:
    return exitOk;
  case FailureKind::Usage:
    return exitUsage;
  case FailureKind::BadInput:
    return exitBadInput;
  case FailureKind::Unsupported:
    return exitUnsupported;
  case FailureKind::Budget:
    return exitBudget;
  case FailureKind::Verification:
    return exitVerification;
  case FailureKind::Io:
    return exitIo;
  case FailureKind::Internal:
    return exitInternal;
  }
  return exitInternal;
}

} // namespace lowtide::driver
