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

/// Calls work(task, thread) for every task; without a pool one after the other, on the caller's thread.
template <typename Work> void runTasks(ThreadPool *pool, int64_t tasks, Work &&work) {
  if (pool)
    pool->run(tasks, work);
  else
    for (int64_t task = 0; task < tasks; ++task)
      work(task, 0u);
}

} // namespace

Expected<std::unique_ptr<Program>> Program::prepare(const plan::Plan &plan, const plan::Entry &entry,
                                                    const ArenaPlaces &places, std::span<const KernelFunction> kernels,
                                                    unsigned threads) {
  std::unique_ptr<Program> program(new Program(plan, entry, places));
  for (const plan::Instruction &instruction : entry.instructions())
    if (Status status = program->add(instruction, kernels, threads, program->instructions_); !status.isOk())
      return std::move(status).at("entry '" + printable(entry.name()) + "'");
  return program;
}

void Program::bindCopy(const plan::Copy &copy, Instruction &next) {
  auto spaceOf = [&](const plan::Slice &slice) { return plan_.arenas(static_cast<int>(slice.arena())).space(); };
  const plan::Arena::Space from = spaceOf(copy.source()), to = spaceOf(copy.target());
  if (from == plan::Arena::FILE || to == plan::Arena::FILE) {
    const plan::Slice &inFile = from == plan::Arena::FILE ? copy.source() : copy.target();
    next.inFile = from == plan::Arena::FILE ? Instruction::InFile::Source : Instruction::InFile::Target;
    next.fileOffset = places_.offsets[inFile.arena()] + inFile.offset();
  }
  next.range.bind(copy, [&](const plan::Slice &slice) {
    uint8_t *arena = places_.addresses[slice.arena()];
    return arena ? arena + slice.offset() : nullptr;
  });
}

Status Program::add(const plan::Instruction &origin, std::span<const KernelFunction> kernels, unsigned threads,
                    std::vector<Instruction> &to) {
  auto address = [&](const plan::Slice &slice) { return places_.addresses[slice.arena()] + slice.offset(); };
  Instruction next;
  next.origin = &origin;
  next.stream = origin.stream();
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
    bindCopy(origin.copy(), next);
    break;
  case plan::Instruction::kFill:
    next.kind = Instruction::Kind::Fill;
    next.range.bind(origin.fill(), address);
    break;
  case plan::Instruction::kRepeat:
    next.kind = Instruction::Kind::Repeat;
    next.count = origin.repeat().count();
    for (const plan::Instruction &inner : origin.repeat().body())
      LOWTIDE_TRY(add(inner, kernels, threads, next.body));
    break;
  case plan::Instruction::kRecord:
    next.kind = Instruction::Kind::Record;
    next.event = origin.record().event();
    break;
  case plan::Instruction::kWait:
    next.kind = Instruction::Kind::Wait;
    next.event = origin.wait().event();
    break;
  case plan::Instruction::KIND_NOT_SET:
    return {StatusCode::Internal, "an instruction of no kind passed the verifier"};
  }
  to.push_back(std::move(next));
  return Status::ok();
}

void Program::measure(bool on) {
  measuring_ = on;
  if (on)
    reserveSpans(instructions_, 1);
}

/// A measured run allocates nothing either.
void Program::reserveSpans(std::vector<Instruction> &instructions, uint64_t rounds) {
  for (Instruction &instruction : instructions) {
    instruction.spans.reserve(rounds);
    const auto count = static_cast<uint64_t>(std::max<int64_t>(instruction.count, 0));
    reserveSpans(instruction.body, std::min(maxSpans, rounds * std::min(maxSpans, count)));
  }
}

Status Program::run(ThreadPool &pool, Lanes &lanes) {
  measuredRuns_ += measuring_;
  ++run_;
  runBegin_ = std::chrono::steady_clock::now();
  auto runLane = [&](unsigned lane) { runStream(lane + 1, pool); };
  lanes.start(streams_ - 1, runLane);
  runStream(0, pool);
  lanes.wait();
  return takeFailure();
}

/// After a failure nothing computes or copies any more; events are recorded, so that no stream waits for ever.
void Program::runStream(uint32_t stream, ThreadPool &pool) {
  for (Instruction &instruction : instructions_) {
    if (instruction.stream != stream)
      continue;
    if (instruction.kind == Instruction::Kind::Record)
      events_.record(instruction.event, run_);
    else if (instruction.kind == Instruction::Kind::Wait)
      await(instruction.event, /*isStep=*/stream == 0);
    else if (!hasFailed_.load(std::memory_order_acquire))
      executeMeasured(instruction, {stream, stream == 0 ? &pool : nullptr}, 0);
  }
}

