//===- CpuDevice.cpp - a session's arenas, code and threads on the CPU -----===//

#include "runtime/devices/Cpu/CpuDevice.h"

#include "runtime/Session.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace lowtide::rt {

Status CpuDevice::bind(const BindOptions &options) {
  const plan::Plan &plan = artifact_.plan();
  LOWTIDE_TRY(checkTarget(plan.target()));
  for (const plan::Arena &arena : plan.arenas()) {
    const std::string where = "arena '" + printable(arena.name()) + "'";
    if (arena.space() == plan::Arena::FILE)
      return {StatusCode::Unsupported,
              "lies in space file; this runtime's CPU device has device, host_pinned and host: compile the model again "
              "with this release",
              where};
    Expected<uint8_t *> memory = memory_[arena.space()].allocate(arena.bytes(), arena.alignment(), where);
    if (!memory)
      return memory.takeStatus();
    arenas_.push_back(*memory);
  }
  if (plan.kernels_size()) {
    Expected<std::unique_ptr<MachineCode>> code = MachineCode::load(artifact_.code());
    if (!code)
      return code.takeStatus();
    code_ = std::move(*code);
    for (const plan::Kernel &kernel : plan.kernels()) {
      Expected<void *> function = code_->symbol(kernel.symbol());
      if (!function)
        return function.takeStatus();
      kernels_.push_back(reinterpret_cast<KernelFunction>(*function));
    }
  }
  unsigned threads = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  threads = std::min(threads, plan.threads_max() ? plan.threads_max() : 256u);
  for (const plan::Entry &entry : plan.entries()) {
    Expected<std::unique_ptr<Program>> program = Program::prepare(plan, entry, arenas_, kernels_, threads);
    if (!program)
      return program.takeStatus();
    programs_[&entry] = std::move(*program);
  }
  poison_ = options.poison;
  Expected<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
  if (!pool)
    return pool.takeStatus();
  pool_ = std::move(*pool);
  return Status::ok();
}

uint64_t CpuDevice::allocations() const {
  uint64_t calls = 0;
  for (const auto &[space, memory] : memory_)
    calls += memory.allocations();
  return calls;
}

Status CpuDevice::run(const plan::Entry &entry) {
  if (poison_)
    poison(entry);
  programs_.at(&entry)->run(*pool_);
  return Status::ok();
}

Status CpuDevice::observe(const plan::Entry &entry, const Observer &seen) {
  if (poison_)
    poison(entry);
  programs_.at(&entry)->observe(*pool_, seen);
  return Status::ok();
}

void CpuDevice::poison(const plan::Entry &entry) {
  const plan::Plan &plan = artifact_.plan();
  for (int i = 0; i < plan.arenas_size(); ++i) {
    if (plan.arenas(i).role() != plan::Arena::TRANSIENT)
      continue;
    // Batch arrays may live in a transient arena; they are defined already.
    uint8_t *arena = arenas_[static_cast<size_t>(i)];
    uint64_t position = 0, bytes = plan.arenas(i).bytes();
    while (position < bytes) {
      uint64_t end = bytes, next = bytes;
      for (const plan::Binding &binding : entry.bindings()) {
        const plan::Slice &slice = binding.slice();
        if (slice.value() == 0 || slice.arena() != static_cast<uint32_t>(i) ||
            slice.offset() + slice.bytes() <= position)
          continue;
        if (slice.offset() < end)
          end = slice.offset(), next = slice.offset() + slice.bytes();
      }
      if (end > position)
        std::memset(arena + position, 0xFF, end - position);
      position = std::max(next, position + 1);
    }
  }
}

void CpuDevice::measure(const plan::Entry &entry, bool on) { programs_.at(&entry)->measure(on); }
std::vector<InstructionTime> CpuDevice::times(const plan::Entry &entry) const { return programs_.at(&entry)->times(); }
uint64_t CpuDevice::measuredRuns(const plan::Entry &entry) const { return programs_.at(&entry)->measuredRuns(); }

} // namespace lowtide::rt
