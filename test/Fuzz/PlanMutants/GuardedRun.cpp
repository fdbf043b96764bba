//===- GuardedRun.cpp - a plan, executed so that nothing goes unseen -------===//

#include "GuardedRun.h"

#include "runtime/Workspace.h"
#include "runtime/kernels/PreparedCall.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace lowtide::fuzz {
namespace {

constexpr uint64_t page = 4096;
/// Bytes next to a piece, on the side without a guard, that are looked at; and what they hold.
constexpr uint64_t slack = 256;
constexpr uint8_t slackPattern = 0xA5;

uint64_t hashOf(const uint8_t *data, uint64_t bytes) {
  uint64_t hash = 0x9e3779b97f4a7c15 ^ bytes;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    hash = (hash ^ word) * 0xbf58476d1ce4e5b9;
    hash ^= hash >> 29;
  }
  for (; bytes; ++data, --bytes)
    hash = (hash ^ *data) * 0x94d049bb133111eb;
  return hash;
}

bool meet(const plan::Slice &a, const plan::Slice &b) {
  return a.bytes() && b.bytes() && a.arena() == b.arena() && a.offset() < b.offset() + b.bytes() &&
         b.offset() < a.offset() + a.bytes();
}

bool same(const plan::Slice &a, const plan::Slice &b) {
  return a.arena() == b.arena() && a.offset() == b.offset() && a.bytes() == b.bytes();
}

std::string placeOf(const plan::Slice &slice) {
  return "arena " + std::to_string(slice.arena()) + ", bytes " + std::to_string(slice.offset()) + " + " +
         std::to_string(slice.bytes()) + ", value " + std::to_string(slice.value());
}

} // namespace

//--- GuardedMemory

GuardedMemory::~GuardedMemory() {
  for (const std::unique_ptr<Block> &block : blocks_)
    ::munmap(block->pages - page, block->bytes + 2 * page);
}

uint8_t *GuardedMemory::take(uint64_t bytes, uint64_t alignment, bool atEnd) {
  const uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  uint64_t needed = 16 * page;
  while (needed < rounded + slack)
    needed *= 2;
  Block *block = nullptr;
  for (const std::unique_ptr<Block> &free : blocks_)
    if (!free->used && free->bytes == needed) {
      block = free.get();
      break;
    }
  if (!block) {
    auto made = std::make_unique<Block>();
    void *memory = ::mmap(nullptr, needed + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || ::mprotect(static_cast<uint8_t *>(memory) + page, needed, PROT_READ | PROT_WRITE))
      std::abort();
    made->pages = static_cast<uint8_t *>(memory) + page, made->bytes = needed;
    block = made.get();
    blocks_.push_back(std::move(made));
  }
  block->used = true;
  uint8_t *data = atEnd ? block->pages + needed - rounded : block->pages;
  if (atEnd)
    std::memset(data - slack, slackPattern, slack);
  std::memset(data + bytes, slackPattern, atEnd ? rounded - bytes : slack);
  pieces_.push_back({block, data, bytes});
  return data;
}

bool GuardedMemory::release() {
  bool whole = true;
  auto untouched = [](const uint8_t *begin, const uint8_t *end) {
    return std::all_of(begin, end, [](uint8_t byte) { return byte == slackPattern; });
  };
  for (const Piece &piece : pieces_) {
    const uint8_t *begin = piece.block->pages, *end = begin + piece.block->bytes;
    if (piece.data != begin)
      whole &= untouched(piece.data - slack, piece.data);
    whole &= untouched(piece.data + piece.bytes, std::min<const uint8_t *>(end, piece.data + piece.bytes + slack));
    piece.block->used = false;
  }
  pieces_.clear();
  return whole;
}

//--- GuardedRun

