//===- EventBugsTest.cpp - a wrong event between streams is noticed --------===//
//
// Random programs of fills and copies on several streams, with the events that they need. One event at a time is left
// out, comes too late, marks too early a point or is awaited by another stream. Either the verifier refuses the plan,
// or the mistake is none: then every order that the streams allow leaves the same bytes.
//
//===----------------------------------------------------------------------===//

#include "Plans.h"

#include "runtime/Verify.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

constexpr uint32_t kStreams = 3, kCells = 6, kCellBytes = 16;
using Cells = std::array<uint64_t, kCells>;

/// Writes a program; whatever has to come before an instruction on another stream is awaited, unless it is already
/// known to be over.
class ProgramBuilder {
public:
  ProgramBuilder(uint64_t seed, unsigned length) : random(seed) {
    plan.set_format_version(planFormatVersion);
    addArena(plan, "transient", plan::Arena::TRANSIENT, kCells * kCellBytes);
    plan::Entry *entry = plan.add_entries();
    entry->set_name("train");
    entry->set_streams(kStreams);
    for (unsigned i = 0; i < length; ++i)
      addWork();
    // All streams are joined at the end.
    for (uint32_t stream = 1; stream < kStreams; ++stream)
      await(stream, count[stream], 0);
    entry->set_events(events);
  }
  plan::Plan plan;

private:
  using Clock = std::array<unsigned, kStreams>;
  plan::Instruction *add(uint32_t stream) {
    plan::Instruction *instruction = plan.mutable_entries(0)->add_instructions();
    instruction->set_stream(stream);
    return instruction;
  }
  /// Lets `stream` wait for the first `number` instructions of `other`.
  void await(uint32_t other, unsigned number, uint32_t stream) {
    if (other == stream || known[stream][other] >= number)
      return;
    add(other)->mutable_record()->set_event(events);
    add(stream)->mutable_wait()->set_event(events++);
    for (uint32_t s = 0; s < kStreams; ++s)
      known[stream][s] = std::max(known[stream][s], known[other][s]);
    known[stream][other] = count[other];
  }
  void addWork() {
    const uint32_t stream = random() % kStreams, target = random() % kCells, source = random() % kCells;
    const bool copies = value[source] && source != target;
    auto waitForWrite = [&](uint32_t cell) {
      if (value[cell])
        await(writer[cell].first, writer[cell].second, stream);
    };
    if (copies)
      waitForWrite(source);
    waitForWrite(target);
    for (auto [other, number] : readers[target])
      await(other, number, stream);
    plan::Instruction *instruction = add(stream);
    const uint64_t fresh = ++lastValue;
    auto cell = [](uint32_t number, uint64_t held) { return slice(0, number * kCellBytes, kCellBytes, held); };
    if (copies) {
      *instruction->mutable_copy()->mutable_source() = cell(source, value[source]);
      *instruction->mutable_copy()->mutable_target() = cell(target, fresh);
    } else {
      *instruction->mutable_fill()->mutable_target() = cell(target, fresh);
      instruction->mutable_fill()->set_pattern(fresh);
      instruction->mutable_fill()->set_pattern_bytes(4);
    }
    ++count[stream];
    known[stream][stream] = count[stream];
    if (copies)
      readers[source].emplace_back(stream, count[stream]);
    readers[target].clear();
    value[target] = fresh;
    writer[target] = {stream, count[stream]};
  }

  std::mt19937_64 random;
  uint32_t events = 0;
  uint64_t lastValue = 0;
  Cells value{};
  std::array<std::pair<uint32_t, unsigned>, kCells> writer{};
  std::array<std::vector<std::pair<uint32_t, unsigned>>, kCells> readers;
  Clock count{};
  std::array<Clock, kStreams> known{};
};

