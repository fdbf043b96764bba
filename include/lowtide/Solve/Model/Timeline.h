//===- Timeline.h - what a schedule of a step costs -------------*- C++ -*-===//
//
// A step as operations on tensors, a schedule as the sequence in which they run
// (some of them again), and the exact count of bytes and seconds of both.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Packing/Packing.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lowtide::solve {

/// One tensor of a step.
struct StepValue {
  uint64_t bytes = 0;
  /// The operation that makes it; -1: an argument.
  int32_t producer = -1;
  /// Has bytes outside the transient arena: an argument, a metric, an update in
  /// place.
  bool placed = false;
  /// An output: from when it is made to the end of the step.
  bool kept = false;
  /// Made before the loss is known.
  bool isForward = false;

  bool operator==(const StepValue &other) const = default;
};

/// One kernel or library call.
struct StepOperation {
  /// Values, each once, in the order of the operands.
  std::vector<uint32_t> reads;
  /// Values in the order of the results.
  std::vector<uint32_t> writes;
  /// Per result: the reads over which it may be written when they die here, in
  /// the order of the operands.
  std::vector<std::vector<uint32_t>> overwrites;
  /// Arguments that it updates: nothing may read them later.
  std::vector<uint32_t> updates;
  /// Scratch and workspace, in bytes.
  uint64_t workspaceBytes = 0;
  double seconds = 0;
  uint64_t flops = 0;
  /// Belongs to what runs before the loss is known.
  bool isForward = false;
  /// Never runs again: a loop, the beginning of a round.
  bool runsOnce = false;
  /// The numbers in the graph's `reruns` of what runs in its place when it runs again, in parts; none: itself.
  std::vector<uint32_t> reruns = {};
  /// The numbers there of loads that bring its results back, one from each memory in which values may wait: what may
  /// stand in `reruns` instead.
  std::vector<uint32_t> loads = {};
  /// Stores and loads are copies of one value that run while others compute; those of `reruns` read nothing, for what
  /// they make was stored when it was made first. A load among `operations` brings what lies in the other memory before
  /// the step; it may run again.
  enum class Kind : uint8_t { Computes, Stores, Loads } kind = Kind::Computes;
  /// Of stores and loads: the number in the graph's `memories` of the memory that they reach.
  uint32_t memory = 0;

  bool operator==(const StepOperation &other) const = default;
};

/// Copies between two memories in one direction, one after the other.
struct Lane {
  double latencySeconds = 0, bytesPerSecond = 1;

  double getSeconds(uint64_t bytes) const { return latencySeconds + double(bytes) / bytesPerSecond; }
  bool operator==(const Lane &other) const = default;
};

/// The two lanes of another memory: stores pass `away`, loads `back`.
struct MemoryLanes {
  Lane away = {}, back = {};
  /// Where values may begin that wait there: at its multiples, a power of two.
  uint64_t alignment = 1;

  bool operator==(const MemoryLanes &other) const = default;
};

struct StepLoop;

/// Operations are numbered in a topological order: the order of the program.
struct StepGraph {
  std::vector<StepValue> values;
  std::vector<StepOperation> operations;
  /// Parts of operations: they make some of the same values, no output among them, and run only after the whole one
  /// has. One may read what another one of the same operation makes. Their numbers in a schedule follow those of
  /// `operations`.
  std::vector<StepOperation> reruns;
  /// What those operations do that are loops, in their order. Such an operation runs once; its workspace and its time
  /// are those of its body in the order that it has.
  std::vector<StepLoop> loops;
  /// Every buffer begins at a multiple of it: a power of two.
  uint64_t alignment = 64;
  /// Other memories that copies reach. Values of the step wait in those from which `loads` of operations bring them
  /// back.
  std::vector<MemoryLanes> memories = {};

  uint64_t size(uint32_t value) const { return (values[value].bytes + alignment - 1) & ~(alignment - 1); }
  const StepOperation &at(uint32_t op) const {
    return op < operations.size() ? operations[op] : reruns[op - operations.size()];
  }
  uint64_t workspace(uint32_t op) const { return (at(op).workspaceBytes + alignment - 1) & ~(alignment - 1); }
  /// What a store or a load takes of its lane; in a memory without lanes nothing.
  double getCopySeconds(const StepOperation &copy) const {
    const bool isStore = copy.kind == StepOperation::Kind::Stores;
    const uint64_t bytes = values[isStore ? copy.reads.front() : copy.writes.front()].bytes;
    if (copy.memory >= memories.size())
      return 0;
    const MemoryLanes &lanes = memories[copy.memory];
    return (isStore ? lanes.away : lanes.back).getSeconds(bytes);
  }
  /// What it takes to store in a memory what waits there until it is loaded.
  double getStoreSeconds(uint32_t value, uint32_t memory) const {
    return memories[memory].away.getSeconds(values[value].bytes);
  }
  bool operator==(const StepGraph &other) const;
};

/// Whether a step has few kernels: it is searched longer, for that takes little time, and packed shorter, for many sets
/// of few buffers have no packing near their bound.
inline bool isSmall(const StepGraph &graph) { return graph.operations.size() <= 256; }