GuardedRun::GuardedRun(const plan::Plan &plan, std::span<void *const> kernels, std::vector<std::vector<uint8_t>> arenas,
                       GuardedMemory &memory, Manner manner)
    : plan_(plan), kernels_(kernels), arenas_(std::move(arenas)), writes_(1), memory_(memory), manner_(manner),
      gpu_(rt::isGpu(plan.target())) {
  for (const std::vector<uint8_t> &arena : arenas_)
    tags_.emplace_back(arena.size(), 0);
}

uint64_t GuardedRun::count(const Instructions &instructions, uint64_t most) {
  uint64_t sum = 0;
  for (const plan::Instruction &instruction : instructions) {
    ++sum;
    if (instruction.has_repeat()) {
      const auto rounds = static_cast<uint64_t>(std::max<int64_t>(instruction.repeat().count(), 0));
      const uint64_t inner = count(instruction.repeat().body(), most) + 1;
      sum = rounds > most / inner ? most + 1 : sum + rounds * inner;
    }
    if (sum > most)
      return most + 1;
  }
  return sum;
}

void GuardedRun::tag(const plan::Slice &slice, uint64_t value) {
  auto begin = tags_[slice.arena()].begin() + static_cast<ptrdiff_t>(slice.offset());
  std::fill(begin, begin + static_cast<ptrdiff_t>(slice.bytes()), static_cast<uint32_t>(writes_.size()));
  writes_.push_back({value, time_});
}

void GuardedRun::undefine(const plan::Slice &slice) {
  auto begin = tags_[slice.arena()].begin() + static_cast<ptrdiff_t>(slice.offset());
  std::fill(begin, begin + static_cast<ptrdiff_t>(slice.bytes()), 0u);
  std::memset(arenas_[slice.arena()].data() + slice.offset(), manner_.pattern, slice.bytes());
}

std::string GuardedRun::check(const plan::Slice &slice) {
  const uint32_t *tags = tags_[slice.arena()].data() + slice.offset();
  uint32_t known = 0;
  for (uint64_t i = 0; i < slice.bytes(); ++i) {
    if (tags[i] == known && known)
      continue;
    known = tags[i];
    if (!known)
      return "a read of undefined bytes: " + placeOf(slice);
    const Write &write = writes_[known];
    if (write.value != slice.value())
      return "a read of a stale value, " + std::to_string(write.value) + ": " + placeOf(slice);
    for (const Round &round : rounds_)
      if (write.time >= round.entered && write.time < round.started)
        return "a read of what an earlier round has left: " + placeOf(slice);
  }
  return {};
}

std::string GuardedRun::run(const plan::Entry &entry) {
  // What no binding defines is undefined when the step starts, and tensors of other entries are not theirs to read.
  for (std::vector<uint32_t> &tags : tags_)
    std::fill(tags.begin(), tags.end(), 0u);
  std::vector<std::vector<uint8_t>> before = arenas_;
  for (const plan::Binding &binding : entry.bindings())
    if (binding.slice().value())
      tag(binding.slice(), binding.slice().value());
  for (uint32_t arena = 0; arena < arenas_.size(); ++arena) {
    const plan::Arena::Role role = plan_.arenas(static_cast<int>(arena)).role();
    for (uint64_t i = 0; i < arenas_[arena].size(); ++i)
      if (!tags_[arena][i] && (role == plan::Arena::TRANSIENT || role == plan::Arena::IO))
        arenas_[arena][i] = manner_.pattern;
  }
  if (std::string said = runAll(entry.instructions(), 0); !said.empty())
    return "entry '" + entry.name() + "', " + said;
  auto nameOf = [](const plan::Binding &binding) { return "binding '" + binding.name() + "'"; };
  std::vector<std::string> mine;
  for (const plan::Binding &binding : entry.bindings()) {
    mine.push_back(binding.name());
    if (binding.kind() == plan::Binding::BATCH || binding.kind() == plan::Binding::SCALAR)
      continue;
    plan::Slice slice = binding.slice();
    slice.set_value(binding.final_value());
    if (std::string said = check(slice); !said.empty())
      return nameOf(binding) + " at the end: " + said;
  }
  auto unchanged = [&](const plan::Slice &slice) {
    return std::memcmp(arenas_[slice.arena()].data() + slice.offset(), before[slice.arena()].data() + slice.offset(),
                       slice.bytes()) == 0;
  };
  for (const plan::Entry &other : plan_.entries())
    for (const plan::Binding &binding : other.bindings()) {
      const bool persistent = binding.kind() == plan::Binding::PARAM || binding.kind() == plan::Binding::STATE ||
                              binding.kind() == plan::Binding::CONSTANT;
      const bool listed = std::find(mine.begin(), mine.end(), binding.name()) != mine.end();
      if (persistent && !listed && !unchanged(binding.slice()))
        return nameOf(binding) + ", which the entry does not list, has changed";
      if (&other == &entry && binding.kind() == plan::Binding::CONSTANT && !unchanged(binding.slice()))
        return nameOf(binding) + ", a constant, has changed";
    }
  return {};
}

