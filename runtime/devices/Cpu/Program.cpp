//===- Program.cpp - one entry, bound to addresses and ready to run --------===//

#include "runtime/devices/Cpu/Program.h"

#include "runtime/Workspace.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace lowtide::rt {
namespace {

/// Bytes of a copy or fill that are one task; a multiple of every pattern.
constexpr uint64_t copyGrain = uint64_t(1) << 18;

void fillPattern(uint8_t *target, uint64_t bytes, uint64_t pattern, uint32_t unit) {
  // Doubling: the first unit is written, then what is there is copied after itself.
  if (!bytes)
    return;
  std::memcpy(target, &pattern, unit);
  for (uint64_t done = unit; done < bytes; done *= 2)
    std::memcpy(target + done, target, std::min(done, bytes - done));
}

} // namespace

Expected<std::unique_ptr<Program>> Program::prepare(const plan::Plan &plan, const plan::Entry &entry,
                                                    std::span<uint8_t *const> arenas,
                                                    std::span<const KernelFunction> kernels, unsigned threads) {
  std::unique_ptr<Program> program(new Program(plan));
  for (const plan::Instruction &instruction : entry.instructions())
    if (Status status = program->add(instruction, arenas, kernels, threads, program->instructions_); !status.isOk())
      return std::move(status).at("entry '" + printable(entry.name()) + "'");
  return program;
}

Status Program::add(const plan::Instruction &origin, std::span<uint8_t *const> arenas,
                    std::span<const KernelFunction> kernels, unsigned threads, std::vector<Instruction> &to) {
  auto address = [&](const plan::Slice &slice) { return arenas[slice.arena()] + slice.offset(); };
  Instruction next;
  next.origin = &origin;
  switch (origin.kind_case()) {
  case plan::Instruction::kLaunch: {
    const plan::Launch &launch = origin.launch();
    const plan::Kernel &kernel = plan_.kernels(static_cast<int>(launch.kernel()));
    next.kind = Instruction::Kind::Launch;
    next.kernel = kernels[launch.kernel()];
    next.extent = launch.extent(), next.grain = launch.grain();
    std::vector<void *> arguments = addressesOf<void *>(launch.reads(), address);
    for (void *written : addressesOf<void *>(launch.writes(), address))
      arguments.push_back(written);
    if (!kernel.scratch_bytes()) {
      next.arguments.push_back(std::move(arguments));
      break;
    }
    uint64_t parts = countScratchParts(next.extent, next.grain, plan_.threads_max());
    next.scratchOf = parts < threads ? Instruction::ScratchOf::Task : Instruction::ScratchOf::Thread;
    for (uint64_t part = 0; part < std::min<uint64_t>(parts, threads); ++part) {
      next.arguments.push_back(arguments);
      next.arguments.back().push_back(address(launch.scratch()) + kernel.scratch_bytes() * part);
    }
    break;
  }
  case plan::Instruction::kCall: {
    const plan::Call &call = origin.call();
    auto reads = addressesOf<const void *>(call.reads(), address);
    auto writes = addressesOf<void *>(call.writes(), address);
    void *workspace = call.workspace().bytes() ? address(call.workspace()) : nullptr;
    auto prepared = prepareCall(call, {reads, writes, workspace});
    if (!prepared)
      return prepared.takeStatus();
    next.kind = Instruction::Kind::Call;
    next.call = std::move(*prepared);
    break;
  }
  case plan::Instruction::kCopy:
    next.kind = Instruction::Kind::Copy;
    next.range.bind(origin.copy(), address);
    break;
  case plan::Instruction::kFill:
    next.kind = Instruction::Kind::Fill;
    next.range.bind(origin.fill(), address);
    break;
  case plan::Instruction::kRepeat:
    next.kind = Instruction::Kind::Repeat;
    next.count = origin.repeat().count();
    for (const plan::Instruction &inner : origin.repeat().body())
      LOWTIDE_TRY(add(inner, arenas, kernels, threads, next.body));
    break;
  case plan::Instruction::kRecord:
  case plan::Instruction::kWait:
    return Status::ok();
  case plan::Instruction::KIND_NOT_SET:
    return {StatusCode::Internal, "an instruction of no kind passed the verifier"};
  }
  to.push_back(std::move(next));
  return Status::ok();
}

