//===- VerifyEntry.cpp - executes one entry on shadow memory ---------------===//
//
// Every instruction is run in textual order on a model of the arenas in which each byte carries a value number, its
// writer and its readers since then.
//
//  1. Bindings that are defined at the start put their value numbers down. Persistent bindings of other entries put
//  down
//     private numbers that have no name.
//  2. A read must find its announced number in every byte; a write leaves its own. A (value, byte) pair has one writer.
//  3. Streams: each has a vector clock; `record` publishes it, `wait` joins it. A read must happen after the write that
//  it
//     sees, a write after everybody who touched the bytes before. So every legal interleaving sees what the text says.
//  4. At the end all streams are joined and every binding must hold its final number.
//
// A `repeat` body without moving ranges is executed twice: its effect is to overwrite fixed bytes with fixed numbers,
// so the second round shows what all further rounds see. With moving ranges every round is executed. What a repeat
// carries must hold its starting number before the first round and its next number after each; between rounds it is
// renumbered. A round may read what it made itself, what was made before the repeat, and what is carried to it; the
// numbers that an earlier round left are stale.
//
//===----------------------------------------------------------------------===//

#include "runtime/VerifyEntry.h"
#include "runtime/FileStaging.h"

#include "runtime/CheckedMath.h"
#include "runtime/MemorySpaces.h"
#include "runtime/RepeatRounds.h"
#include "runtime/ShadowMemory.h"
#include "runtime/ValueWriters.h"
#include "runtime/VerifyWork.h"
#include "runtime/Workspace.h"

#include <algorithm>

namespace lowtide::rt {
namespace {

/// Instructions that a step may execute, all rounds of all repeats counted: minutes, not years.
constexpr uint64_t maxExecuted = 1000000000;
constexpr uint32_t maxStreams = 64, maxEvents = 1000000;
/// Private numbers of bindings that the entry does not list; plans may not use numbers from here on.
constexpr uint64_t privateValues = uint64_t(1) << 63;

Status refuse(std::string message) { return {StatusCode::VerifyFailed, std::move(message)}; }

/// Instructions that are executed, the rounds of repeats counted. Protobuf's depth limit bounds the recursion.
Checked countExecuted(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions) {
  Checked count;
  for (const plan::Instruction &instruction : instructions) {
    count += 1;
    if (instruction.has_repeat())
      count += Checked::fromSigned(instruction.repeat().count()) * countExecuted(instruction.repeat().body());
  }
  return count;
}

/// What an instruction is, in a word: "gemm", "copy", "kernel 'loop_3'".
std::string describe(const plan::Plan &plan, const plan::Instruction &instruction) {
  switch (instruction.kind_case()) {
  case plan::Instruction::kLaunch: {
    const uint32_t kernel = instruction.launch().kernel();
    return kernel < static_cast<uint32_t>(plan.kernels_size())
               ? "kernel '" + printable(plan.kernels(static_cast<int>(kernel)).symbol()) + "'"
               : "a launch";
  }
  case plan::Instruction::kCall:
    return printable(instruction.call().callee());
  case plan::Instruction::kCopy:
    return "a copy";
  case plan::Instruction::kFill:
    return "a fill";
  case plan::Instruction::kRecord:
    return "record";
  case plan::Instruction::kWait:
    return "wait";
  case plan::Instruction::kRepeat:
    return "a repeat";
  case plan::Instruction::KIND_NOT_SET:
    break;
  }
  return "nothing";
}

/// The path to an instruction (VerifyReport::Place); false if it is not among these.
bool findPath(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions,
              const plan::Instruction *wanted, std::vector<int> &path) {
  for (int i = 0; i < instructions.size(); ++i) {
    path.push_back(i);
    if (&instructions[i] == wanted ||
        (instructions[i].has_repeat() && findPath(instructions[i].repeat().body(), wanted, path)))
      return true;
    path.pop_back();
  }
  return false;
}

class EntryVerifier {
public:
  EntryVerifier(const plan::Plan &plan, const plan::Entry &entry) : plan_(plan), entry_(entry) {
    for (const plan::Arena &arena : plan.arenas())
      arenas_.emplace_back(arena.bytes());
    uint32_t streams = std::max<uint32_t>(entry.streams(), 1);
    clocks_.assign(streams, std::vector<uint64_t>(streams, 0));
    events_.resize(entry.events());
  }

