//===- Program.h - one entry, bound to addresses and ready to run ----------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CPU_PROGRAM_H
#define LOWTIDE_RUNTIME_DEVICES_CPU_PROGRAM_H

#include "plan.pb.h"
#include "runtime/devices/BoundRange.h"
#include "runtime/devices/Cpu/MachineCode.h"
#include "runtime/devices/Cpu/ThreadPool.h"
#include "runtime/devices/Device.h"
#include "runtime/devices/InstructionTime.h"
#include "runtime/kernels/PreparedCall.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lowtide::rt {

/// The instructions of an entry with all addresses, kernels and task counts filled in. Streams need nothing here: the
/// text is executed in order, which is one of the interleavings that the verifier has proved equal.
class Program {
public:
  /// `arenas`: base address of each arena of `plan`; `kernels`: parallel to Plan.kernels.
  static Expected<std::unique_ptr<Program>> prepare(const plan::Plan &plan, const plan::Entry &entry,
                                                    std::span<uint8_t *const> arenas,
                                                    std::span<const KernelFunction> kernels, unsigned threads);

  /// Executes all instructions. Allocates nothing.
  void run(ThreadPool &pool);
  /// Executes the instructions and shows each of them (Device::observe).
  void observe(ThreadPool &pool, const Observer &seen);

  /// From now on every run measures its instructions, or none does.
  void measure(bool on) { measuring_ = on; }
  std::vector<InstructionTime> times() const;
  /// Runs of the whole program that were measured.
  uint64_t measuredRuns() const { return measuredRuns_; }

private:
  struct Instruction {
    enum class Kind { Launch, Call, Copy, Fill, Repeat } kind;
    const plan::Instruction *origin = nullptr;
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
    // Repeat
    int64_t count = 0;
    std::vector<Instruction> body;

    uint64_t nanoseconds = 0, runs = 0;
  };

  Program(const plan::Plan &plan) : plan_(plan) {}
  Status add(const plan::Instruction &origin, std::span<uint8_t *const> arenas, std::span<const KernelFunction> kernels,
             unsigned threads, std::vector<Instruction> &to);
  void run(std::vector<Instruction> &instructions, ThreadPool &pool, uint64_t round);
  bool observe(std::vector<Instruction> &instructions, ThreadPool &pool, uint64_t round, const Observer &seen);
  void execute(Instruction &instruction, ThreadPool &pool, uint64_t round);
  void collect(const std::vector<Instruction> &instructions, std::vector<InstructionTime> &to) const;

  const plan::Plan &plan_;
  std::vector<Instruction> instructions_;
  bool measuring_ = false;
  uint64_t measuredRuns_ = 0;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_CPU_PROGRAM_H