std::string GuardedRun::describeResult(size_t number) const {
  const auto &[instruction, result] = writers_[number];
  const std::string what = instruction->has_launch()
                               ? plan_.kernels(static_cast<int>(instruction->launch().kernel())).symbol()
                           : instruction->has_call() ? instruction->call().callee()
                           : instruction->has_copy() ? "a copy"
                                                     : "a fill";
  return "result " + std::to_string(result) + " of " + what + " at '" + instruction->location() + "'";
}

std::string GuardedRun::runAll(const Instructions &instructions, uint64_t round) {
  for (int i = 0; i < instructions.size(); ++i) {
    ++time_;
    if (std::string said = runOne(instructions[i], round); !said.empty())
      return "instruction " + std::to_string(i) + ": " + said;
  }
  return {};
}

std::string GuardedRun::runRepeat(const plan::Repeat &repeat) {
  const uint64_t entered = ++time_;
  rounds_.push_back({entered, entered});
  std::string said;
  for (const plan::Carry &carry : repeat.carries())
    if (said.empty())
      said = check(carry.slice());
  for (int64_t round = 0; round < repeat.count() && said.empty(); ++round) {
    rounds_.back().started = ++time_;
    if (round)
      for (const plan::Carry &carry : repeat.carries())
        tag(carry.slice(), carry.slice().value());
    said = runAll(repeat.body(), static_cast<uint64_t>(round));
    for (const plan::Carry &carry : repeat.carries()) {
      plan::Slice next = carry.slice();
      next.set_value(carry.next_value());
      if (said.empty())
        said = check(next);
    }
  }
  rounds_.pop_back();
  return said;
}

std::string GuardedRun::runOne(const plan::Instruction &instruction, uint64_t round) {
  Slices none, source, target;
  switch (instruction.kind_case()) {
  case plan::Instruction::kLaunch:
    return withOperands(instruction, instruction.launch().reads(), instruction.launch().writes(),
                        &instruction.launch().scratch());
  case plan::Instruction::kCall:
    return withOperands(instruction, instruction.call().reads(), instruction.call().writes(),
                        &instruction.call().workspace());
  case plan::Instruction::kCopy: {
    const plan::Copy &copy = instruction.copy();
    *source.Add() = copy.source(), *target.Add() = copy.target();
    source[0].set_offset(source[0].offset() + copy.source_step() * round);
    target[0].set_offset(target[0].offset() + copy.target_step() * round);
    if (copy.source().bytes() != copy.target().bytes() || meet(source[0], target[0]))
      return "a copy of other bytes than it takes";
    return withOperands(instruction, source, target, nullptr);
  }
  case plan::Instruction::kFill:
    *target.Add() = instruction.fill().target();
    return withOperands(instruction, none, target, nullptr);
  case plan::Instruction::kRepeat:
    return runRepeat(instruction.repeat());
  case plan::Instruction::kRecord:
  case plan::Instruction::kWait:
    return {};
  case plan::Instruction::KIND_NOT_SET:
    break;
  }
  return "no kind";
}

