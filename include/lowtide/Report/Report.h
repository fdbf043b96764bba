//===- Report.h - the memory of an artifact, told and drawn -----*- C++ -*-===//
//
// Reads a proved artifact and tells, instruction by instruction, which bytes are live, what they are and whose they
// are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/BudgetFlips.h"
#include "lowtide/Analysis/CostModel.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Analysis/StoredBytes.h"
#include "plan.pb.h"
#include "runtime/Artifact.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lowtide::report {

/// One value in a transient arena.
struct Tensor {
  uint64_t value = 0, offset = 0, bytes = 0;
  /// Live during instructions begin … end - 1.
  unsigned begin = 0, end = 0;
  MemoryComponent component = MemoryComponent::Temporary;
  /// ONNX node or module path that made it, and what made it: "gemm", "loop: add mul".
  std::string place, maker;
  /// Instructions that read it, ascending.
  std::vector<unsigned> readers;
  /// Where other budgets decide otherwise about it; first smaller ones.
  std::vector<BudgetFlip> flips = {};
};

/// One instruction; those of a loop's body stand once.
struct Instruction {
  std::string label;  ///< "gemm · h.0.attn.qkv"
  double seconds = 0; ///< as the cost model estimates it
  uint64_t flops = 0;
  bool recomputed = false;
  /// The lane that it runs on, and when it begins there if every lane runs as fast as it may: in seconds.
  uint32_t stream = 0;
  double start = 0;
};

/// A copy of a value to another memory, or of one from there.
struct Move {
  unsigned instruction = 0;
  bool isStore = false;
  /// On the device: which of the tensors; in the other memory: its value number.
  size_t tensor = 0;
  uint64_t otherValue = 0;
  uint64_t bytes = 0; ///< in all rounds of a loop
  /// "file", "host_pinned".
  std::string space;
  /// Parameter or optimizer state, which lies there from step to step; empty: a value that waits there.
  std::string binding;
};

/// What lies in a memory other than the device's.
struct SpaceBytes {
  std::string space;         ///< as of Move
  uint64_t bytes = 0;        ///< of the plan's arenas there, but for exchange blocks
  uint64_t lastingBytes = 0; ///< of those, what lies there from step to step
  /// At each instruction, bytes of values that wait there: from their store to their last load.
  std::vector<uint64_t> waiting;
};

/// What a step needed before it was fitted into a budget.
struct Unfitted {
  uint64_t peakBytes = 0;
  /// In the order of its instructions; several of them may stand in one entry, then the fullest.
  std::vector<LiveBytes> live;
};

/// What an artifact's `meta` section says of one entry.
struct EntryNotes {
  /// Launches and calls that recompute, counted from 0 in the order of the plan.
  std::vector<unsigned> recomputed;
  /// Of each value number its MemoryComponent; numMemoryComponents and more: not known.
  std::vector<uint8_t> components;
  std::optional<Unfitted> before;
  /// The budgets that were planned to say where decisions change, and those of launches and calls, by number.
  std::optional<PlannedBudgets> plannedBudgets;
  std::map<unsigned, std::vector<BudgetFlip>> flips;
};

/// A target by its name, and what was counted with.
struct PlannedTarget {
  std::string name;
  CostModel costs;
};

/// What an artifact's `meta` section says. Nothing of it is needed to run.
struct Notes {
  uint64_t deviceBudget = 0; ///< bytes, all told; 0: none was given
  /// What it was planned for, where that has other figures than the row of the artifact's target.
  std::optional<PlannedTarget> plannedFor;
  std::vector<std::pair<std::string, EntryNotes>> entries;

  const EntryNotes *find(llvm::StringRef entry) const;
};

/// `meta` as JSON, and back. What is absent or malformed reads as nothing: a report is drawn without it.
std::string writeNotes(const Notes &notes);
Notes readNotes(std::string_view meta);

/// One entry of the plan.
struct Entry {
  std::string name;
  int64_t batch = 0;
  std::vector<Instruction> instructions;
  std::vector<Tensor> tensors;
  /// Bytes live at each instruction.
  std::vector<LiveBytes> live;
  uint64_t peakBytes = 0;
  unsigned peakAt = 0;
  /// Instruction after which the loss is known; 0: no loss.
  unsigned lossAt = 0;
  uint64_t flops = 0;
  std::optional<Unfitted> before;
  /// Nothing: no other budget was planned.
  std::optional<PlannedBudgets> plannedBudgets;
  /// Copies to and from another memory, in their order.
  std::vector<Move> moves;
  /// In the order of their first copy; empty: nothing moves.
  std::vector<SpaceBytes> memories;