/// A loop: an operation whose workspace is the peak of a timeline of its own. What it reads from outside lives through
/// all of it, as do its results.
struct StepLoop {
  uint32_t operation = 0;
  uint64_t rounds = 1;
  /// One round. Everything from outside is an argument, and so is what is handed from round to round; what a round
  /// hands on at its end is kept. The first operation makes the round's parts of what is cut into slices, and a value
  /// without bytes that all others read.
  StepGraph body;

  bool operator==(const StepLoop &other) const = default;
};
inline bool StepGraph::operator==(const StepGraph &other) const = default;

/// Operations in the order in which they run. One that occurs again is computed
/// again; a read sees the last result that was made before it.
using Schedule = std::vector<uint32_t>;

/// The program as it stands: every operation once.
Schedule originalSchedule(const StepGraph &graph);

/// Exact figures of a schedule.
struct Timeline {
  /// Most bytes of the transient arena that are alive at once, buffers rounded
  /// up to the alignment; the instruction where that is.
  uint64_t peakBytes = 0;
  uint32_t peakAt = 0;
  double seconds = 0;
  uint64_t flops = 0;
  /// Operations that run again or whose results are loaded; of them, the latter.
  uint32_t recomputed = 0, loaded = 0;
  /// Bytes alive at each instruction, and after the last.
  std::vector<uint64_t> live;
};

/// A schedule and its figures; in those, the bodies of its loops are counted.
struct FittedSchedule {
  Schedule schedule;
  Timeline timeline;
  /// What found it.
  const char *method = "";
  /// For each loop of the graph, how a round runs; empty: the bodies stay as they are.
  std::vector<FittedSchedule> bodies = {};
};

/// Nothing if the schedule is not valid: an operation is missing, runs before
/// what it reads is there, reads an argument after its update, updates twice, or
/// makes an output anew. In place: the first dying operand that a result may
/// overwrite hands its bytes on, as in Analysis/StepStorage.
std::optional<Timeline> evaluate(const StepGraph &graph, std::span<const uint32_t> schedule);

/// The graph with every loop as one plain operation: its workspace, time and arithmetic are those of the plans of the
/// bodies (one for each loop). The schedules of both graphs are the same.
StepGraph withBodies(const StepGraph &graph, std::span<const FittedSchedule> bodies);

/// Whether a result may take over an operand's bytes where that dies: it has as many, and they lie in the transient
/// arena and do not stay to the end.
inline bool mayTakeOver(const StepGraph &graph, uint32_t result, uint32_t operand) {
  const StepValue &source = graph.values[operand];
  return source.producer >= 0 && !source.placed && !source.kept && source.bytes &&
         source.bytes == graph.values[result].bytes;
}

/// The rule of writing in place, for all that count or lower bytes: result `number` of the operation is written over
/// the first of its `overwrites` that may hand its bytes on and that `isFree`, which is to say that it dies here and
/// that no other result has it. Nothing: the result has bytes of its own.
template <typename IsFree>
std::optional<uint32_t> findOverwritten(const StepGraph &graph, const StepOperation &operation, size_t number,
                                        IsFree isFree) {
  for (uint32_t operand : operation.overwrites[number])
    if (mayTakeOver(graph, operation.writes[number], operand) && isFree(operand))
      return operand;
  return std::nullopt;
}

/// The buffers of a valid schedule, as Analysis/StepStorage makes them: by birth, workspaces last.
std::vector<Buffer> listBuffers(const StepGraph &graph, std::span<const uint32_t> schedule);

/// The same of a step with loops: a loop's round begins after its head and ends before its end.
std::vector<Buffer> listBuffers(const StepGraph &graph, const FittedSchedule &plan);

/// Most bytes that any schedule of these operations needs at least: operands,
/// results and workspace of one operation, and all outputs together. Names the
/// operation; its number is that of operations where the outputs decide. A loop needs at least what its body needs at
/// least.
struct LowerBound {
  uint64_t bytes = 0;
  uint32_t operation = 0;
};
LowerBound findLowerBound(const StepGraph &graph);

/// What the operation reads and, at best, writes a result over: of those bytes a bound counts the result's only.
std::vector<uint32_t> listOverwritten(const StepGraph &graph, uint32_t op);

/// Whether running the operation again changes nothing but its results: it
/// updates no argument, makes no output and nothing with an address of its own.
bool isRecomputable(const StepGraph &graph, uint32_t op);

/// What runs when the operation is to run again: its parts, or itself; nothing if it cannot. No two make the same
/// value.
std::vector<uint32_t> listReruns(const StepGraph &graph, uint32_t op);
/// Per number in a schedule, the operation that it runs, again or a part of it.
std::vector<uint32_t> listWholes(const StepGraph &graph);
/// What makes `value` again, one of its producer's reruns; nothing if nothing does.
std::optional<uint32_t> findMaker(const StepGraph &graph, uint32_t value);

} // namespace lowtide::solve