std::string GuardedRun::withOperands(const plan::Instruction &instruction, const Slices &reads, const Slices &writes,
                                     const plan::Slice *scratch) {
  auto inside = [&](const plan::Slice &slice) {
    return slice.arena() < arenas_.size() && slice.offset() <= arenas_[slice.arena()].size() &&
           slice.bytes() <= arenas_[slice.arena()].size() - slice.offset();
  };
  for (const Slices *slices : {&reads, &writes})
    for (const plan::Slice &slice : *slices)
      if (!inside(slice))
        return "an operand outside its arena: " + placeOf(slice);
  if (scratch && scratch->bytes() && !inside(*scratch))
    return "a workspace outside its arena";
  for (int i = 0; i < writes.size(); ++i) {
    for (int j = 0; j < i; ++j)
      if (meet(writes[i], writes[j]))
        return "two results meet";
    for (const plan::Slice &read : reads)
      if (meet(writes[i], read) && !same(writes[i], read))
        return "a result meets an operand";
    if (scratch && meet(writes[i], *scratch))
      return "a result meets the workspace";
  }
  for (const plan::Slice &slice : reads) {
    if (scratch && meet(slice, *scratch))
      return "an operand meets the workspace";
    if (std::string said = check(slice); !said.empty())
      return said;
  }

  const uint64_t alignment = gpu_ ? 16 : 1;
  std::vector<void *> arguments;
  auto bytesOf = [&](const plan::Slice &slice) { return arenas_[slice.arena()].data() + slice.offset(); };
  for (const plan::Slice &slice : reads) {
    uint8_t *copy = memory_.take(slice.bytes(), alignment, manner_.atEnd);
    std::memcpy(copy, bytesOf(slice), slice.bytes());
    arguments.push_back(copy);
  }
  const size_t firstResult = arguments.size();
  for (const plan::Slice &slice : writes) {
    auto shared = std::find_if(reads.begin(), reads.end(), [&](const plan::Slice &read) { return same(read, slice); });
    if (shared != reads.end() && slice.bytes()) {
      // All operands of the range are one memory.
      void *first = arguments[static_cast<size_t>(shared - reads.begin())];
      for (int i = 0; i < reads.size(); ++i)
        if (same(reads[i], slice))
          arguments[static_cast<size_t>(i)] = first;
      arguments.push_back(first);
      continue;
    }
    uint8_t *fresh = memory_.take(slice.bytes(), alignment, manner_.atEnd);
    std::memset(fresh, manner_.pattern, slice.bytes());
    arguments.push_back(fresh);
  }
  std::string said;
  const std::span<void *const> in(arguments.data(), firstResult),
      out(arguments.data() + firstResult, arguments.size() - firstResult);
  switch (instruction.kind_case()) {
  case plan::Instruction::kLaunch: {
    const plan::Kernel &kernel = plan_.kernels(static_cast<int>(instruction.launch().kernel()));
    uint8_t *own = nullptr;
    if (kernel.scratch_bytes()) {
      own = memory_.take(kernel.scratch_bytes(), 64, manner_.atEnd);
      std::memset(own, manner_.pattern, kernel.scratch_bytes());
      arguments.push_back(own);
    }
    said = launch(instruction.launch(), arguments.data(), own);
    break;
  }
  case plan::Instruction::kCall:
    said = call(instruction.call(), in, out);
    break;
  case plan::Instruction::kCopy:
    if (writes[0].bytes())
      std::memcpy(out[0], in[0], writes[0].bytes());
    break;
  default: {
    const plan::Fill &fill = instruction.fill();
    const uint64_t pattern = fill.pattern();
    for (uint64_t i = 0; i < fill.target().bytes(); ++i)
      static_cast<uint8_t *>(out[0])[i] = static_cast<uint8_t>(pattern >> (8 * (i % fill.pattern_bytes())));
  }
  }
  for (int i = 0; i < writes.size(); ++i) {
    const auto *result = static_cast<const uint8_t *>(out[static_cast<size_t>(i)]);
    results_.push_back(hashOf(result, writes[i].bytes()));
    writers_.emplace_back(&instruction, i);
    std::memcpy(bytesOf(writes[i]), result, writes[i].bytes());
    tag(writes[i], writes[i].value());
  }
  // Operands that are no results come back as they were.
  for (int i = 0; i < reads.size(); ++i)
    if (std::none_of(writes.begin(), writes.end(), [&](const plan::Slice &write) { return same(write, reads[i]); }) &&
        std::memcmp(in[static_cast<size_t>(i)], bytesOf(reads[i]), reads[i].bytes()) != 0)
      said = "an operand was written: " + placeOf(reads[i]);
  if (scratch && scratch->bytes())
    undefine(*scratch);
  if (!memory_.release() && said.empty())
    said = "bytes next to its operands were written";
  return said;
}

