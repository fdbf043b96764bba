//===- Stopwatch.h - how long one piece of work takes -----------*- C++ -*-===//
//
// For lines of the log.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <string>

namespace lowtide {

/// Runs from its making on.
class Stopwatch {
public:
  /// "12.3 ms".
  std::string text() const {
    return llvm::formatv("{0:F1} ms", std::chrono::duration<double, std::milli>(Clock::now() - start).count()).str();
  }

private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
};

} // namespace lowtide