/// What the cells hold after the program, its streams going on in an order that `seed` picks; 0: in that of the text.
Cells execute(const plan::Plan &plan, uint64_t seed) {
  const auto &program = plan.entries(0).instructions();
  std::mt19937_64 random(seed);
  std::array<std::vector<const plan::Instruction *>, kStreams> queues;
  for (const plan::Instruction &instruction : program)
    queues[instruction.stream()].push_back(&instruction);
  std::array<size_t, kStreams> next{};
  std::map<uint32_t, bool> recorded;
  Cells cells{};
  int position = 0;
  auto cellOf = [](const plan::Slice &slice) { return slice.offset() / kCellBytes; };
  for (size_t left = program.size(); left > 0;) {
    uint32_t stream = seed ? random() % kStreams : program[position].stream();
    if (next[stream] == queues[stream].size())
      continue;
    const plan::Instruction &now = *queues[stream][next[stream]];
    if (now.has_wait() && !recorded[now.wait().event()])
      continue;
    if (now.has_record())
      recorded[now.record().event()] = true;
    else if (now.has_fill())
      cells[cellOf(now.fill().target())] = now.fill().pattern();
    else if (now.has_copy())
      cells[cellOf(now.copy().target())] = cells[cellOf(now.copy().source())];
    ++next[stream], ++position, --left;
  }
  return cells;
}

using Program = std::vector<plan::Instruction>;

plan::Plan withProgram(plan::Plan plan, const Program &program) {
  plan.mutable_entries(0)->clear_instructions();
  for (const plan::Instruction &instruction : program)
    *plan.mutable_entries(0)->add_instructions() = instruction;
  return plan;
}

/// The programs that a mistake at instruction `at`, a record or a wait, may leave.
std::vector<Program> breakAt(const Program &program, size_t at) {
  std::vector<Program> broken;
  const plan::Instruction &event = program[at];
  auto isWork = [](const plan::Instruction &instruction) {
    return !instruction.has_record() && !instruction.has_wait();
  };
  if (event.has_wait()) {
    Program dropped = program;
    dropped.erase(dropped.begin() + at);
    broken.push_back(dropped);
    // After the next work of its stream.
    for (size_t i = at; i < dropped.size(); ++i)
      if (dropped[i].stream() == event.stream() && isWork(dropped[i])) {
        dropped.insert(dropped.begin() + i + 1, event);
        broken.push_back(dropped);
        break;
      }
    Program elsewhere = program;
    elsewhere[at].set_stream((event.stream() + 1) % kStreams);
    broken.push_back(elsewhere);
  } else if (event.has_record()) {
    // Before the last work of its stream, and on another stream.
    Program early = program;
    early.erase(early.begin() + at);
    for (size_t i = at; i-- > 0;)
      if (early[i].stream() == event.stream() && isWork(early[i])) {
        early.insert(early.begin() + i, event);
        broken.push_back(early);
        break;
      }
    Program elsewhere = program;
    elsewhere[at].set_stream((event.stream() + 1) % kStreams);
    broken.push_back(elsewhere);
  }
  return broken;
}

TEST(EventBugs, WhatTheVerifierLetsPassIsNoMistake) {
  unsigned refused = 0, harmless = 0, shown = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    plan::Plan plan = ProgramBuilder(seed, 24).plan;
    Status sound = verifyPlan(plan);
    ASSERT_TRUE(sound.isOk()) << "seed " << seed << ": " << sound.str();
    const Cells truth = execute(plan, 0);
    for (uint64_t order = 1; order <= 20; ++order)
      ASSERT_EQ(execute(plan, order), truth) << "seed " << seed << ", order " << order;
    const Program program(plan.entries(0).instructions().begin(), plan.entries(0).instructions().end());
    for (size_t at = 0; at < program.size(); ++at)
      for (const Program &broken : breakAt(program, at)) {
        plan::Plan mutant = withProgram(plan, broken);
        bool differs = false;
        if (!verifyPlan(mutant).isOk()) {
          ++refused;
          // An event that is awaited before it is recorded would stand still.
          continue;
        }
        for (uint64_t order = 1; order <= 30; ++order)
          differs |= execute(mutant, order) != truth;
        EXPECT_FALSE(differs) << "seed " << seed << ", instruction " << at;
        ++(differs ? shown : harmless);
      }
  }
  EXPECT_EQ(shown, 0u);
  // Most events are needed: what the others order is ordered through a third stream, or later.
  EXPECT_GT(refused, 4 * harmless) << refused << " refused, " << harmless << " without harm";
}

} // namespace
