//===- CpuDevice.h - a session's arenas, code and threads on the CPU -------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CPU_CPUDEVICE_H
#define LOWTIDE_RUNTIME_DEVICES_CPU_CPUDEVICE_H

#include "runtime/devices/Cpu/MachineCode.h"
#include "runtime/devices/Cpu/Memory.h"
#include "runtime/devices/Cpu/Program.h"
#include "runtime/devices/Device.h"
#include "runtime/devices/Spill/FileArenas.h"

#include <map>

namespace lowtide::rt {

/// The host's view is the memory in which the step computes; a step is done when `run` returns.
class CpuDevice final : public Device {
public:
  explicit CpuDevice(const Artifact &artifact) : artifact_(artifact) {}

  Status bind(const BindOptions &options) override;
  std::span<uint8_t *const> hostArenas() const override { return arenas_; }
  Status bring(const uint8_t *view, uint64_t bytes, HostAccess access) override {
    return files_.file() ? files_.file()->bring(view, bytes, access) : Status::ok();
  }
  Status leave(const uint8_t *view, uint64_t bytes) override {
    return files_.file() ? files_.file()->leave(view, bytes) : Status::ok();
  }
  /// The view is always current, unless a step broke in the middle of its updates.
  Status download(const plan::Entry *) override { return broken_ ? failure_ : Status::ok(); }
  Status run(const plan::Entry &entry) override;
  Status observe(const plan::Entry &entry, const Observer &seen) override;
  uint64_t allocatedBytes(plan::Arena::Space space) const override {
    if (space == plan::Arena::FILE)
      return files_.bytes();
    auto found = memory_.find(space);
    return found == memory_.end() ? 0 : found->second.allocatedBytes();
  }
  uint64_t allocations() const override;
  std::string besides() const override { return files_.file() ? files_.file()->describe() : std::string(); }
  std::string warning() const override { return files_.file() ? files_.file()->warnOfMemory() : std::string(); }
  Transfers transfers() const override;
  unsigned threads() const override { return pool_ ? pool_->threads() : 0; }
  void measure(const plan::Entry &entry, Measuring how) override;
  std::vector<InstructionTime> times(const plan::Entry &entry) const override;
  uint64_t measuredRuns(const plan::Entry &entry) const override;

private:
  Status allocateArenas(const BindOptions &options);
  Status prepareRun(const plan::Entry &entry);
  Status poison(const plan::Entry &entry);

  const Artifact &artifact_;
  /// Of each space but file that the plan has arenas in: all are memory of this process, and counted apart.
  std::map<plan::Arena::Space, Memory> memory_;
  FileArenas files_;
  /// Of each arena its address; null: values of a step wait in a file, which the host has no view of.
  std::vector<uint8_t *> arenas_;
  std::unique_ptr<MachineCode> code_;
  std::vector<KernelFunction> kernels_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Lanes> lanes_;
  std::map<const plan::Entry *, std::unique_ptr<Program>> programs_;
  std::map<const plan::Entry *, Transfers> transfers_; ///< of one run
  bool poison_ = false;
  /// Why no step runs any more: what one was to update is worth nothing.
  Status failure_;
  /// It was a step that failed, not what comes before one.
  bool broken_ = false;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_CPU_CPUDEVICE_H
