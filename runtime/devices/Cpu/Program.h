//===- Program.h - one entry, bound to addresses and ready to run ----------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CPU_PROGRAM_H
#define LOWTIDE_RUNTIME_DEVICES_CPU_PROGRAM_H

#include "plan.pb.h"
#include "runtime/devices/BoundRange.h"
#include "runtime/devices/Cpu/Lanes.h"
#include "runtime/devices/Cpu/MachineCode.h"
#include "runtime/devices/Cpu/ThreadPool.h"
#include "runtime/devices/Device.h"
#include "runtime/devices/InstructionTime.h"
#include "runtime/devices/Spill/SpillFile.h"
#include "runtime/kernels/PreparedCall.h"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lowtide::rt {

/// Where the arenas of a plan are, one for each; those in space file have an offset there, the others an address.
struct ArenaPlaces {
  std::span<uint8_t *const> addresses;
  std::span<const uint64_t> offsets;
  SpillFile *file = nullptr; ///< null: no arena lies in one
};

/// The instructions of an entry with all addresses, kernels and task counts filled in.
class Program {
public:
  /// `kernels`: parallel to Plan.kernels. What the places name outlives the program.
  static Expected<std::unique_ptr<Program>> prepare(const plan::Plan &plan, const plan::Entry &entry,
                                                    const ArenaPlaces &places, std::span<const KernelFunction> kernels,
                                                    unsigned threads);

  /// Executes all instructions, those of each stream but the first on a lane of its own. Allocates nothing. Fails where
  /// a file does; what the step was to update is then worth nothing.
  Status run(ThreadPool &pool, Lanes &lanes);
  /// Executes the instructions and shows each of them (Device::observe), in the order of the text, which is one of the
  /// interleavings that the verifier has proved equal.
  Status observe(ThreadPool &pool, const Observer &seen);

  uint32_t runs() const { return run_; }
  /// What the runs so far have waited for copies.
  uint64_t waitedNanoseconds() const { return waitedNanoseconds_; }

  /// From now on every run measures its instructions, or none does.
  void measure(bool on);
  std::vector<InstructionTime> times() const;
  /// Runs of the whole program that were measured.
  uint64_t measuredRuns() const { return measuredRuns_; }

private:
  struct Instruction {
    enum class Kind { Launch, Call, Copy, Fill, Repeat, Record, Wait } kind;
    const plan::Instruction *origin = nullptr;
    uint32_t stream = 0;
    // Launch
    KernelFunction kernel = nullptr;
    int64_t extent = 0, grain = 1;
    /// One list for each part of the scratch, in which alone they differ; one list where there is no scratch.
    std::vector<std::vector<void *>> arguments;
    /// With fewer parts than threads there are fewer tasks than threads, and a part belongs to a task.
    enum class ScratchOf { None, Thread, Task } scratchOf = ScratchOf::None;
    // Call
    std::unique_ptr<PreparedCall> call;
    // Copy, Fill
    BoundRange<uint8_t *> range;
    /// Of a copy to a file, or from one: there the range has no address.
    enum class InFile { None, Source, Target } inFile = InFile::None;
    uint64_t fileOffset = 0;
    // Record, Wait
    uint32_t event = 0;
    // Repeat
    int64_t count = 0;
    std::vector<Instruction> body;

    uint64_t nanoseconds = 0, runs = 0;
    /// Of the run `spansOf`, and where that was.
    std::vector<InstructionSpan> spans;
    uint32_t spansOf = 0, lane = 0;
  };

  /// Who executes: a stream, and the threads that help it; a stream of copies has none.
  struct Lane {
    uint32_t stream = 0;
    ThreadPool *pool = nullptr;
  };

  Program(const plan::Plan &plan, const plan::Entry &entry, const ArenaPlaces &places)
      : plan_(plan), places_(places), streams_(std::max(1u, entry.streams())), events_(entry.events()) {}
  Status add(const plan::Instruction &origin, std::span<const KernelFunction> kernels, unsigned threads,
             std::vector<Instruction> &to);
  void bindCopy(const plan::Copy &copy, Instruction &next);
  void run(std::vector<Instruction> &instructions, const Lane &lane, uint64_t round);
  void runStream(uint32_t stream, ThreadPool &pool);
  bool observe(std::vector<Instruction> &instructions, ThreadPool &pool, uint64_t round, const Observer &seen);
  void executeMeasured(Instruction &instruction, const Lane &lane, uint64_t round);
  void execute(Instruction &instruction, const Lane &lane, uint64_t round);
  static void reserveSpans(std::vector<Instruction> &instructions, uint64_t rounds);
  void copyFile(const Instruction &instruction, uint64_t round);
  void await(uint32_t event, bool isStep);
  void fail(Status status);
  Status takeFailure();
  void collect(const std::vector<Instruction> &instructions, std::vector<InstructionTime> &to) const;

  const plan::Plan &plan_;
  ArenaPlaces places_;
  std::vector<Instruction> instructions_;
  uint32_t streams_;
  Events events_;
  /// Number of this run, from 1; the first failure of a file.
  uint32_t run_ = 0;
  std::atomic<bool> hasFailed_ = false;
  std::mutex failing_;
  Status failure_;
  uint64_t waitedNanoseconds_ = 0;
  bool measuring_ = false;
  uint64_t measuredRuns_ = 0;
  std::chrono::steady_clock::time_point runBegin_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_CPU_PROGRAM_H
