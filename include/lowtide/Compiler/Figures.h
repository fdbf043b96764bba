//===- Figures.h - what a step takes, in numbers ----------------*- C++ -*-===//
//
// Bytes by role, recomputation and estimated time of what was compiled; or what a budget lacks that was refused.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/RefusedBudget.h"
#include "lowtide/Analysis/StoredBytes.h"
#include "lowtide/Support/Failure.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lowtide {

/// Of one entry. Bytes are those of the transient arena.
struct EntryFigures {
  std::string name;
  int64_t batch = 0; ///< samples
  uint64_t instructions = 0;
  uint64_t arenaBytes = 0; ///< up to the end of its last buffer
  uint64_t liveBytes = 0;  ///< most that its buffers take at once: no packing is below
  uint64_t peakBytes = 0;  ///< the same of their contents
  uint64_t peakAt = 0;     ///< the instruction of the peak
  std::string peakLabel;   ///< "gemm · h.0.attn.qkv"
  /// What is alive there, by component: "saved activations", …
  std::vector<std::pair<std::string, uint64_t>> peakParts;
  std::optional<uint64_t> unfittedPeakBytes; ///< before a budget was kept
  uint64_t recomputed = 0;                   ///< instructions that recompute
  double seconds = 0, recomputedSeconds = 0; ///< as the cost model estimates them
  uint64_t flops = 0;
};

/// What a remark of a stage says, in numbers by name.
struct RemarkFigures {
  std::string area; ///< the stage: "train"
  std::map<std::string, uint64_t> figures;
};

/// Of one compile. Bytes are those that the runtime allocates.
struct Figures {
  std::string target;
  uint64_t bytes = 0;
  uint64_t parameterBytes = 0, stateBytes = 0, batchBytes = 0, transientBytes = 0;
  uint64_t exchangeBytes = 0; ///< GPU: blocks through which batches and metrics travel
  uint64_t hostBytes = 0;     ///< planned in memory of the host that is not the device's; not among `bytes`
  uint64_t fileBytes = 0;     ///< the same in a file
  uint64_t budgetBytes = 0;   ///< 0: none was given
  StoredBytes stored;         ///< for each trained number; empty before stage `train`, and where nothing is trained
  /// What trains comes first. Of a step that was fitted and not planned, its name and what it computes again alone;
  /// empty before that.
  std::vector<EntryFigures> entries;
  std::optional<RefusedBudget> refusal;
  /// Of the stages, in their order.
  std::vector<RemarkFigures> remarks;

  /// "train" or, without it, the first entry; null: there is none.
  const EntryFigures *findMainEntry() const;
  /// One JSON object; keys are the names above, in snake case. `failure`: of what was compiled.
  std::string toJson(const Failure &failure = {}) const;
};

} // namespace lowtide