  Status start(std::span<const plan::Binding *const> persistent);
  Status run(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions, bool inRepeat, int depth);
  Status finish();
  uint64_t peakLiveBytes() const;
  uint64_t instructions() const { return index_; }
  const std::vector<int> &failedAt() const { return failedAt_; }
  const plan::Instruction *otherWriter() const { return otherWriter_; }

private:
  Status step(const plan::Instruction &instruction, bool inRepeat, int depth);
  Status touch(const Slices &reads, const Slices &writes, const plan::Slice *scratch, bool inRepeat);
  Status read(const plan::Slice &slice);
  Status write(const plan::Slice &slice, bool inRepeat);
  Status claim(const plan::Slice &slice);
  Status copy(const plan::Copy &copy, bool inRepeat);
  std::optional<uint64_t> moved(const plan::Slice &slice, int64_t step) const;
  Status repeat(const plan::Repeat &repeat, int depth);
  Status renumber(const plan::Slice &slice, uint64_t from, uint64_t to);
  Status record(uint32_t event, bool inRepeat);
  Status wait(uint32_t event, bool inRepeat);
  bool happened(StreamTime point) const {
    return point.stream == stream_ || clocks_[stream_][point.stream] >= point.time;
  }
  plan::Arena::Space spaceOf(const plan::Slice &slice) const {
    return plan_.arenas(static_cast<int>(slice.arena())).space();
  }
  /// Of slices in their arenas.
  Status checkOnDevice(const Slices &slices) const;
  bool transient(uint32_t arena) const { return isDeviceTransient(plan_.arenas(static_cast<int>(arena))); }
  void live(uint64_t bytes, uint64_t from, uint64_t to) {
    if (from > to)
      return;
    liveChanges_.push_back({from, bytes, true});
    liveChanges_.push_back({to + 1, bytes, false});
  }
  /// The bytes of `cell` lose their value now, at instruction index_.
  void retire(uint32_t arena, uint64_t begin, const ShadowCell &cell) {
    if (!transient(arena) || cell.value == 0)
      return;
    // An in-place instruction reads and writes the same bytes at the same program point: they count once, for the new
    // value.
    uint64_t last = cell.lastUse;
    if (last == index_ && cell.bornAt < index_)
      --last;
    live(cell.end - begin, cell.bornAt, last);
  }

  struct LiveChange {
    uint64_t at, bytes;
    bool born;
  };
  struct Event {
    bool recorded = false;
    std::vector<uint64_t> clock;
  };