  /// Until the last lane is done.
  double getSeconds() const;
  /// Estimated seconds in which nothing computes, for copies are on their way.
  double getExposedSeconds() const;
  /// Estimated seconds of what is recomputed.
  double getRecomputedSeconds() const;
};

/// One step of a run; the loss may be NaN.
struct RunStep {
  int64_t step;
  double loss, milliseconds;
};

/// What a run of the artifact recorded; at least one step.
struct Run {
  uint64_t allocatedBytes = 0;
  std::vector<RunStep> steps;

  double getMedianMilliseconds() const;
};

/// Reads what `lowtide-run --log-jsonl` wrote; fails when it is of another plan than the one with this SHA-256.
rt::Expected<Run> readRun(const std::string &path, llvm::StringRef planDigest);

/// When an instruction ran, in microseconds from the begin of its step, and on which lane.
struct MeasuredSpan {
  unsigned instruction;
  uint32_t lane;
  double begin, end;
};

/// What a profile of a run recorded: of the newest step of an entry, by begin; at least one span.
struct Profile {
  std::string path, entry;
  std::vector<MeasuredSpan> spans;
};

/// Reads what `lowtide-run --profile=FILE` wrote; fails when it is of another plan than the one with this SHA-256.
rt::Expected<Profile> readProfile(const std::string &path, llvm::StringRef planDigest);

/// A whole artifact. Bytes are those that the runtime allocates on the device, where nothing else is said.
struct Report {
  std::string title, target, producer;
  std::string machines;   ///< that run it, in words; empty: the target is not known
  std::string plannedFor; ///< the machine whose figures it was planned with: "cuda:h200"; empty: the target's own
  StaticBytes statics;
  StoredBytes stored; ///< empty where nothing is trained
  uint64_t transientBytes = 0;
  uint64_t hostBytes = 0; ///< of the plan's arenas in memory of the host
  uint64_t fileBytes = 0; ///< and in a file
  /// What `statics.exchange` is: on a CPU values pass through it to a file.
  llvm::StringRef getExchangeName() const { return fileBytes ? "pieces on their way to the file" : "exchange blocks"; }
  uint64_t deviceBudget = 0; ///< 0: none was given
  std::vector<Entry> entries;
  std::optional<Run> run;
  std::optional<Profile> profile;

  uint64_t getBytes() const { return statics.sum() + transientBytes; }
};

/// Fails when the report's profile tells of an entry or of instructions that the plan does not have.
rt::Status checkProfile(const Report &report);

/// Reads an artifact; `title` heads the report.
Report buildReport(const plan::Plan &plan, std::string_view meta, llvm::StringRef title);

/// One offline HTML file: waterline and address map per entry as SVG, the tensors alive at the peak as a table, the
/// same data as JSON inside. Of a run, its losses and times.
void printHtml(const Report &report, llvm::raw_ostream &os);
void printJson(const Report &report, llvm::raw_ostream &os);
/// The waterline of the entry `train` (or the first one) as a picture of its own; under a budget next to the one of the
/// step before.
void printSvg(const Report &report, llvm::raw_ostream &os);
/// Instructions on a line of estimated time and bytes by component, in Chrome's trace format (Perfetto opens it). With
/// a profile also on one of measured time: one process more, with the same lanes.
void printChromeTrace(const Report &report, llvm::raw_ostream &os);
/// Allocations and frees of the entry `train` (or the first one) as PyTorch's memory viewer takes them: the pickle that
/// torch.cuda.memory._dump_snapshot writes.
void printTorchSnapshot(const Report &report, llvm::raw_ostream &os);

/// Null if there is none of that name.
const Entry *findEntry(const Report &report, llvm::StringRef name);
/// "train" or, without it, the first entry; null if there is none.
const Entry *findMainEntry(const Report &report);

/// Reads the artifact `input` and writes its report to `output` ("-": standard output); `format` is one of
/// reportFormats. `run`, if not empty, is what a run of it recorded: its log for html and json, its profile for
/// chrome-trace.
rt::Status writeReport(const std::string &input, const std::string &output, llvm::StringRef format,
                       const std::string &run);
inline constexpr const char *reportFormats[] = {"html", "svg", "json", "chrome-trace", "torch-snapshot"};

} // namespace lowtide::report
