//===- Program.cpp - one entry, bound to device addresses ------------------===//

#include "runtime/devices/Cuda/Program.h"

#include "runtime/devices/Cuda/NamedRange.h"

#include <algorithm>

namespace lowtide::rt::cuda {
namespace {

/// Nodes of a graph at most: beyond this, instantiating it takes minutes and gigabytes.
constexpr uint64_t maxNodes = uint64_t(1) << 20;
constexpr int64_t maxBlocks = (int64_t(1) << 31) - 1;
/// Executions that a measurement in lanes takes two events for, at most.
constexpr uint64_t maxTimed = uint64_t(1) << 16;

} // namespace

Expected<std::unique_ptr<Program>> Program::prepare(const ProgramContext &context, const plan::Entry &entry) {
  std::unique_ptr<Program> program(new Program(context));
  Resources &resources = context.resources;
  size_t streams = std::max<uint32_t>(entry.streams(), 1);
  while (context.streams.size() < streams) {
    Expected<CUstream> stream = resources.stream();
    if (!stream)
      return stream.takeStatus();
    context.streams.push_back(*stream);
  }
  program->streams_.assign(context.streams.begin(), context.streams.begin() + static_cast<ptrdiff_t>(streams));
  auto addEvent = [&](CUevent &to, unsigned flags = CU_EVENT_DISABLE_TIMING) -> Status {
    Expected<CUevent> event = resources.event(flags);
    if (!event)
      return event.takeStatus();
    to = *event;
    return Status::ok();
  };
  program->events_.resize(entry.events());
  for (CUevent &event : program->events_)
    LOWTIDE_TRY(addEvent(event));
  if (streams > 1) {
    LOWTIDE_TRY(addEvent(program->fork_));
    program->joins_.resize(streams);
    for (size_t i = 1; i < streams; ++i)
      LOWTIDE_TRY(addEvent(program->joins_[i]));
  }
  LOWTIDE_TRY(addEvent(program->before_, CU_EVENT_DEFAULT));
  LOWTIDE_TRY(addEvent(program->behind_, CU_EVENT_DEFAULT));
  for (const plan::Instruction &instruction : entry.instructions())
    if (Status status = program->add(instruction, 1, program->instructions_); !status.isOk()) {
      std::string place = "entry '" + printable(entry.name()) + "'";
      if (!instruction.location().empty())
        place += ", " + printable(instruction.location());
      return std::move(status).at(place);
    }
  return program;
}

/// Where a slice lies, in whichever memory; pointers of a host are numbers to the driver too.
CUdeviceptr Program::addressOf(const plan::Slice &slice) const {
  const plan::Arena::Space space = context_.plan.arenas(static_cast<int>(slice.arena())).space();
  const CUdeviceptr arena = space == plan::Arena::FILE ? context_.files.arenas().offsets()[slice.arena()]
                            : space == plan::Arena::DEVICE
                                ? context_.arenas[slice.arena()]
                                : reinterpret_cast<CUdeviceptr>(context_.pinned[slice.arena()]);
  return arena + slice.offset();
}

Status Program::addCopy(const plan::Copy &copy, Instruction &next) {
  auto spaceOf = [&](const plan::Slice &slice) {
    return context_.plan.arenas(static_cast<int>(slice.arena())).space();
  };
  const plan::Arena::Space from = spaceOf(copy.source()), to = spaceOf(copy.target());
  next.kind = Instruction::Kind::Copy;
  next.range.bind(copy, [&](const plan::Slice &slice) { return addressOf(slice); });
  // The verifier takes no copy without a direction.
  next.direction = *findDirection(from, to);
  next.isFileCopy = from == plan::Arena::FILE || to == plan::Arena::FILE;
  if (!next.isFileCopy)
    return Status::ok();
  std::optional<uint32_t> &stream = next.direction == CopyDirection::FromDevice ? writingStream_ : readingStream_;
  if (stream && *stream != next.stream)
    return {StatusCode::VerifyFailed, std::string("copies ") +
                                          (next.direction == CopyDirection::FromDevice ? "to" : "from") +
                                          " a file are on streams " + std::to_string(*stream) + " and " +
                                          std::to_string(next.stream) + "; they pass through one piece of memory"};
  stream = next.stream;
  return Status::ok();
}

Status Program::add(const plan::Instruction &origin, uint64_t rounds, std::vector<Instruction> &to) {
  auto address = [&](const plan::Slice &slice) { return addressOf(slice); };
  Instruction next;
  next.origin = &origin;
  next.stream = origin.stream();
  // What has no work has a number all the same.
  const bool isNumbered = !origin.has_repeat() && !origin.has_record() && !origin.has_wait();
  const uint64_t number = isNumbered ? numbers_++ : 0;
  switch (origin.kind_case()) {
  case plan::Instruction::kLaunch:
    next.kind = Instruction::Kind::Launch;
    LOWTIDE_TRY(addLaunch(origin.launch(), next));
    if (next.blocks == 0)
      return Status::ok();
    break;
  case plan::Instruction::kCall: {
    auto prepared = context_.libraries.prepare(origin.call(), CallAddresses::of(origin.call(), address));
    if (!prepared)
      return prepared.takeStatus();
    next.kind = Instruction::Kind::Call;
    next.call = std::move(*prepared);
    break;
  }
  case plan::Instruction::kCopy:
    LOWTIDE_TRY(addCopy(origin.copy(), next));
    if (!next.range.bytes)
      return Status::ok();
    break;
  case plan::Instruction::kFill:
    next.kind = Instruction::Kind::Fill;
    next.range.bind(origin.fill(), address);
    if (!next.range.bytes)
      return Status::ok();
    break;
  case plan::Instruction::kRepeat:
    next.kind = Instruction::Kind::Repeat;
    next.count = origin.repeat().count();
    for (const plan::Instruction &inner : origin.repeat().body())
      LOWTIDE_TRY(add(inner, std::min(maxNodes + 1, rounds * std::min<uint64_t>(maxNodes + 1, next.count)), next.body));
    to.push_back(std::move(next));
    return Status::ok();
  case plan::Instruction::kRecord:
  case plan::Instruction::kWait:
    next.kind = origin.has_record() ? Instruction::Kind::Record : Instruction::Kind::Wait;
    next.event = events_[origin.has_record() ? origin.record().event() : origin.wait().event()];
    to.push_back(std::move(next));
    return Status::ok();
  case plan::Instruction::KIND_NOT_SET:
    return {StatusCode::Internal, "an instruction of no kind passed the verifier"};
  }
  nodes_ += next.isFileCopy ? rounds * 2 * context_.files.countPieces(next.range.bytes) : rounds;
  if (nodes_ > maxNodes)
    return {StatusCode::Unsupported, "the step has more than 2^20 operations when its repeats are unrolled; take fewer "
                                     "micro-batches (--micro-batches)"};
  next.time = times_.size();
  times_.push_back(describeInstruction(context_.plan, origin));
  times_.back().number = number;
  to.push_back(std::move(next));
  return Status::ok();
}

Status Program::addLaunch(const plan::Launch &launch, Instruction &next) {
  const plan::Kernel &kernel = context_.plan.kernels(static_cast<int>(launch.kernel()));
  if (kernel.threads_per_block() < 1 || kernel.threads_per_block() > 1024 || launch.extent() > maxBlocks ||
      kernel.shared_bytes() > (1u << 20))
    return {StatusCode::VerifyFailed, "kernel '" + printable(kernel.symbol()) + "' is launched with " +
                                          std::to_string(launch.extent()) + " blocks of " +
                                          std::to_string(kernel.threads_per_block()) + " threads and " +
                                          std::to_string(kernel.shared_bytes()) + " bytes of shared memory"};
  next.function = context_.kernels[launch.kernel()];
  next.blocks = static_cast<uint32_t>(launch.extent());
  next.threads = kernel.threads_per_block();
  // In a cubin shared memory is part of the function; the emulation has to be told.
  next.sharedBytes = context_.api.fake ? kernel.shared_bytes() : 0;
  auto address = [&](const plan::Slice &slice) { return addressOf(slice); };
  next.arguments = addressesOf<CUdeviceptr>(launch.reads(), address);
  for (CUdeviceptr written : addressesOf<CUdeviceptr>(launch.writes(), address))
    next.arguments.push_back(written);
  if (kernel.scratch_bytes())
    next.arguments.push_back(address(launch.scratch()));
  // Generated code moves 16 bytes at a time.
  for (CUdeviceptr argument : next.arguments)
    if (argument % 16)
      return {StatusCode::VerifyFailed,
              "an operand of kernel '" + printable(kernel.symbol()) + "' does not lie at a multiple of 16 bytes"};
  return Status::ok();
}

Status Program::warmUp() {
  LOWTIDE_TRY(warmUp(instructions_));
  LOWTIDE_CUDA(context_.api, driver, cuStreamSynchronize, streams_[0]);
  return Status::ok();
}

Status Program::warmUp(const std::vector<Instruction> &instructions) {
  for (const Instruction &instruction : instructions) {
    if (instruction.call)
      LOWTIDE_TRY(instruction.call->enqueue(streams_[0]));
    LOWTIDE_TRY(warmUp(instruction.body));
  }
  return Status::ok();
}

Status Program::enqueue() {
  const Api &api = context_.api;
  if (streams_.size() > 1) {
    LOWTIDE_CUDA(api, driver, cuEventRecord, fork_, streams_[0]);
    for (size_t i = 1; i < streams_.size(); ++i)
      LOWTIDE_CUDA(api, driver, cuStreamWaitEvent, streams_[i], fork_, 0);
  }
  LOWTIDE_TRY(enqueue(instructions_, 0));
  for (size_t i = 1; i < streams_.size(); ++i) {
    LOWTIDE_CUDA(api, driver, cuEventRecord, joins_[i], streams_[i]);
    LOWTIDE_CUDA(api, driver, cuStreamWaitEvent, streams_[0], joins_[i], 0);
  }
  return Status::ok();
}

Status Program::enqueue(const std::vector<Instruction> &instructions, uint64_t round) {
  for (const Instruction &instruction : instructions) {
    if (instruction.kind != Instruction::Kind::Repeat) {
      LOWTIDE_TRY(isTimed_ ? enqueueBetweenEvents(instruction, round)
                           : enqueue(instruction, round, streams_[instruction.stream]));
      continue;
    }
    for (int64_t inner = 0; inner < instruction.count; ++inner)
      LOWTIDE_TRY(enqueue(instruction.body, static_cast<uint64_t>(inner)));
  }
  return Status::ok();
}

Status Program::enqueue(const Instruction &instruction, uint64_t round, CUstream stream) {
  const Api &api = context_.api;
  const std::string &place = instruction.origin->location();
  bool isEvent = instruction.kind == Instruction::Kind::Record || instruction.kind == Instruction::Kind::Wait;
  NamedRange named(!place.empty() || isEvent ? place.c_str() : times_[instruction.time].what.c_str());
  const BoundRange<CUdeviceptr> &range = instruction.range;
  // Steps back wrap around, and so do addresses.
  CUdeviceptr target = range.target + static_cast<uint64_t>(range.targetStep) * round,
              source = range.source + static_cast<uint64_t>(range.sourceStep) * round;
  switch (instruction.kind) {
  case Instruction::Kind::Launch: {
    size_t bytes = instruction.arguments.size() * sizeof(CUdeviceptr);
    void *extra[] = {reinterpret_cast<void *>(CU_LAUNCH_PARAM_BUFFER_POINTER),
                     const_cast<CUdeviceptr *>(instruction.arguments.data()),
                     reinterpret_cast<void *>(CU_LAUNCH_PARAM_BUFFER_SIZE), &bytes,
                     reinterpret_cast<void *>(CU_LAUNCH_PARAM_END)};
    CUresult result = api.driver.cuLaunchKernel(instruction.function, instruction.blocks, 1, 1, instruction.threads, 1,
                                                1, instruction.sharedBytes, stream, nullptr, extra);
    return api.check(result, "cuLaunchKernel").at(times_[instruction.time].what);
  }
  case Instruction::Kind::Call:
    return instruction.call->enqueue(stream);
  case Instruction::Kind::Copy:
    return enqueueCopy(instruction, target, source, stream);
  case Instruction::Kind::Fill:
    return fill(range, target, stream);
  case Instruction::Kind::Record:
    return api.check(api.driver.cuEventRecord(instruction.event, stream), "cuEventRecord");
  case Instruction::Kind::Wait:
    return api.check(api.driver.cuStreamWaitEvent(stream, instruction.event, 0), "cuStreamWaitEvent");
  case Instruction::Kind::Repeat:
    break;
  }
  return Status::ok();
}

Status Program::enqueueCopy(const Instruction &instruction, CUdeviceptr target, CUdeviceptr source, CUstream stream) {
  const Api &api = context_.api;
  const uint64_t bytes = instruction.range.bytes;
  switch (instruction.direction) {
  case CopyDirection::Within:
    return api.check(api.driver.cuMemcpyDtoDAsync(target, source, bytes, stream), "cuMemcpyDtoDAsync");
  case CopyDirection::FromDevice:
    if (instruction.isFileCopy)
      return context_.files.enqueueWrite(target, source, bytes, stream);
    return api.check(api.driver.cuMemcpyDtoHAsync(reinterpret_cast<void *>(target), source, bytes, stream),
                     "cuMemcpyDtoHAsync");
  case CopyDirection::ToDevice:
    if (instruction.isFileCopy)
      return context_.files.enqueueRead(target, source, bytes, stream);
    return api.check(api.driver.cuMemcpyHtoDAsync(target, reinterpret_cast<const void *>(source), bytes, stream),
                     "cuMemcpyHtoDAsync");
  }
  return Status::ok();
}

Status Program::fill(const BoundRange<CUdeviceptr> &range, CUdeviceptr target, CUstream stream) {
  const Api &api = context_.api;
  uint64_t pattern = range.pattern, unit = range.patternBytes, count = range.bytes / unit;
  // The narrowest unit that repeats: zeros are bytes whatever their type.
  while (unit > 1) {
    uint64_t half = unit / 2, mask = (uint64_t(1) << (8 * half)) - 1;
    if (((pattern >> (8 * half)) & mask) != (pattern & mask))
      break;
    unit = half, count *= 2, pattern &= mask;
  }
  switch (unit) {
  case 1:
    return api.check(api.driver.cuMemsetD8Async(target, static_cast<unsigned char>(pattern), count, stream),
                     "cuMemsetD8Async");
  case 2:
    return api.check(api.driver.cuMemsetD16Async(target, static_cast<unsigned short>(pattern), count, stream),
                     "cuMemsetD16Async");
  case 4:
    return api.check(api.driver.cuMemsetD32Async(target, static_cast<unsigned>(pattern), count, stream),
                     "cuMemsetD32Async");
  default:
    // Two halves, each a column of 32-bit words eight bytes apart.
    for (int half = 0; half < 2; ++half)
      LOWTIDE_CUDA(api, driver, cuMemsetD2D32Async, target + 4 * half, 8, static_cast<unsigned>(pattern >> (32 * half)),
                   1, count, stream);
    return Status::ok();
  }
}

Status Program::measureOnce() {
  LOWTIDE_TRY(measure(instructions_, 0));
  ++measuredRuns_;
  return Status::ok();
}

Status Program::measure(const std::vector<Instruction> &instructions, uint64_t round) {
  const Api &api = context_.api;
  for (const Instruction &instruction : instructions) {
    if (instruction.kind == Instruction::Kind::Repeat) {
      for (int64_t inner = 0; inner < instruction.count; ++inner)
        LOWTIDE_TRY(measure(instruction.body, static_cast<uint64_t>(inner)));
      continue;
    }
    if (instruction.kind == Instruction::Kind::Record || instruction.kind == Instruction::Kind::Wait)
      continue;
    LOWTIDE_CUDA(api, driver, cuEventRecord, before_, streams_[0]);
    LOWTIDE_TRY(enqueue(instruction, round, streams_[0]));
    LOWTIDE_CUDA(api, driver, cuEventRecord, behind_, streams_[0]);
    LOWTIDE_CUDA(api, driver, cuStreamSynchronize, streams_[0]);
    float milliseconds = 0;
    LOWTIDE_CUDA(api, driver, cuEventElapsedTime, &milliseconds, before_, behind_);
    InstructionTime &time = times_[instruction.time];
    time.nanoseconds += static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6);
    ++time.runs;
  }
  return Status::ok();
}