  const plan::Plan &plan_;
  const plan::Entry &entry_;
  std::vector<ShadowMemory> arenas_;
  std::vector<std::vector<uint64_t>> clocks_;
  std::vector<Event> events_;
  ValueWriters writers_;
  RepeatRounds rounds_;
  const plan::Instruction *current_ = nullptr;
  std::vector<int> failedAt_;
  const plan::Instruction *otherWriter_ = nullptr; ///< of what was found instead of the value that is read
  std::vector<const plan::Binding *> untouchable_;
  std::vector<LiveChange> liveChanges_;
  uint64_t index_ = 0;
  uint32_t stream_ = 0;
  uint64_t round_ = 0; ///< of the innermost repeat
};

Status EntryVerifier::start(std::span<const plan::Binding *const> persistent) {
  // The runtime fills each of these by itself: two of them in the same bytes would lose one another.
  auto define = [&](const plan::Binding &binding, plan::Slice slice, uint64_t value) {
    bool clash = false;
    ShadowMemory &memory = arenas_[slice.arena()];
    memory.forEach(slice.offset(), slice.offset() + slice.bytes(),
                   [&](uint64_t, const ShadowCell &cell) { clash |= cell.value != 0; });
    if (clash)
      return refuse("binding '" + printable(binding.name()) + "' shares bytes with another binding");
    ShadowCell cell;
    cell.value = value;
    memory.assign(slice.offset(), slice.offset() + slice.bytes(), cell);
    slice.set_value(value);
    writers_.add(slice, nullptr, false);
    return Status::ok();
  };
  std::vector<std::string_view> mine;
  std::vector<uint64_t> numbers;
  for (const plan::Binding &binding : entry_.bindings()) {
    if (isPersistent(binding))
      mine.push_back(binding.name());
    if (binding.slice().value() >= privateValues || binding.final_value() >= privateValues)
      return refuse("binding '" + printable(binding.name()) + "' uses a value number of 2^63 or more");
    if (binding.slice().value() == 0)
      continue;
    LOWTIDE_TRY(define(binding, binding.slice(), binding.slice().value()));
    numbers.push_back(binding.slice().value());
  }
  std::sort(numbers.begin(), numbers.end());
  if (auto twice = std::adjacent_find(numbers.begin(), numbers.end()); twice != numbers.end())
    return refuse("two bindings start with value number " + std::to_string(*twice));
  std::sort(mine.begin(), mine.end());
  for (const plan::Binding *binding : persistent) {
    if (std::binary_search(mine.begin(), mine.end(), std::string_view(binding->name())))
      continue;
    LOWTIDE_TRY(define(*binding, binding->slice(), privateValues + untouchable_.size()));
    untouchable_.push_back(binding);
  }
  return Status::ok();
}

Status EntryVerifier::run(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions, bool inRepeat,
                          int depth) {
  for (int i = 0; i < instructions.size(); ++i) {
    const plan::Instruction &instruction = instructions[i];
    if (++index_ > maxInstructions)
      return refuse("more than " + std::to_string(maxInstructions) + " instructions");
    if (Status status = step(instruction, inRepeat, depth); !status.isOk()) {
      failedAt_.insert(failedAt_.begin(), i);
      std::string place = "instruction " + std::to_string(i) + ", " + describe(plan_, instruction);
      if (!instruction.location().empty())
        place += " at " + printable(instruction.location());
      return std::move(status).at(place);
    }
  }
  return Status::ok();
}

Status EntryVerifier::step(const plan::Instruction &instruction, bool inRepeat, int depth) {
  if (instruction.stream() >= clocks_.size())
    return refuse("stream " + std::to_string(instruction.stream()) + " of " + std::to_string(clocks_.size()));
  stream_ = instruction.stream();
  current_ = &instruction;
  rounds_.advance();
  ++clocks_[stream_][stream_];
  Slices none;
  switch (instruction.kind_case()) {
  case plan::Instruction::kLaunch:
    LOWTIDE_TRY(checkLaunch(plan_, instruction.launch()));
    LOWTIDE_TRY(checkOnDevice(instruction.launch().reads()));
    LOWTIDE_TRY(checkOnDevice(instruction.launch().writes()));
    return touch(instruction.launch().reads(), instruction.launch().writes(), &instruction.launch().scratch(),
                 inRepeat);
  case plan::Instruction::kCall: {
    const plan::Call &call = instruction.call();
    for (const Slices *operands : {&call.reads(), &call.writes()})
      for (const plan::Slice &slice : *operands)
        LOWTIDE_TRY(checkSlice(plan_, slice));
    LOWTIDE_TRY(checkOnDevice(call.reads()));
    LOWTIDE_TRY(checkOnDevice(call.writes()));
    LOWTIDE_TRY(checkCall(call, plan_.target()).at(printable(call.callee())));
    return touch(call.reads(), call.writes(), &call.workspace(), inRepeat);
  }
  case plan::Instruction::kCopy:
    return copy(instruction.copy(), inRepeat);
  case plan::Instruction::kFill: {
    const plan::Fill &fill = instruction.fill();
    uint32_t unit = fill.pattern_bytes();
    if (unit > 8 || !isPowerOfTwo(unit) || fill.target().bytes() % unit || fill.target().offset() % unit)
      return refuse("fill pattern of " + std::to_string(unit) + " bytes does not divide its target");
    Slices target;
    *target.Add() = fill.target();
    LOWTIDE_TRY(checkSlice(plan_, fill.target()));
    LOWTIDE_TRY(checkOnDevice(target));
    return touch(none, target, nullptr, inRepeat);
  }
  case plan::Instruction::kRecord:
    return record(instruction.record().event(), inRepeat);
  case plan::Instruction::kWait:
    return wait(instruction.wait().event(), inRepeat);
  case plan::Instruction::kRepeat:
    return repeat(instruction.repeat(), depth);
  case plan::Instruction::KIND_NOT_SET:
    break;
  }
  return refuse("is of no known kind");
}

static uint64_t magnitude(int64_t step) {
  return step < 0 ? -static_cast<uint64_t>(step) : static_cast<uint64_t>(step);
}

/// Where a range that moves by `step` bytes a round begins in this round; nothing if that is not below 2^63.
std::optional<uint64_t> EntryVerifier::moved(const plan::Slice &slice, int64_t step) const {
  const std::optional<uint64_t> distance = (Checked(magnitude(step)) * Checked(round_)).get();
  if (!distance || slice.offset() >> 63)
    return std::nullopt;
  if (step >= 0)
    return (Checked(*distance) + Checked(slice.offset())).get();
  return *distance <= slice.offset() ? std::optional(slice.offset() - *distance) : std::nullopt;
}

Status EntryVerifier::copy(const plan::Copy &copy, bool inRepeat) {
  if (copy.source().bytes() != copy.target().bytes())
    return refuse("copies " + showSize(copy.source().bytes()) + " bytes to " + showSize(copy.target().bytes()));
  if (!inRepeat && (copy.source_step() || copy.target_step()))
    return refuse("a range moves on from round to round outside a repeat");
  Slices source, target;
  *source.Add() = copy.source();
  *target.Add() = copy.target();
  std::optional<uint64_t> from = moved(copy.source(), copy.source_step()),
                          to = moved(copy.target(), copy.target_step());
  if (!from || !to)
    return refuse("a range moves on beyond all bytes");
  const uint64_t step = magnitude(copy.target_step());
  if (step && step < copy.target().bytes())
    return refuse("its target moves on by " + showSize(step) + " bytes a round, less than the " +
                  showSize(copy.target().bytes()) + " that a round writes");
  source[0].set_offset(*from);
  target[0].set_offset(*to);
  LOWTIDE_TRY(checkSlice(plan_, source[0]));
  LOWTIDE_TRY(checkSlice(plan_, target[0]));
  if (overlap(source[0], target[0]))
    return refuse("source and target of a copy overlap");
  const plan::Arena::Space here = spaceOf(copy.source()), there = spaceOf(copy.target());
  if (!findDirection(here, there))
    return refuse("copies from space " + showSpace(here) + " to space " + showSpace(there) +
                  "; one of the two is the device");
  for (auto [slice, step] : {std::pair(&copy.source(), copy.source_step()), {&copy.target(), copy.target_step()}})
    if (spaceOf(*slice) == plan::Arena::FILE && (slice->offset() % fileAlignment || step % int64_t(fileAlignment)))
      return refuse("begins at byte " + std::to_string(slice->offset()) + " of a file" +
                    (step ? ", and moves on by " + std::to_string(step) : "") +
                    "; copies to a file and back begin at multiples of " + std::to_string(fileAlignment));
  return touch(source, target, nullptr, inRepeat);
}

Status EntryVerifier::repeat(const plan::Repeat &repeat, int depth) {
  if (repeat.count() < 1)
    return refuse("repeats " + std::to_string(repeat.count()) + " times");
  if (depth >= 4)
    return refuse("repeats nested deeper than 4");
  if (repeat.body().empty())
    return repeat.carries().empty() ? Status::ok() : refuse("a repeat without instructions carries values");
  const uint64_t count = static_cast<uint64_t>(repeat.count()), rounds = countVerifiedRounds(repeat);
  uint64_t outer = round_;
  rounds_.enter();
  for (const plan::Carry &carry : repeat.carries()) {
    LOWTIDE_TRY(checkSlice(plan_, carry.slice()));
    if (carry.next_value() == 0 || carry.next_value() >= privateValues || carry.slice().value() == 0 ||
        carry.slice().value() >= privateValues)
      return refuse("carries a value without a proper number");
    LOWTIDE_TRY(renumber(carry.slice(), carry.slice().value(), carry.slice().value()).at("before the first round"));
  }
  for (uint64_t round = 0; round < rounds; ++round) {
    round_ = round;
    rounds_.beginRound();
    LOWTIDE_TRY(run(repeat.body(), true, depth + 1));
    // All are looked at before the first gets its old number again: ranges may not be told apart by it.
    for (const plan::Carry &carry : repeat.carries())
      LOWTIDE_TRY(renumber(carry.slice(), carry.next_value(), carry.next_value()).at("after a round"));
    if (round + 1 < rounds)
      for (const plan::Carry &carry : repeat.carries())
        LOWTIDE_TRY(renumber(carry.slice(), carry.next_value(), carry.slice().value()).at("after a round"));
  }
  round_ = outer;
  rounds_.leave();
  return Status::ok();
}

/// Bytes that hold value `from` hold value `to` from now on, made by the round that begins next; whoever wrote and read
/// them stays known.
Status EntryVerifier::renumber(const plan::Slice &slice, uint64_t from, uint64_t to) {
  Status status;
  arenas_[slice.arena()].forEach(slice.offset(), slice.offset() + slice.bytes(), [&](uint64_t begin, ShadowCell &cell) {
    if (status.isOk() && cell.value != from)
      status =
          refuse("carries value " + std::to_string(from) + ", but bytes " + std::to_string(begin) + "–" +
                 std::to_string(cell.end) + " of arena '" +
                 printable(plan_.arenas(static_cast<int>(slice.arena())).name()) + "' hold " +
                 (cell.value >= privateValues ? "a tensor of another entry" : "value " + std::to_string(cell.value)));
    else if (status.isOk() && !rounds_.isCurrent(cell.madeAt))
      status = refuse("carries value " + std::to_string(from) + ", which only an earlier round made");
    if (cell.value == from && from != to) {
      cell.value = to;
      cell.madeAt = rounds_.nextRound();
    }
  });
  return status;
}

Status EntryVerifier::checkOnDevice(const Slices &slices) const {
  for (const plan::Slice &slice : slices)
    if (spaceOf(slice) != plan::Arena::DEVICE)
      return refuse("an operand lies in arena '" + printable(plan_.arenas(static_cast<int>(slice.arena())).name()) +
                    "' in space " + showSpace(spaceOf(slice)) + "; only copies reach other spaces than the device");
  return Status::ok();
}

Status EntryVerifier::touch(const Slices &reads, const Slices &writes, const plan::Slice *scratch, bool inRepeat) {
  LOWTIDE_TRY(checkAliases(plan_, reads, writes));
  if (scratch && scratch->bytes()) {
    LOWTIDE_TRY(checkSlice(plan_, *scratch));
    if (!transient(scratch->arena()))
      return refuse("workspace outside a transient arena of the device");
    if (scratch->offset() % workspaceAlignment ||
        plan_.arenas(static_cast<int>(scratch->arena())).alignment() < workspaceAlignment)
      return refuse("workspace is not aligned to 64 bytes");
    for (const Slices *operands : {&reads, &writes})
      for (const plan::Slice &slice : *operands)
        if (overlap(*scratch, slice))
          return refuse("workspace overlaps an operand");
  }
  for (const plan::Slice &slice : reads)
    LOWTIDE_TRY(read(slice));
  for (const plan::Slice &slice : writes)
    LOWTIDE_TRY(write(slice, inRepeat));
  if (scratch && scratch->bytes()) {
    LOWTIDE_TRY(claim(*scratch));
    live(scratch->bytes(), index_, index_);
  }
  return Status::ok();
}

Status EntryVerifier::read(const plan::Slice &slice) {
  if (slice.value() == 0)
    return refuse("reads a value without a number");
  Status status;
  StreamTime now{stream_, clocks_[stream_][stream_]};
  arenas_[slice.arena()].forEach(slice.offset(), slice.offset() + slice.bytes(), [&](uint64_t begin, ShadowCell &cell) {
    if (!status.isOk())
      return;
    std::string bytes = "bytes " + std::to_string(begin) + "–" + std::to_string(cell.end) + " of arena '" +
                        printable(plan_.arenas(static_cast<int>(slice.arena())).name()) + "'";
    if (cell.value == 0)
      status = refuse("reads value " + std::to_string(slice.value()) + " from undefined " + bytes);
    else if (cell.value != slice.value()) {
      otherWriter_ = writers_.find(cell.value, slice.arena(), begin);
      status =
          refuse("reads value " + std::to_string(slice.value()) + ", but " + bytes + " hold " +
                 (cell.value >= privateValues ? "a tensor of another entry" : "value " + std::to_string(cell.value)));
    } else if (!rounds_.isCurrent(cell.madeAt))
      status = refuse("reads value " + std::to_string(slice.value()) + " from " + bytes +
                      ", which an earlier round of the repeat made and nothing carries to this one");
    else if (!happened(cell.writer))
      status = refuse("reads " + bytes + " without waiting for stream " + std::to_string(cell.writer.stream));
    cell.lastUse = index_;
    if (clocks_.size() == 1)
      return;
    for (StreamTime &reader : cell.readers)
      if (reader.stream == stream_) {
        reader = now;
        return;
      }
    cell.readers.push_back(now);
  });
  return status;
}

/// Takes the bytes for this instruction: everybody who touched them must be done, and they lose their value.
Status EntryVerifier::claim(const plan::Slice &slice) {
  Status status;
  arenas_[slice.arena()].forEach(
      slice.offset(), slice.offset() + slice.bytes(), [&](uint64_t begin, const ShadowCell &cell) {
        bool done = happened(cell.writer) &&
                    std::all_of(cell.readers.begin(), cell.readers.end(), [&](StreamTime r) { return happened(r); });
        if (!done)
          status = refuse("overwrites bytes " + std::to_string(begin) + "–" + std::to_string(cell.end) +
                          " while another stream may still use them");
        if (cell.value >= privateValues)
          status =
              refuse("overwrites '" + printable(untouchable_[static_cast<size_t>(cell.value - privateValues)]->name()) +
                     "', which this entry does not list");
        retire(slice.arena(), begin, cell);
      });
  ShadowCell undefined;
  undefined.writer = {stream_, clocks_[stream_][stream_]};
  arenas_[slice.arena()].assign(slice.offset(), slice.offset() + slice.bytes(), undefined);
  return status;
}

Status EntryVerifier::write(const plan::Slice &slice, bool inRepeat) {
  if (slice.value() == 0 || slice.value() >= privateValues)
    return refuse("writes value number " + std::to_string(slice.value()));
  uint64_t end = slice.offset() + slice.bytes();
  if (!writers_.add(slice, current_, inRepeat))
    return refuse("writes value " + std::to_string(slice.value()) + " a second time over the same bytes");
  LOWTIDE_TRY(claim(slice));
  ShadowCell cell;
  cell.value = slice.value();
  cell.bornAt = cell.lastUse = index_;
  cell.madeAt = rounds_.now();
  cell.writer = {stream_, clocks_[stream_][stream_]};
  arenas_[slice.arena()].assign(slice.offset(), end, cell);
  return Status::ok();
}

Status EntryVerifier::record(uint32_t event, bool inRepeat) {
  if (event >= events_.size())
    return refuse("event " + std::to_string(event) + " of " + std::to_string(events_.size()));
  if (inRepeat)
    return refuse("events inside a repeat are not supported");
  if (events_[event].recorded)
    return refuse("event " + std::to_string(event) + " is recorded twice");
  events_[event] = {true, clocks_[stream_]};
  return Status::ok();
}

Status EntryVerifier::wait(uint32_t event, bool inRepeat) {
  if (event >= events_.size())
    return refuse("event " + std::to_string(event) + " of " + std::to_string(events_.size()));
  if (inRepeat)
    return refuse("events inside a repeat are not supported");
  if (!events_[event].recorded)
    return refuse("waits for event " + std::to_string(event) + " before it is recorded");
  for (size_t s = 0; s < clocks_.size(); ++s)
    clocks_[stream_][s] = std::max(clocks_[stream_][s], events_[event].clock[s]);
  return Status::ok();
}

Status EntryVerifier::finish() {
  auto expect = [&](const plan::Binding &binding, uint64_t value) {
    bool good = true;
    const plan::Slice &slice = binding.slice();
    arenas_[slice.arena()].forEach(slice.offset(), slice.offset() + slice.bytes(), [&](uint64_t, ShadowCell &cell) {
      good &= cell.value == value;
      cell.lastUse = index_;
    });
    return good;
  };
  for (const plan::Binding &binding : entry_.bindings()) {
    // Batch arrays and step scalars are written anew before each step: their bytes may serve another purpose after use.
    bool reusable = binding.kind() == plan::Binding::BATCH || binding.kind() == plan::Binding::SCALAR;
    if (!reusable && !expect(binding, binding.final_value()))
      return refuse("binding '" + printable(binding.name()) + "' does not hold its final value " +
                    std::to_string(binding.final_value()) + " at the end");
  }
  for (size_t i = 0; i < untouchable_.size(); ++i)
    if (!expect(*untouchable_[i], privateValues + i))
      return refuse("'" + printable(untouchable_[i]->name()) + "' is overwritten by an entry that does not list it");
  for (uint32_t arena = 0; arena < arenas_.size(); ++arena)
    if (transient(arena))
      arenas_[arena].forEach(0, plan_.arenas(static_cast<int>(arena)).bytes(), [&](uint64_t begin, ShadowCell &cell) {
        if (cell.value)
          live(cell.end - begin, cell.bornAt, cell.lastUse);
      });
  return Status::ok();
}

uint64_t EntryVerifier::peakLiveBytes() const {
  std::vector<LiveChange> changes = liveChanges_;
  // Ends are at the first index after: they come before births of the same index.
  std::sort(changes.begin(), changes.end(),
            [](const LiveChange &a, const LiveChange &b) { return a.at != b.at ? a.at < b.at : a.born < b.born; });
  uint64_t now = 0, peak = 0;
  for (const LiveChange &change : changes) {
    now = change.born ? now + change.bytes : now - change.bytes;
    peak = std::max(peak, now);
  }
  return peak;
}

} // namespace

Status verifyEntry(const plan::Plan &plan, const plan::Entry &entry, std::span<const plan::Binding *const> persistent,
                   VerifyReport::EntryReport &report, VerifyReport::Place &failure) {
  if (entry.streams() > maxStreams || entry.events() > maxEvents)
    return refuse(std::to_string(entry.streams()) + " streams, " + std::to_string(entry.events()) +
                  " events; at most 64 and 1000000 are accepted");
  if (entry.batch() < 0)
    return refuse("batch of " + std::to_string(entry.batch()) + " samples");
  if (!countExecuted(entry.instructions()).atMost(maxExecuted))
    return refuse("its repeats execute more than " + std::to_string(maxExecuted) + " instructions");
  if (countVerified(entry.instructions()) > maxInstructions)
    return refuse("more than " + std::to_string(maxInstructions) + " instructions in the rounds of its repeats");
  EntryVerifier verifier(plan, entry);
  LOWTIDE_TRY(verifier.start(persistent));
  if (Status status = verifier.run(entry.instructions(), false, 0); !status.isOk()) {
    failure.instruction = verifier.failedAt();
    if (verifier.otherWriter())
      findPath(entry.instructions(), verifier.otherWriter(), failure.writer);
    return status;
  }
  LOWTIDE_TRY(verifier.finish());
  report.peakLiveBytes = verifier.peakLiveBytes();
  report.instructions = verifier.instructions();
  if (entry.peak_live_bytes() && entry.peak_live_bytes() != report.peakLiveBytes)
    return refuse("declares a peak of " + showSize(entry.peak_live_bytes()) + " live bytes; it is " +
                  std::to_string(report.peakLiveBytes));
  return Status::ok();
}

} // namespace lowtide::rt
