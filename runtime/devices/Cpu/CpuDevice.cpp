//===- CpuDevice.cpp - a session's arenas, code and threads on the CPU -----===//

#include "runtime/devices/Cpu/CpuDevice.h"

#include "runtime/Session.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace lowtide::rt {

Status CpuDevice::allocateArenas(const BindOptions &options) {
  const plan::Plan &plan = artifact_.plan();
  std::span<uint8_t> staging;
  for (const plan::Arena &arena : plan.arenas()) {
    if (arena.space() == plan::Arena::FILE) {
      arenas_.push_back(nullptr);
      continue;
    }
    Expected<uint8_t *> memory =
        memory_[arena.space()].allocate(arena.bytes(), arena.alignment(), "arena '" + printable(arena.name()) + "'");
    if (!memory)
      return memory.takeStatus();
    arenas_.push_back(*memory);
    if (arena.role() == plan::Arena::STAGING)
      staging = {*memory, arena.bytes()};
  }
  LOWTIDE_TRY(files_.open(plan, options, staging));
  for (size_t i = 0; i < arenas_.size(); ++i)
    if (uint8_t *view = files_.view(i))
      arenas_[i] = view;
  return Status::ok();
}

Status CpuDevice::bind(const BindOptions &options) {
  const plan::Plan &plan = artifact_.plan();
  LOWTIDE_TRY(checkTarget(plan.target()));
  LOWTIDE_TRY(allocateArenas(options));
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
  uint32_t streams = 1;
  for (const plan::Entry &entry : plan.entries()) {
    Expected<std::unique_ptr<Program>> program =
        Program::prepare(plan, entry, {arenas_, files_.offsets(), files_.file()}, kernels_, threads);
    if (!program)
      return program.takeStatus();
    programs_[&entry] = std::move(*program);
    transfers_[&entry] = countTransfers(plan, entry);
    streams = std::max(streams, entry.streams());
  }
  poison_ = options.poison;
  Expected<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
  if (!pool)
    return pool.takeStatus();
  pool_ = std::move(*pool);
  Expected<std::unique_ptr<Lanes>> lanes = Lanes::create(streams - 1);
  if (!lanes)
    return lanes.takeStatus();
  lanes_ = std::move(*lanes);
  return Status::ok();
}

uint64_t CpuDevice::allocations() const {
  uint64_t calls = 0;
  for (const auto &[space, memory] : memory_)
    calls += memory.allocations();
  return calls;
}

Transfers CpuDevice::transfers() const {
  Transfers sum;
  if (files_.file())
    sum.way = files_.file()->way();
  sum.waitedNanoseconds = 0;
  for (const auto &[entry, program] : programs_) {
    sum.addRuns(transfers_.at(entry), program->runs());
    *sum.waitedNanoseconds += program->waitedNanoseconds();
  }
  return sum;
}

Status CpuDevice::prepareRun(const plan::Entry &entry) {
  if (failure_.isOk() && files_.file())
    failure_ = files_.file()->leaveAll();
  if (failure_.isOk() && poison_)
    failure_ = poison(entry);
  return failure_;
}

Status CpuDevice::run(const plan::Entry &entry) {
  LOWTIDE_TRY(prepareRun(entry));
  failure_ = programs_.at(&entry)->run(*pool_, *lanes_);
  broken_ = !failure_.isOk();
  return failure_;
}

Status CpuDevice::observe(const plan::Entry &entry, const Observer &seen) {
  LOWTIDE_TRY(prepareRun(entry));
  failure_ = programs_.at(&entry)->observe(*pool_, seen);
  broken_ = !failure_.isOk();
  return failure_;
}

Status CpuDevice::poison(const plan::Entry &entry) {
  const plan::Plan &plan = artifact_.plan();
  LOWTIDE_TRY(files_.poison());
  for (int i = 0; i < plan.arenas_size(); ++i) {
    if (plan.arenas(i).role() != plan::Arena::TRANSIENT || plan.arenas(i).space() == plan::Arena::FILE)
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
  return Status::ok();
}

/// Lanes are threads: they run at once however they are measured.
void CpuDevice::measure(const plan::Entry &entry, Measuring how) {
  programs_.at(&entry)->measure(how != Measuring::None);
}
std::vector<InstructionTime> CpuDevice::times(const plan::Entry &entry) const { return programs_.at(&entry)->times(); }
uint64_t CpuDevice::measuredRuns(const plan::Entry &entry) const { return programs_.at(&entry)->measuredRuns(); }

} // namespace lowtide::rt