std::string GuardedRun::launch(const plan::Launch &launch, void *const *arguments, uint8_t *scratch) {
  const plan::Kernel &kernel = plan_.kernels(static_cast<int>(launch.kernel()));
  void *code = kernels_[launch.kernel()];
  if (gpu_) {
    if (launch.extent() > INT32_MAX)
      return "a grid of too many blocks";
    rt::cuda::fake::BlockLaunch block;
    block.kernel = reinterpret_cast<lt_gpu_kernel>(code), block.arguments = arguments;
    block.blocks = static_cast<uint32_t>(launch.extent());
    block.threads = kernel.threads_per_block(), block.sharedBytes = kernel.shared_bytes();
    using rt::cuda::fake::ThreadOrder;
    for (uint32_t i = 0; i < block.blocks; ++i)
      if (std::string said = blocks_.run(block, manner_.tasksForward ? i : block.blocks - 1 - i,
                                         manner_.tasksForward ? ThreadOrder::Turns : ThreadOrder::LastWarpAhead);
          !said.empty())
        return said;
    return {};
  }
  auto function = reinterpret_cast<void (*)(void *const *, int64_t, int64_t)>(code);
  const int64_t extent = launch.extent(), grain = std::min(launch.grain(), std::max<int64_t>(extent, 1));
  const int64_t tasks = extent / grain + (extent % grain != 0);
  for (int64_t i = 0; i < tasks; ++i) {
    // Each task finds in its scratch what some other left there.
    if (scratch)
      std::memset(scratch, manner_.pattern, kernel.scratch_bytes());
    const int64_t begin = (manner_.tasksForward ? i : tasks - 1 - i) * grain;
    function(arguments, begin, extent - begin < grain ? extent : begin + grain);
  }
  return {};
}

std::string GuardedRun::call(const plan::Call &call, std::span<void *const> reads, std::span<void *const> writes) {
  uint8_t *workspace = nullptr;
  if (rt::Expected<uint64_t> bytes = rt::queryWorkspace(call); bytes && *bytes) {
    workspace = memory_.take(*bytes, 64, manner_.atEnd);
    std::memset(workspace, manner_.pattern, *bytes);
  }
  std::vector<const void *> in(reads.begin(), reads.end());
  auto prepared = rt::prepareCall(call, {in, writes, workspace});
  if (!prepared && !gpu_)
    return "a call that was proved cannot be prepared: " + prepared.status().str();
  if (!prepared) {
    // Only a GPU's library computes it: of its results no kernel after it finds a byte that nothing wrote.
    for (int i = 0; i < call.writes_size(); ++i)
      std::memset(writes[static_cast<size_t>(i)], 0, call.writes(i).bytes());
    return {};
  }
  for (int phase = 0; phase < (*prepared)->phases(); ++phase) {
    const int64_t tasks = (*prepared)->tasks(phase);
    for (int64_t i = 0; i < tasks; ++i)
      (*prepared)->run(phase, manner_.tasksForward ? i : tasks - 1 - i);
  }
  return {};
}

} // namespace lowtide::fuzz