void Program::await(uint32_t event, bool isStep) {
  if (events_.isRecorded(event, run_))
    return;
  const auto start = std::chrono::steady_clock::now();
  events_.await(event, run_);
  if (isStep)
    waitedNanoseconds_ += static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count());
}

void Program::fail(Status status) {
  const std::lock_guard<std::mutex> lock(failing_);
  if (failure_.isOk())
    failure_ = std::move(status);
  hasFailed_.store(true, std::memory_order_release);
}

Status Program::takeFailure() {
  const std::lock_guard<std::mutex> lock(failing_);
  return failure_;
}

Status Program::observe(ThreadPool &pool, const Observer &seen) {
  ++run_;
  observe(instructions_, pool, 0, seen);
  return takeFailure();
}

/// False: an observer has seen enough.
bool Program::observe(std::vector<Instruction> &instructions, ThreadPool &pool, uint64_t round, const Observer &seen) {
  for (Instruction &instruction : instructions) {
    if (instruction.kind == Instruction::Kind::Record || instruction.kind == Instruction::Kind::Wait)
      continue;
    if (instruction.kind != Instruction::Kind::Repeat) {
      execute(instruction, {0, &pool}, round);
      if (hasFailed_)
        return false;
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

void Program::run(std::vector<Instruction> &instructions, const Lane &lane, uint64_t round) {
  for (Instruction &instruction : instructions)
    executeMeasured(instruction, lane, round);
}

void Program::executeMeasured(Instruction &instruction, const Lane &lane, uint64_t round) {
  if (!measuring_) {
    execute(instruction, lane, round);
    return;
  }
  auto now = [this] {
    const auto since = std::chrono::steady_clock::now() - runBegin_;
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  };
  const uint64_t begin = now();
  execute(instruction, lane, round);
  const uint64_t end = now();
  instruction.nanoseconds += end - begin;
  ++instruction.runs;
  if (instruction.spansOf != run_) {
    instruction.spans.clear();
    instruction.spansOf = run_, instruction.lane = lane.stream;
  }
  if (instruction.spans.size() < maxSpans)
    instruction.spans.push_back({begin, end});
}

void Program::copyFile(const Instruction &instruction, uint64_t round) {
  const BoundRange<uint8_t *> &range = instruction.range;
  const auto rounds = static_cast<int64_t>(round);
  const bool isWrite = instruction.inFile == Instruction::InFile::Target;
  const uint64_t offset =
      instruction.fileOffset + static_cast<uint64_t>((isWrite ? range.targetStep : range.sourceStep) * rounds);
  if (Status status = isWrite ? places_.file->write(offset, range.source + range.sourceStep * rounds, range.bytes)
                              : places_.file->read(offset, range.target + range.targetStep * rounds, range.bytes);
      !status.isOk())
    fail(std::move(status));
}

/// A lane of copies has one thread; the pool is the step's own.
void Program::execute(Instruction &instruction, const Lane &lane, uint64_t round) {
  ThreadPool *const pool = lane.pool;
  switch (instruction.kind) {
  case Instruction::Kind::Launch: {
    // Kept apart from `grain`, so that a huge grain cannot wrap.
    int64_t extent = instruction.extent, grain = std::min(instruction.grain, std::max<int64_t>(extent, 1));
    int64_t tasks = extent / grain + (extent % grain != 0);
    runTasks(pool, tasks, [&](int64_t task, unsigned thread) {
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
      runTasks(pool, instruction.call->tasks(phase),
               [&](int64_t task, unsigned) { instruction.call->run(phase, task); });
    return;
  case Instruction::Kind::Copy:
    if (instruction.inFile != Instruction::InFile::None) {
      copyFile(instruction, round);
      return;
    }
    [[fallthrough]];
  case Instruction::Kind::Fill: {
    const BoundRange<uint8_t *> &range = instruction.range;
    int64_t tasks = static_cast<int64_t>((range.bytes + copyGrain - 1) / copyGrain);
    uint8_t *target = range.target + range.targetStep * static_cast<int64_t>(round);
    const uint8_t *source = range.source + range.sourceStep * static_cast<int64_t>(round);
    runTasks(pool, tasks, [&](int64_t task, unsigned) {
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
      run(instruction.body, lane, static_cast<uint64_t>(inner));
    return;
  case Instruction::Kind::Record:
  case Instruction::Kind::Wait:
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
    if (instruction.kind == Instruction::Kind::Record || instruction.kind == Instruction::Kind::Wait)
      continue;
    InstructionTime time = describeInstruction(plan_, *instruction.origin);
    time.number = to.size();
    time.lane = instruction.lane;
    time.nanoseconds = instruction.nanoseconds;
    time.runs = instruction.runs;
    time.spans = instruction.spans;
    to.push_back(std::move(time));
  }
}

} // namespace lowtide::rt