Status Program::measureLanes() {
  const Api &api = context_.api;
  timed_.clear();
  timedRounds_.assign(times_.size(), 0);
  for (InstructionTime &time : times_)
    time.spans.clear();
  LOWTIDE_CUDA(api, driver, cuEventRecord, before_, streams_[0]);
  isTimed_ = true;
  Status status = enqueue();
  isTimed_ = false;
  LOWTIDE_TRY(std::move(status));
  LOWTIDE_CUDA(api, driver, cuStreamSynchronize, streams_[0]);
  for (size_t i = 0; i < timed_.size(); ++i) {
    uint64_t points[2] = {};
    for (size_t end : {0, 1}) {
      float milliseconds = 0;
      LOWTIDE_CUDA(api, driver, cuEventElapsedTime, &milliseconds, before_, timingEvents_[2 * i + end]);
      points[end] = static_cast<uint64_t>(std::max(0.0, static_cast<double>(milliseconds) * 1e6));
    }
    InstructionTime &time = times_[timed_[i]];
    time.spans.push_back({points[0], points[1]});
    time.nanoseconds += points[1] - points[0];
    ++time.runs;
  }
  ++measuredRuns_;
  return Status::ok();
}

Expected<CUevent> Program::getTimingEvent(size_t index) {
  while (timingEvents_.size() <= index) {
    Expected<CUevent> event = context_.resources.event(CU_EVENT_DEFAULT);
    if (!event)
      return event;
    timingEvents_.push_back(*event);
  }
  return timingEvents_[index];
}

