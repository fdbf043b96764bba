//===- StepRun.h - trains a plan for a few steps ----------------*- C++ -*-===//
//
// Writes an artifact with random weights, runs it on random batches, and keeps the bytes of what comes out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "plan.pb.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lowtide::test {

/// Where parameters and batches come from.
struct RunInputs {
  uint64_t seed = 0;
  /// [low, high) of each parameter and batch array.
  std::map<std::string, std::pair<double, double>> ranges;
};

struct RunOptions {
  unsigned steps = 3, threads = 1;
  bool poison = false;
  std::string path; ///< where the artifact is written
};

struct RunResult {
  std::string complaint; ///< why it did not run; empty: it did
  std::vector<double> losses;
  /// Parameters and state after the last step, as bytes.
  std::map<std::string, std::string> kept;
  uint64_t plannedBytes = 0, allocatedBytes = 0;

  /// The first thing that differs in a bit; empty if nothing does.
  std::string differenceTo(const RunResult &other) const;
};

RunResult runStep(const plan::Plan &plan, const std::vector<char> &code, const RunInputs &inputs,
                  const RunOptions &options);

} // namespace lowtide::test