void Program::run(ThreadPool &pool) {
  measuredRuns_ += measuring_;
  run(instructions_, pool, 0);
}

void Program::observe(ThreadPool &pool, const Observer &seen) { observe(instructions_, pool, 0, seen); }

/// False: an observer has seen enough.
bool Program::observe(std::vector<Instruction> &instructions, ThreadPool &pool, uint64_t round, const Observer &seen) {
  for (Instruction &instruction : instructions) {
    if (instruction.kind != Instruction::Kind::Repeat) {
      execute(instruction, pool, round);
      if (!seen(*instruction.origin, round))
        return false;
      continue;
    }
    for (int64_t inner = 0; inner < instruction.count; ++inner)
      if (!observe(instruction.body, pool, static_cast<uint64_t>(inner), seen))
        return false;
  }
  return true;
}

void Program::run(std::vector<Instruction> &instructions, ThreadPool &pool, uint64_t round) {
  if (!measuring_) {
    for (Instruction &instruction : instructions)
      execute(instruction, pool, round);
    return;
  }
  for (Instruction &instruction : instructions) {
    auto start = std::chrono::steady_clock::now();
    execute(instruction, pool, round);
    auto elapsed = std::chrono::steady_clock::now() - start;
    instruction.nanoseconds +=
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
    ++instruction.runs;
  }
}

void Program::execute(Instruction &instruction, ThreadPool &pool, uint64_t round) {
  switch (instruction.kind) {
  case Instruction::Kind::Launch: {
    // Kept apart from `grain`, so that a huge grain cannot wrap.
    int64_t extent = instruction.extent, grain = std::min(instruction.grain, std::max<int64_t>(extent, 1));
    int64_t tasks = extent / grain + (extent % grain != 0);
    pool.run(tasks, [&](int64_t task, unsigned thread) {
      int64_t begin = task * grain;
      size_t part = instruction.scratchOf == Instruction::ScratchOf::None     ? 0
                    : instruction.scratchOf == Instruction::ScratchOf::Thread ? thread
                                                                              : static_cast<size_t>(task);
      instruction.kernel(instruction.arguments[part].data(), begin, extent - begin < grain ? extent : begin + grain);
    });
    return;
  }
  case Instruction::Kind::Call:
    for (int phase = 0; phase < instruction.call->phases(); ++phase)
      pool.run(instruction.call->tasks(phase), [&](int64_t task, unsigned) { instruction.call->run(phase, task); });
    return;
  case Instruction::Kind::Copy:
  case Instruction::Kind::Fill: {
    const BoundRange<uint8_t *> &range = instruction.range;
    int64_t tasks = static_cast<int64_t>((range.bytes + copyGrain - 1) / copyGrain);
    uint8_t *target = range.target + range.targetStep * static_cast<int64_t>(round);
    const uint8_t *source = range.source + range.sourceStep * static_cast<int64_t>(round);
    pool.run(tasks, [&](int64_t task, unsigned) {
      uint64_t begin = static_cast<uint64_t>(task) * copyGrain, bytes = std::min(copyGrain, range.bytes - begin);
      if (instruction.kind == Instruction::Kind::Copy)
        std::memcpy(target + begin, source + begin, bytes);
      else
        fillPattern(target + begin, bytes, range.pattern, range.patternBytes);
    });
    return;
  }
  case Instruction::Kind::Repeat:
    for (int64_t inner = 0; inner < instruction.count; ++inner)
      run(instruction.body, pool, static_cast<uint64_t>(inner));
    return;
  }
}

std::vector<InstructionTime> Program::times() const {
  std::vector<InstructionTime> times;
  collect(instructions_, times);
  return times;
}

void Program::collect(const std::vector<Instruction> &instructions, std::vector<InstructionTime> &to) const {
  for (const Instruction &instruction : instructions) {
    if (instruction.kind == Instruction::Kind::Repeat) {
      collect(instruction.body, to);
      continue;
    }
    InstructionTime time = describeInstruction(plan_, *instruction.origin);
    time.nanoseconds = instruction.nanoseconds;
    time.runs = instruction.runs;
    to.push_back(std::move(time));
  }
}

} // namespace lowtide::rt