Status Program::enqueueBetweenEvents(const Instruction &instruction, uint64_t round) {
  const Api &api = context_.api;
  const CUstream stream = streams_[instruction.stream];
  const bool isEvent = instruction.kind == Instruction::Kind::Record || instruction.kind == Instruction::Kind::Wait;
  const uint64_t most = std::clamp<uint64_t>(maxTimed / std::max<size_t>(times_.size(), 1), 1, maxSpans);
  if (isEvent || timedRounds_[instruction.time] == most)
    return enqueue(instruction, round, stream);
  Expected<CUevent> begin = getTimingEvent(2 * timed_.size()), end = getTimingEvent(2 * timed_.size() + 1);
  if (!begin || !end)
    return begin ? end.takeStatus() : begin.takeStatus();
  ++timedRounds_[instruction.time];
  timed_.push_back(instruction.time);
  times_[instruction.time].lane = instruction.stream;
  LOWTIDE_CUDA(api, driver, cuEventRecord, *begin, stream);
  LOWTIDE_TRY(enqueue(instruction, round, stream));
  LOWTIDE_CUDA(api, driver, cuEventRecord, *end, stream);
  return Status::ok();
}

std::vector<std::string> Program::choices() const {
  std::vector<std::string> lines;
  auto visit = [&](auto &&self, const std::vector<Instruction> &instructions) -> void {
    for (const Instruction &instruction : instructions) {
      if (instruction.call)
        lines.push_back(times_[instruction.time].what + ": " + instruction.call->choice());
      self(self, instruction.body);
    }
  };
  visit(visit, instructions_);
  return lines;
}

} // namespace lowtide::rt::cuda
