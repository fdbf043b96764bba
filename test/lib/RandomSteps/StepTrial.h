//===- StepTrial.h - one graph, trained under many budgets ------*- C++ -*-===//
//
// Compiles the text of a graph without a budget and at several budgets, trains each for a few steps, and says what is
// not as it must be: memory beyond the budget or other than planned, or a bit of a loss or parameter that differs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lowtide::test {

struct TrialOptions {
  unsigned budgets = 4; ///< from the smallest that was found to just below the largest
  unsigned steps = 3;
  /// Computes the loss of the first step again in f64, op by op, on the reference target.
  bool compareReference = false;
  /// Kernels as optimized code, as users run them; else as it comes, which is made many times faster.
  bool optimize = false;
  std::string scratch; ///< folder for artifacts
};

/// What became of a graph.
struct TrialOutcome {
  /// In one word what went wrong ("compile", "budget", "bytes", "bits", "run", "reference"); empty: nothing.
  std::string kind;
  std::string text;

  // Figures, added up over many graphs.
  unsigned plans = 0;      ///< compiled and run under a budget
  unsigned recomputed = 0; ///< of these, how many compute something again
  unsigned refused = 0;    ///< budgets that a step in loops cannot meet
  unsigned parts = 0;      ///< 1: computed in micro-batches
  unsigned references = 0; ///< 1: compared with the reference target
  unsigned infinite = 0;   ///< 1: a loss was not finite

  bool isGood() const { return kind.empty(); }
};

/// Makes what all trials share, so that processes that are forked later need not.
void prepareTrials();

TrialOutcome tryGraph(const std::string &text, const TrialOptions &options);
/// Several graphs, whose kernels are compiled as one module: that costs little more than for one.
std::vector<TrialOutcome> tryGraphs(const std::vector<std::string> &texts, const TrialOptions &options);

} // namespace lowtide::test
