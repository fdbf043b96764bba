//===- Trial.cpp - one mutant, from its seed to what became of it ----------===//

#include "Trial.h"

#include "runtime/Element.h"
#include "runtime/MemorySpaces.h"
#include "runtime/Session.h"
#include "runtime/Verify.h"
#include "runtime/Workspace.h"

#include <algorithm>
#include <cstring>

namespace lowtide::fuzz {

using namespace rt;

namespace {

constexpr uint64_t mostInstructions = 20000, mostBytes = uint64_t(64) << 20;
/// What bytes of an arena hold that no slice of the plan covers.
constexpr uint8_t gapPattern = 0xC3;

bool isFloat(plan::DType dtype) {
  return dtype == plan::F64 || dtype == plan::F32 || dtype == plan::F16 || dtype == plan::BF16;
}

uint64_t textNumber(std::string_view text) {
  uint64_t number = 0xcbf29ce484222325;
  for (char letter : text)
    number = (number ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  return number;
}

/// The batch of a step: numbers near 0, small indices.
void fillBatch(Session &session, const std::string &entry) {
  for (const Tensor &tensor : session.tensors(entry, plan::Binding::BATCH)) {
    Dice dice(textNumber(tensor.binding->name()));
    const plan::DType dtype = tensor.binding->dtype();
    const uint64_t element = elementBytes(dtype);
    for (uint64_t at = 0; at < tensor.bytes(); at += element) {
      const uint64_t drawn = dice.next();
      if (isFloat(dtype))
        storeElement(dtype, tensor.data + at, static_cast<double>(drawn >> 40) * 0x1p-23 - 1);
      else
        storeInteger(dtype, tensor.data + at, static_cast<int64_t>(drawn % (dtype == plan::BOOL ? 2 : 4)));
    }
  }
}

/// Every range of the plan, moving ones with all that they move over.
template <typename Visit>
void forEachRange(const google::protobuf::RepeatedPtrField<plan::Instruction> &instructions, uint64_t rounds,
                  Visit &&visit) {
  // In reversed rounds ranges move back.
  auto moving = [&](plan::Slice slice, int64_t step) {
    const uint64_t way = (step < 0 ? -static_cast<uint64_t>(step) : static_cast<uint64_t>(step)) * (rounds - 1);
    slice.set_offset(slice.offset() - (step < 0 ? way : 0));
    slice.set_bytes(slice.bytes() + way);
    visit(slice);
  };
  for (const plan::Instruction &instruction : instructions) {
    for (const auto *slices : {&instruction.launch().reads(), &instruction.launch().writes(),
                               &instruction.call().reads(), &instruction.call().writes()})
      for (const plan::Slice &slice : *slices)
        visit(slice);
    visit(instruction.launch().scratch()), visit(instruction.call().workspace());
    moving(instruction.copy().source(), instruction.copy().source_step());
    moving(instruction.copy().target(), instruction.copy().target_step());
    visit(instruction.fill().target());
    if (instruction.has_repeat())
      forEachRange(instruction.repeat().body(), static_cast<uint64_t>(instruction.repeat().count()), visit);
  }
}

/// Bytes of an arena that slices may lie in.
uint64_t visibleBytes(const plan::Arena &arena) { return isOfRuntime(arena.role()) ? 0 : arena.bytes(); }

/// Bytes of the arenas that belong to nothing.
std::vector<std::vector<bool>> gapsOf(const plan::Plan &plan) {
  std::vector<std::vector<bool>> gaps;
  for (const plan::Arena &arena : plan.arenas())
    gaps.emplace_back(visibleBytes(arena), true);
  auto cover = [&](const plan::Slice &slice) {
    auto begin = gaps[slice.arena()].begin() + static_cast<ptrdiff_t>(slice.offset());
    std::fill(begin, begin + static_cast<ptrdiff_t>(slice.bytes()), false);
  };
  for (const plan::Entry &entry : plan.entries()) {
    for (const plan::Binding &binding : entry.bindings())
      cover(binding.slice());
    forEachRange(entry.instructions(), 1, [&](const plan::Slice &slice) {
      if (slice.bytes())
        cover(slice);
    });
  }
  return gaps;
}

/// What the arenas hold for the bindings of an entry, and for what outlives it.
std::vector<std::vector<uint8_t>> snapshot(const Session &session, const plan::Entry &entry) {
  std::vector<std::vector<uint8_t>> arenas;
  for (const plan::Arena &arena : session.plan().arenas())
    arenas.emplace_back(visibleBytes(arena), uint8_t(0));
  auto take = [&](const plan::Binding &binding) {
    const plan::Slice &slice = binding.slice();
    std::memcpy(arenas[slice.arena()].data() + slice.offset(), session.at(slice), slice.bytes());
  };
  for (const plan::Binding &binding : entry.bindings())
    take(binding);
  for (const Tensor &tensor : session.persistent())
    take(*tensor.binding);
  return arenas;
}

/// The host is about to look at all that it has a view of.
Status bringAll(const Session &session) {
  for (int i = 0; i < session.plan().arenas_size(); ++i)
    if (const uint8_t *arena = session.device().hostArenas()[static_cast<size_t>(i)])
      LOWTIDE_TRY(session.bring({arena, session.plan().arenas(i).bytes()}, HostAccess::Change));
  return Status::ok();
}

/// A refusal in words, with a documented code.
bool isProper(const Status &status) {
  return !status.message().empty() && status.code() != StatusCode::Internal && status.code() != StatusCode::Ok;
}

TrialResult refused(Outcome outcome, const Status &status) {
  TrialResult result;
  result.outcome = isProper(status) ? outcome : Defect;
  result.said = (isProper(status) ? "" : "refused without words: ") + status.str();
  return result;
}

TrialResult defect(std::string said) {
  TrialResult result;
  result.said = std::move(said);
  return result;
}

} // namespace

TrialResult Trial::execute(Base &base, const plan::Plan &plan, std::span<const uint8_t> file, uint64_t &signature,
                           std::atomic<uint32_t> &phase) {
  phase = Loading;
  Expected<std::unique_ptr<Artifact>> artifact = Artifact::fromBytes(file);
  if (!artifact)
    return refused(RefusedAtLoad, artifact.status());
  TrialResult result;
  uint64_t bytes = 0;
  for (const plan::Arena &arena : plan.arenas())
    bytes += visibleBytes(arena);
  result.outcome = NotRun;
  if (bytes > mostBytes)
    return result;
  for (const plan::Entry &entry : plan.entries())
    if (GuardedRun::count(entry.instructions(), mostInstructions) > mostInstructions)
      return result;

  phase = Binding;
  Expected<std::unique_ptr<Session>> created = Session::create(std::move(*artifact));
  if (!created)
    return refused(RefusedAtBind, created.status());
  Session &session = **created;
  if (Status status = session.bind({.threads = 1, .poison = true, .randomInit = true, .randomSeed = 1}); !status.isOk())
    return refused(RefusedAtBind, status);
  const bool gpu = isGpu(plan.target());
  std::vector<void *> kernels;
  for (const plan::Kernel &kernel : plan.kernels())
    kernels.push_back(base.code() ? base.code()->find(kernel.symbol().c_str()) : nullptr);
  const std::vector<std::vector<bool>> gaps = gapsOf(plan);
  signature = 0;
  for (const plan::Entry &entry : plan.entries()) {
    phase = Binding;
    fillBatch(session, entry.name());
    if (Status status = session.writeScalars(entry.name(), session.scalarsOf(entry.name(), 1, 7)); !status.isOk())
      return defect("scalars: " + status.str());
    if (Status status = bringAll(session); !status.isOk())
      return defect("the host's view: " + status.str());
    // The same step in two manners.
    phase = Guarded;
    GuardedRun first(plan, kernels, snapshot(session, entry), memory_, {0xFF, true, true});
    if (std::string said = first.run(entry); !said.empty())
      return defect(said);
    phase = GuardedAgain;
    GuardedRun second(plan, kernels, snapshot(session, entry), memory_, {0x3C, false, false});
    if (std::string said = second.run(entry); !said.empty())
      return defect("the other way round: " + said);
    if (first.results() != second.results()) {
      auto [a, b] = std::mismatch(first.results().begin(), first.results().end(), second.results().begin());
      return defect("entry '" + entry.name() +
                    "': " + first.describeResult(static_cast<size_t>(a - first.results().begin())) +
                    " depends on bytes that nothing wrote, or on the order of tasks");
    }

    phase = Stepping;
    // Of transient values in a file the host has no view.
    auto hosts = session.device().hostArenas();
    if (!gpu)
      for (size_t arena = 0; arena < gaps.size(); ++arena)
        for (size_t i = 0; i < gaps[arena].size() && hosts[arena]; ++i)
          if (gaps[arena][i])
            hosts[arena][i] = gapPattern;
    Status status = session.step(entry.name());
    if (status.isOk())
      status = session.settle();
    if (status.isOk())
      status = session.download(entry.name());
    if (status.isOk())
      status = bringAll(session);
    if (!status.isOk())
      return defect("the step fails: " + status.str());
    if (!gpu)
      for (size_t arena = 0; arena < gaps.size(); ++arena)
        for (size_t i = 0; i < gaps[arena].size() && hosts[arena]; ++i)
          if (gaps[arena][i] && hosts[arena][i] != gapPattern &&
              plan.arenas(int(arena)).role() != plan::Arena::TRANSIENT)
            return defect("byte " + std::to_string(i) + " of arena " + std::to_string(arena) +
                          ", which no value has, was written");
    for (const plan::Binding &binding : entry.bindings()) {
      if (binding.kind() == plan::Binding::BATCH || binding.kind() == plan::Binding::SCALAR)
        continue;
      const plan::Slice &slice = binding.slice();
      const uint8_t *computed = session.at(slice), *expected = first.arenas()[slice.arena()].data() + slice.offset();
      if (!gpu && std::memcmp(computed, expected, slice.bytes()) != 0)
        return defect("entry '" + entry.name() + "', binding '" + binding.name() +
                      "': the runtime computes other bits than the instrument");
      uint64_t bits = textNumber(entry.name() + "/" + binding.name()) + uint64_t(binding.kind());
      bits ^= textNumber({reinterpret_cast<const char *>(computed), slice.bytes()}) * 31;
      signature += bits; // in any order
    }
  }
  result.outcome = OtherValues;
  return result;
}

Status Trial::rehearse() {
  std::atomic<uint32_t> phase = 0;
  for (const std::unique_ptr<Base> &base : bases_) {
    std::string text;
    base->plan().SerializeToString(&text);
    uint64_t signature = 0;
    TrialResult result = execute(*base, base->plan(), base->withPlan(text), signature, phase);
    if (result.outcome == NotRun)
      return Status(StatusCode::Unsupported, "has too many instructions or bytes to be executed here", base->name());
    if (result.outcome != OtherValues)
      return Status(StatusCode::Usage, "cannot be executed as it is: " + result.said, base->name());
    signatures_.push_back(signature);
  }
  return Status::ok();
}

TrialResult Trial::run(uint64_t seed, Board &board) {
  board.phase = Mutating;
  std::string story;
  Dice dice(seed);
  const size_t number = dice.below(bases_.size());
  Base &base = *bases_[number];
  std::string original, text;
  base.plan().SerializeToString(&original);
  google::protobuf::Arena arena;
  plan::Plan *plan = nullptr;
  do {
    plan = google::protobuf::Arena::CreateMessage<plan::Plan>(&arena);
    *plan = base.plan();
    story.clear();
    const uint64_t drawn = dice.below(10), times = drawn < 6 ? 1 : drawn < 9 ? 2 : 4;
    for (uint64_t done = 0, tries = 0; done < times && tries < 50; ++tries) {
      const size_t chosen = dice.below(mutations().size());
      if (!done)
        board.kind = static_cast<uint32_t>(chosen);
      if (!plan->entries_size() || !mutations()[chosen].apply(*plan, dice))
        continue;
      story += std::string(done ? ", " : "") + mutations()[chosen].name;
      ++done;
    }
    text.clear();
    plan->SerializeToString(&text);
  } while (text == original || story.empty());
  std::strncpy(board.story, story.c_str(), sizeof board.story - 1);
  file_ = base.withPlan(text);
  uint64_t signature = 0;
  TrialResult result = execute(base, *plan, file_, signature, board.phase);
  if (result.outcome == OtherValues && signature == signatures_[number])
    result.outcome = Equal;
  result.kind = board.kind;
  return result;
}

} // namespace lowtide::fuzz
