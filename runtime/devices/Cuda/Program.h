//===- Program.h - one entry, bound to device addresses --------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_PROGRAM_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_PROGRAM_H

#include "plan.pb.h"
#include "runtime/MemorySpaces.h"
#include "runtime/devices/BoundRange.h"
#include "runtime/devices/Cuda/FileCopies.h"
#include "runtime/devices/Cuda/LibraryCall.h"
#include "runtime/devices/InstructionTime.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lowtide::rt::cuda {

/// What a program is made with, shared by all entries.
struct ProgramContext {
  const Api &api;
  Resources &resources;
  Libraries &libraries;
  const plan::Plan &plan;
  /// Addresses of the arenas that lie on the device, and of those that lie in pinned memory; parallel to Plan.arenas.
  std::span<const CUdeviceptr> arenas;
  std::span<uint8_t *const> pinned;
  /// Those that lie in a file begin at offsets of it.
  FileCopies &files;
  std::span<const CUfunction> kernels; ///< parallel to Plan.kernels
  std::vector<CUstream> &streams;      ///< of instructions; grows to what an entry needs
};

/// The instructions of an entry with addresses, kernels and library calls filled in. `enqueue` hands them to streams:
/// once, while a graph is captured.
class Program {
public:
  static Expected<std::unique_ptr<Program>> prepare(const ProgramContext &context, const plan::Entry &entry);

  /// Makes every library call once, so that libraries load what they need before anything is captured. Overwrites
  /// results: for memory that holds nothing yet.
  Status warmUp();

  /// Enqueues all instructions; work on streams()[0] that was enqueued before comes first, and what is enqueued there
  /// afterwards comes after all of them. Repeats are unrolled.
  Status enqueue();

  /// Enqueues them one after the other on the first stream, each between two events, waits, and adds up their times.
  Status measureOnce();
  /// Enqueues them as `enqueue` does, each between two events of its stream, waits for all, and adds up their times.
  /// With more executions than there are events, the first ones of each instruction are measured.
  Status measureLanes();
  std::vector<InstructionTime> times() const { return times_; }
  uint64_t measuredRuns() const { return measuredRuns_; }

  /// Algorithms that the libraries chose, one line per call.
  std::vector<std::string> choices() const;
  /// Nodes of its graph.
  uint64_t nodes() const { return nodes_; }

private:
  struct Instruction {
    enum class Kind { Launch, Call, Copy, Fill, Record, Wait, Repeat } kind;
    const plan::Instruction *origin = nullptr;
    uint32_t stream = 0;
    // Launch
    CUfunction function = nullptr;
    uint32_t blocks = 0, threads = 0, sharedBytes = 0;
    std::vector<CUdeviceptr> arguments;
    // Call
    std::unique_ptr<LibraryCall> call;
    // Copy, Fill; an address of the host, or an offset in the file, where the direction says so
    BoundRange<CUdeviceptr> range;
    CopyDirection direction = CopyDirection::Within;
    bool isFileCopy = false;
    // Record, Wait
    CUevent event = nullptr;
    // Repeat
    int64_t count = 0;
    std::vector<Instruction> body;
    size_t time = 0; ///< index into times_
  };

  explicit Program(const ProgramContext &context) : context_(context) {}
  Status add(const plan::Instruction &origin, uint64_t rounds, std::vector<Instruction> &to);
  CUdeviceptr addressOf(const plan::Slice &slice) const;
  Status addCopy(const plan::Copy &copy, Instruction &next);
  Status addLaunch(const plan::Launch &launch, Instruction &next);
  Status enqueue(const std::vector<Instruction> &instructions, uint64_t round);
  Status enqueue(const Instruction &instruction, uint64_t round, CUstream stream);
  Status enqueueCopy(const Instruction &instruction, CUdeviceptr target, CUdeviceptr source, CUstream stream);
  Status fill(const BoundRange<CUdeviceptr> &range, CUdeviceptr target, CUstream stream);
  Status warmUp(const std::vector<Instruction> &instructions);
  Status measure(const std::vector<Instruction> &instructions, uint64_t round);
  Status enqueueBetweenEvents(const Instruction &instruction, uint64_t round);
  Expected<CUevent> getTimingEvent(size_t index);

  ProgramContext context_;
  std::vector<CUstream> streams_;
  std::vector<CUevent> events_;
  CUevent fork_ = nullptr;
  std::vector<CUevent> joins_; ///< parallel to streams_
  std::vector<Instruction> instructions_;
  /// Of copies to a file, and from it; nothing: there are none.
  std::optional<uint32_t> writingStream_, readingStream_;
  CUevent before_ = nullptr, behind_ = nullptr; ///< of a measurement
  /// Of a measurement in lanes: begin and end of each execution, and whose it is, an index into times_.
  std::vector<CUevent> timingEvents_;
  std::vector<size_t> timed_;
  std::vector<uint64_t> timedRounds_; ///< parallel to times_
  bool isTimed_ = false;
  std::vector<InstructionTime> times_;
  uint64_t measuredRuns_ = 0, nodes_ = 0;
  uint64_t numbers_ = 0; ///< of instructions, given so far
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_PROGRAM_H
