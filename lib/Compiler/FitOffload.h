//===- FitOffload.h - the table of a step with another memory ---*- C++ -*-===//
//
// What `lowtide fit` says where values may wait in a file, or in memory of the host.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

/// Plans of all entries together, by budget; bytes are everything that the runtime allocates.
struct OtherMemoryTable {
  struct Row {
    uint64_t budgetBytes = 0, deviceBytes = 0, hostBytes = 0, fileBytes = 0;
    /// Of @train, or the first entry: by the estimate with its lanes.
    double seconds = 0;
    unsigned recomputed = 0;
    uint64_t loadedBytes = 0, storedBytes = 0;
    /// No plan of its kernels in their order takes less with what lies in other memories where it is; 0: not asked.
    double leastSeconds = 0;
    /// By strategy (solve::offloadStrategyNames): the least that its plans take within the same budgets, wherever
    /// parameters and optimizer state lie; nothing: it has none. Empty: not asked.
    std::vector<std::optional<double>> others = {};
  };

  std::string flag; ///< "--disk-budget=100GiB"
  /// Which memories it names.
  bool hasHost = false, hasFile = false;
  uint64_t smallestBytes = 0, smallestAloneBytes = 0;
  std::vector<Row> rows;

  bool isCompared() const { return !rows.empty() && !rows.front().others.empty(); }
  /// Times are over `wholeSeconds`, which the step takes without a budget.
  void printText(llvm::raw_ostream &os, double wholeSeconds) const;
  /// Attributes of an object.
  void printJson(llvm::json::OStream &json, double wholeSeconds) const;

private:
  void printComparison(llvm::raw_ostream &os, double wholeSeconds) const;
};

} // namespace lowtide
