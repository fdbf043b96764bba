//===- VerifyTest.cpp - the verifier is itself put to the test -------------===//
//
// Plans that are right must pass; plans with one thing wrong must not. Streams are tried on small programs; the
// regression plan is mutated field by field.
//
//===----------------------------------------------------------------------===//

#include "VerifyRefusals.h"

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

TEST(Verify, AcceptsWhatIsRight) {
  VerifyReport report;
  Status status = verifyPlan(regressionPlan(), &report);
  EXPECT_TRUE(status.isOk()) << status.str();
  ASSERT_EQ(report.entries.size(), 3u);
  // The loss kernel: difference (64) and its scratch (64: one task); prediction is dead by then.
  EXPECT_EQ(report.entries[0].peakLiveBytes, 64u + 64u);
  EXPECT_EQ(report.entries[0].instructions, 5u);
  plan::Plan declared = regressionPlan();
  declared.mutable_entries(0)->set_peak_live_bytes(64 + 64);
  EXPECT_TRUE(verifyPlan(declared).isOk());
}

TEST(Verify, RefusesBadArenas) {
  refused([](plan::Plan &p) { p.mutable_arenas(0)->clear_role(); }, "has no known role");
  refused([](plan::Plan &p) { p.mutable_arenas(0)->clear_space(); }, "lies in no known space");
  refused([](plan::Plan &p) { p.mutable_arenas(0)->set_alignment(48); }, "alignment 48");
  refused([](plan::Plan &p) { p.mutable_arenas(0)->set_alignment(0); }, "alignment 0");
  refused([](plan::Plan &p) { p.mutable_arenas(0)->set_image_bytes(33); }, "image");
  refused([](plan::Plan &p) { p.mutable_arenas(1)->set_image_bytes(1); }, "image");
  refused([](plan::Plan &p) { p.mutable_arenas(2)->set_bytes(uint64_t(1) << 47); }, "2^46");
  refused(
      [](plan::Plan &p) {
        p.mutable_arenas(1)->set_bytes(uint64_t(1) << 46);
        p.mutable_arenas(2)->set_bytes(uint64_t(1) << 46);
      },
      "together");
  refused([](plan::Plan &p) { p.mutable_arenas(2)->set_bytes(191); }, "outside arena 'transient'");
  refused([](plan::Plan &p) { p.mutable_arenas(0)->set_bytes(31); }, "");
  refused(
      [](plan::Plan &p) {
        for (int i = 0; i < 70; ++i)
          addArena(p, "more", plan::Arena::IO, 1);
      },
      "arenas");
}

TEST(Verify, RefusesBindingsThatWouldLoseOneAnother) {
  auto add = [](plan::Plan &p, const char *name, plan::Binding::Kind kind, plan::Slice where) {
    for (plan::Entry &entry : *p.mutable_entries())
      bind(entry, name, kind, plan::F32, {width, 1}, where, where.value());
  };
  // The runtime fills each of them by itself: the same number cannot be the same value.
  refused([&](plan::Plan &p) { add(p, "x2", plan::Binding::BATCH, slice(Params, 0, width * 4, 3)); },
          "binding 'x2': ends with the step but lies in arena 'params', which outlives it");
  refused([&](plan::Plan &p) { add(p, "slot", plan::Binding::STATE, slice(Params, 0, width * 4, 3)); },
          "shares bytes with another binding");
  refused([&](plan::Plan &p) { add(p, "x2", plan::Binding::BATCH, slice(Io, 0, width * 4, 1)); },
          "shares bytes with another binding");
  refused([&](plan::Plan &p) { add(p, "x2", plan::Binding::BATCH, slice(State, 0, width * 4, 4)); },
          "binding 'x2': ends with the step but lies in arena 'state', which outlives it");
  refused(
      [](plan::Plan &p) {
        for (plan::Entry &entry : *p.mutable_entries())
          bind(entry, "rate", plan::Binding::SCALAR, plan::F32, {}, slice(Params, 0, 4, 60), 60);
      },
      "binding 'rate': ends with the step but lies in arena 'params'");
  refused([&](plan::Plan &p) { add(p, "x2", plan::Binding::BATCH, slice(Io, 768, width * 4, 3)); },
          "two bindings start with value number 3");
  refused([](plan::Plan &p) { train(p).mutable_bindings(3)->mutable_slice()->set_value(9); },
          "is undefined until the step writes it");
  // A metric that bears the name of a state does not make it the entry's own.
  refused(
      [](plan::Plan &p) {
        plan::Entry &eval = *p.mutable_entries(2);
        for (plan::Binding &binding : *eval.mutable_bindings())
          if (binding.kind() == plan::Binding::METRIC)
            binding.set_name("w.m");
        plan::Fill *fill = eval.add_instructions()->mutable_fill();
        *fill->mutable_target() = slice(State, 0, 32, 50);
        fill->set_pattern_bytes(4);
      },
      "'w.m', which this entry does not list");
  // Where it starts is one decision for all entries.
  refused([](plan::Plan &p) { p.mutable_entries(2)->mutable_bindings(2)->set_from_image(false); },
          "starts with another value in another entry");
}

TEST(Verify, RefusesArenasOfOtherUse) {
  refused([](plan::Plan &p) { p.mutable_arenas(State)->set_role(plan::Arena::PARAMS); },
          "arena 'state': is of a role of which a plan has one arena: PARAMS");
  refused([](plan::Plan &p) { p.mutable_arenas(State)->set_name("params"); }, "has the name of another arena");
  refused(
      [](plan::Plan &p) {
        p.mutable_arenas(Params)->set_role(plan::Arena::STATE);
        p.mutable_arenas(Params)->set_image_bytes(0);
        p.mutable_arenas(State)->set_role(plan::Arena::PARAMS);
        for (plan::Entry &entry : *p.mutable_entries())
          for (plan::Binding &binding : *entry.mutable_bindings())
            binding.set_from_image(false);
      },
      "is a parameter but lies in arena 'params', which holds optimizer state");
}

TEST(Verify, RefusesBadSlices) {
  refused([](plan::Plan &p) { subtract(p).mutable_reads(0)->set_arena(4); }, "arena 4 does not exist");
  refused([](plan::Plan &p) { subtract(p).mutable_reads(0)->set_offset(~uint64_t(0)); }, "outside");
  refused([](plan::Plan &p) { subtract(p).mutable_reads(0)->set_bytes(~uint64_t(0)); }, "outside");
  refused([](plan::Plan &p) { subtract(p).mutable_reads(0)->set_offset(4); }, "");
  refused([](plan::Plan &p) { subtract(p).mutable_reads(0)->set_bytes(68); }, "");
  refused([](plan::Plan &p) { subtract(p).mutable_reads(0)->set_value(8); }, "reads value 8");
  refused([](plan::Plan &p) { subtract(p).mutable_reads(0)->set_value(0); }, "without a number");
  refused([](plan::Plan &p) { subtract(p).mutable_writes(0)->set_value(0); }, "writes value number 0");
  refused([](plan::Plan &p) { subtract(p).mutable_writes(0)->set_value(uint64_t(1) << 63); }, "value number");
  refused([](plan::Plan &p) { subtract(p).mutable_writes(0)->set_offset(32); }, "without being the same range");
  refused([](plan::Plan &p) { subtract(p).mutable_writes(0)->set_offset(68); }, "");
  refused([](plan::Plan &p) { subtract(p).mutable_reads(0)->set_offset(128); }, "undefined");
}

TEST(Verify, RefusesBadBindings) {
  auto binding = [](plan::Plan &p, const char *name) -> plan::Binding & {
    for (plan::Binding &b : *train(p).mutable_bindings())
      if (b.name() == name)
        return b;
    return *train(p).mutable_bindings(0);
  };
  refused([&](plan::Plan &p) { binding(p, "x").clear_name(); }, "name");
  refused([&](plan::Plan &p) { binding(p, "x").set_name("y"); }, "twice");
  refused([&](plan::Plan &p) { binding(p, "x").clear_kind(); }, "kind");
  refused([&](plan::Plan &p) { binding(p, "x").clear_dtype(); }, "element type");
  refused([&](plan::Plan &p) { binding(p, "x").set_dtype(plan::F64); }, "bytes");
  refused([&](plan::Plan &p) { binding(p, "x").set_dims(0, -1); }, "negative");
  refused([&](plan::Plan &p) { binding(p, "x").set_dims(0, INT64_MAX); }, "too large");
  refused([&](plan::Plan &p) { binding(p, "x").set_batch_dim(2); }, "batch dimension");
  refused([&](plan::Plan &p) { binding(p, "x").mutable_slice()->set_value(0); }, "value number 0");
  refused([&](plan::Plan &p) { binding(p, "x").mutable_slice()->set_offset(513); }, "");
  refused([&](plan::Plan &p) { binding(p, "x").set_from_image(true); }, "image");
  refused([&](plan::Plan &p) { binding(p, "loss").set_final_value(0); }, "final");
  refused([&](plan::Plan &p) { binding(p, "loss").set_final_value(77); }, "final value 77");
  refused([&](plan::Plan &p) { binding(p, "w").set_final_value(3); }, "final value 3");
  refused([&](plan::Plan &p) { binding(p, "w").set_kind(plan::Binding::CONSTANT); }, "constant");
  refused([&](plan::Plan &p) { binding(p, "w.m").mutable_slice()->set_arena(Transient); }, "outlives");
  refused([&](plan::Plan &p) { binding(p, "w.m").mutable_slice()->set_arena(Params); }, "");
  refused([&](plan::Plan &p) { binding(p, "lr").set_kind(plan::Binding::STATE); }, "outlives");
  for (const char *name : {"loss", "grad", "grad/", "Grad/w", "lowtide.grad/w"})
    refused(
        [&](plan::Plan &p) {
          binding(p, "loss").set_kind(plan::Binding::GRADIENT);
          binding(p, "loss").set_name(name);
        },
        "is a gradient and is not called grad/<parameter>");
  refused([&](plan::Plan &p) { binding(p, "loss").set_kind(static_cast<plan::Binding::Kind>(9)); }, "no known kind");
  refused(
      [&](plan::Plan &p) {
        for (int i = 0; i < 20; ++i)
          binding(p, "x").add_dims(1);
      },
      "rank");
  // What waits for the next step is state, and an entry takes it up.
  refused([&](plan::Plan &p) { binding(p, "x").set_pending(true); }, "is pending and no state of its own");
  refused([&](plan::Plan &p) { binding(p, "w.m").set_pending(true); }, "no entry 'flush' with the flag 'pending'");
  // The same parameter elsewhere in another entry.
  refused(
      [&](plan::Plan &p) {
        p.mutable_arenas(0)->set_bytes(64);
        binding(p, "w").mutable_slice()->set_offset(32);
        binding(p, "w").set_from_image(false);
      },
      "elsewhere");
}

TEST(Verify, RefusesBadCalls) {
  refused([](plan::Plan &p) { product(p).set_callee("fft"); },
          "no library has a call 'fft'; there are attention, attention_grad, conv");
  refused([](plan::Plan &p) { product(p).mutable_attributes(0)->set_i(17); }, "");
  refused([](plan::Plan &p) { product(p).mutable_attributes(2)->set_i(9); }, "A has");
  refused([](plan::Plan &p) { product(p).mutable_reads()->RemoveLast(); }, "takes 2 operands");
  refused([](plan::Plan &p) { *product(p).add_writes() = product(p).writes(0); }, "takes 2 operands and 1 result");
  refused([](plan::Plan &p) { set(product(p), "accumulate", 1); }, "takes 3 operands");
  refused([](plan::Plan &p) { *product(p).mutable_writes(0) = slice(Io, 0, 64, 7); }, "");
  refused(
      [](plan::Plan &p) {
        *product(p).mutable_workspace() = slice(Params, 0, 0, 0), product(p).mutable_workspace()->set_bytes(8);
      },
      "transient");
}

TEST(Verify, RefusesWhatOtherEntriesWouldLose) {
  // eval overwrites the momentum that only train lists.
  refused(
      [](plan::Plan &p) {
        plan::Entry &eval = *p.mutable_entries(2);
        plan::Fill *fill = eval.add_instructions()->mutable_fill();
        *fill->mutable_target() = slice(State, 0, 32, 50);
        fill->set_pattern_bytes(4);
      },
      "'w.m', which this entry does not list");
}

TEST(Verify, RefusesBadStructure) {
  refused([](plan::Plan &p) { p.clear_entries(); }, "0 entries");
  refused([](plan::Plan &p) { train(p).set_name("eval"); }, "taken");
  refused([](plan::Plan &p) { train(p).add_instructions(); }, "no known kind");
  refused([](plan::Plan &p) { train(p).mutable_instructions(0)->set_stream(1); }, "stream 1");
  refused([](plan::Plan &p) { train(p).set_streams(65); }, "65 streams");
  refused([](plan::Plan &p) { train(p).set_batch(-1); }, "batch");
  refused([](plan::Plan &p) { train(p).set_peak_live_bytes(64 + 64 - 1); }, "peak of 127 live bytes; it is 128");
  refused([](plan::Plan &p) { train(p).mutable_instructions()->SwapElements(0, 1); }, "undefined");
  refused([](plan::Plan &p) { train(p).mutable_instructions()->DeleteSubrange(3, 1); }, "reads value 10");
  refused([](plan::Plan &p) { *train(p).add_instructions() = train(p).instructions(0); }, "");
  refused([](plan::Plan &p) { train(p).add_instructions()->mutable_repeat(); }, "repeats 0 times");
  refused([](plan::Plan &p) { train(p).add_instructions()->mutable_record()->set_event(0); }, "event 0 of 0");
  refused([](plan::Plan &p) { train(p).add_instructions()->mutable_wait()->set_event(0); }, "event 0 of 0");
}

/// A plan of fills and copies on several streams over one transient arena, checked by a metric at the end.
class Streams {
public:
  Streams() {
    plan_.set_format_version(planFormatVersion);
    addArena(plan_, "transient", plan::Arena::TRANSIENT, 256);
    addArena(plan_, "io", plan::Arena::IO, 64);
    plan_.add_entries();
    entry()->set_name("train");
    entry()->set_streams(3);
    entry()->set_events(4);
  }
  Streams &fill(uint32_t stream, uint64_t offset, uint64_t value, uint32_t arena = 0) {
    plan::Instruction *instruction = entry()->add_instructions();
    instruction->set_stream(stream);
    *instruction->mutable_fill()->mutable_target() = slice(arena, offset, 16, value);
    instruction->mutable_fill()->set_pattern_bytes(4);
    return *this;
  }
  Streams &copy(uint32_t stream, uint64_t from, uint64_t value, uint64_t to, uint64_t newValue, uint32_t arena = 0) {
    plan::Instruction *instruction = entry()->add_instructions();
    instruction->set_stream(stream);
    *instruction->mutable_copy()->mutable_source() = slice(0, from, 16, value);
    *instruction->mutable_copy()->mutable_target() = slice(arena, to, 16, newValue);
    return *this;
  }
  Streams &record(uint32_t stream, uint32_t event) {
    plan::Instruction *instruction = entry()->add_instructions();
    instruction->set_stream(stream);
    instruction->mutable_record()->set_event(event);
    return *this;
  }
  Streams &wait(uint32_t stream, uint32_t event) {
    plan::Instruction *instruction = entry()->add_instructions();
    instruction->set_stream(stream);
    instruction->mutable_wait()->set_event(event);
    return *this;
  }
  Status verify() const { return verifyPlan(plan_); }

  plan::Plan plan_;
  plan::Entry *entry() { return plan_.mutable_entries(0); }
};

TEST(VerifyStreams, ReadsWaitForWrites) {
  EXPECT_TRUE(Streams().fill(0, 0, 1).copy(0, 0, 1, 16, 2).verify().isOk());
  EXPECT_FALSE(Streams().fill(0, 0, 1).copy(1, 0, 1, 16, 2).verify().isOk());
  EXPECT_TRUE(Streams().fill(0, 0, 1).record(0, 0).wait(1, 0).copy(1, 0, 1, 16, 2).verify().isOk());
  // The event was recorded before the write.
  EXPECT_FALSE(Streams().record(0, 0).fill(0, 0, 1).wait(1, 0).copy(1, 0, 1, 16, 2).verify().isOk());
  // Through a third stream.
  EXPECT_TRUE(
      Streams().fill(0, 0, 1).record(0, 0).wait(2, 0).record(2, 1).wait(1, 1).copy(1, 0, 1, 16, 2).verify().isOk());
  EXPECT_FALSE(
      Streams().fill(0, 0, 1).record(0, 0).record(2, 1).wait(2, 0).wait(1, 1).copy(1, 0, 1, 16, 2).verify().isOk());
}

TEST(VerifyStreams, WritesWaitForReadersAndWriters) {
  // A reader on stream 1 may be pending when stream 0 writes again.
  auto start = [] { return Streams().fill(0, 0, 1).record(0, 0).wait(1, 0).copy(1, 0, 1, 16, 2); };
  EXPECT_FALSE(start().fill(0, 0, 3).verify().isOk());
  EXPECT_TRUE(start().record(1, 1).wait(0, 1).fill(0, 0, 3).verify().isOk());
  // Two writers without order.
  EXPECT_FALSE(Streams().fill(0, 0, 1).fill(1, 0, 2).verify().isOk());
  EXPECT_FALSE(Streams().fill(0, 0, 1).fill(1, 8, 2).verify().isOk());
  EXPECT_TRUE(Streams().fill(0, 0, 1).fill(1, 16, 2).verify().isOk());
}

TEST(VerifyStreams, EventsAreRecordedOnceAndBeforeTheyAreAwaited) {
  EXPECT_FALSE(Streams().wait(1, 0).verify().isOk());
  EXPECT_FALSE(Streams().record(0, 0).record(0, 0).verify().isOk());
  EXPECT_FALSE(Streams().record(0, 4).verify().isOk());
}

TEST(VerifyValues, PartsOfAValueMayComeFromSeveralWriters) {
  Streams parts;
  parts.fill(0, 0, 1).fill(0, 16, 1);
  plan::Copy *copy = parts.entry()->add_instructions()->mutable_copy();
  *copy->mutable_source() = slice(0, 8, 16, 1);
  *copy->mutable_target() = slice(0, 64, 16, 2);
  EXPECT_TRUE(parts.verify().isOk()) << parts.verify().str();
  EXPECT_FALSE(Streams().fill(0, 0, 1).fill(0, 0, 1).verify().isOk());
  EXPECT_FALSE(Streams().fill(0, 0, 1).fill(0, 8, 1).verify().isOk());
  EXPECT_FALSE(Streams().fill(0, 0, 1).copy(0, 8, 1, 64, 2).verify().isOk());
}

TEST(VerifyValues, ManyWritersOfOneValueTakeLinearTime) {
  // All pairs compared would be 10^9 comparisons.
  Streams parts;
  constexpr uint64_t count = 50000;
  parts.plan_.mutable_arenas(0)->set_bytes(16 * count);
  for (uint64_t i = 0; i < count; ++i)
    parts.fill(0, 16 * (i * 7919 % count), 1);
  EXPECT_TRUE(parts.verify().isOk()) << parts.verify().str();
  EXPECT_NE(parts.fill(0, 16, 1).verify().str().find("a second time"), std::string::npos);
}

TEST(VerifyValues, CopiesAndFillsAreFormed) {
  Streams overlapping;
  EXPECT_FALSE(overlapping.fill(0, 0, 1).copy(0, 0, 1, 8, 2).verify().isOk());
  Streams lengths;
  lengths.fill(0, 0, 1).copy(0, 0, 1, 16, 2);
  lengths.entry()->mutable_instructions(1)->mutable_copy()->mutable_target()->set_bytes(8);
  EXPECT_FALSE(lengths.verify().isOk());
  for (uint32_t unit : {0u, 3u, 16u, 32u}) {
    Streams pattern;
    pattern.fill(0, 0, 1);
    pattern.entry()->mutable_instructions(0)->mutable_fill()->set_pattern_bytes(unit);
    EXPECT_FALSE(pattern.verify().isOk()) << unit;
  }
}

TEST(VerifyRepeat, TheSecondRoundMustSeeWhatTheFirstSaw) {
  auto repeated = [](uint64_t readValue, uint64_t writeValue, int64_t count) {
    Streams program;
    program.fill(0, 0, 1);
    plan::Repeat *repeat = program.entry()->add_instructions()->mutable_repeat();
    repeat->set_count(count);
    plan::Copy *copy = repeat->add_body()->mutable_copy();
    *copy->mutable_source() = slice(0, 0, 16, readValue);
    *copy->mutable_target() = slice(0, 64, 16, 2);
    plan::Copy *back = repeat->add_body()->mutable_copy();
    *back->mutable_source() = slice(0, 64, 16, 2);
    *back->mutable_target() = slice(0, 0, 16, writeValue);
    return program.verify();
  };
  // The next round's number says nothing of which round it is from: what is handed on must be carried.
  EXPECT_NE(repeated(1, 1, 5).str().find("writes value 1 a second time"), std::string::npos) << repeated(1, 1, 5).str();
  EXPECT_FALSE(repeated(1, 3, 5).isOk());
  EXPECT_TRUE(repeated(1, 3, 1).isOk());
}

namespace {
/// A loop of three rounds: cuts 16 bytes a round out of [0, 48), adds them onto a sum at 64 that starts as value 2, and
/// lays them one after another at [128, 176).
struct Loop {
  Streams program;
  plan::Instruction *instruction = nullptr;
  plan::Repeat *repeat = nullptr;
  plan::Copy *cut = nullptr, *collect = nullptr;

  Loop() {
    plan::Instruction *whole = program.entry()->add_instructions();
    *whole->mutable_fill()->mutable_target() = slice(0, 0, 48, 1);
    whole->mutable_fill()->set_pattern_bytes(4);
    program.fill(0, 64, 2);
    instruction = program.entry()->add_instructions();
    repeat = instruction->mutable_repeat();
    repeat->set_count(3);
    plan::Carry *carry = repeat->add_carries();
    *carry->mutable_slice() = slice(0, 64, 16, 2);
    carry->set_next_value(5);
    add(slice(0, 0, 16, 1), slice(0, 96, 16, 3))->set_source_step(16);
    cut = repeat->mutable_body(0)->mutable_copy();
    add(slice(0, 64, 16, 2), slice(0, 192, 16, 4)); // the sum, and the part
    add(slice(0, 96, 16, 3), slice(0, 64, 16, 5));
    collect = add(slice(0, 96, 16, 3), slice(0, 128, 16, 6));
    collect->set_target_step(16);
    program.entry()->add_instructions();
    *last()->mutable_source() = slice(0, 64, 16, 5);
    *last()->mutable_target() = slice(1, 0, 16, 7);
    program.entry()->add_instructions();
    *last()->mutable_source() = slice(0, 128, 48, 6);
    *last()->mutable_target() = slice(1, 16, 48, 8);
  }
  plan::Copy *add(plan::Slice source, plan::Slice target) {
    plan::Copy *copy = repeat->add_body()->mutable_copy();
    *copy->mutable_source() = source;
    *copy->mutable_target() = target;
    return copy;
  }
  plan::Copy *last() {
    return program.entry()->mutable_instructions(program.entry()->instructions_size() - 1)->mutable_copy();
  }
  Status verify() const { return program.verify(); }
};
} // namespace

TEST(VerifyRepeat, RangesMoveAndValuesAreCarried) {
  EXPECT_TRUE(Loop().verify().isOk()) << Loop().verify().str();

  // The last round must stay inside, and everything one after another must have been written.
  Loop beyond;
  beyond.repeat->set_count(4);
  EXPECT_NE(beyond.verify().str().find("undefined bytes 48"), std::string::npos) << beyond.verify().str();
  Loop outside;
  outside.collect->set_target_step(100);
  EXPECT_NE(outside.verify().str().find("lie outside arena"), std::string::npos) << outside.verify().str();
  Loop wraps;
  wraps.cut->set_source_step(std::numeric_limits<int64_t>::min());
  EXPECT_NE(wraps.verify().str().find("beyond all bytes"), std::string::npos) << wraps.verify().str();
  Loop hole;
  hole.repeat->set_count(2);
  EXPECT_FALSE(hole.verify().isOk());
  Loop stands;
  stands.collect->set_target_step(0);
  EXPECT_FALSE(stands.verify().isOk());
  Loop overlapping;
  overlapping.cut->set_source_step(48);
  EXPECT_FALSE(overlapping.verify().isOk());

  // A moving range only means something in a repeat.
  Loop alone;
  alone.last()->set_source_step(16);
  EXPECT_NE(alone.verify().str().find("outside a repeat"), std::string::npos) << alone.verify().str();
}

TEST(VerifyRepeat, RangesMoveBack) {
  auto turn = [](Loop &loop, uint64_t from) {
    loop.cut->mutable_source()->set_offset(from);
    loop.cut->set_source_step(-16);
    loop.collect->mutable_target()->set_offset(160);
    loop.collect->set_target_step(-16);
  };
  Loop back;
  turn(back, 32);
  EXPECT_TRUE(back.verify().isOk()) << back.verify().str();

  // The last round must not begin before the arena does.
  Loop before;
  turn(before, 16);
  EXPECT_NE(before.verify().str().find("beyond all bytes"), std::string::npos) << before.verify().str();
}

TEST(VerifyRepeat, NothingIsReadFromAnEarlierRound) {
  // The cut's target moves on: from the second round on the body would read the first round's part.
  for (int64_t step : {16, 32}) {
    Loop stale;
    stale.cut->set_target_step(step);
    stale.program.plan_.mutable_arenas(0)->set_bytes(512);
    EXPECT_NE(stale.verify().str().find("an earlier round of the repeat made"), std::string::npos)
        << stale.verify().str();
  }
  // Parts that would cover each other.
  Loop covering;
  covering.collect->set_target_step(8);
  EXPECT_NE(covering.verify().str().find("less than the 16 that a round writes"), std::string::npos)
      << covering.verify().str();
  // The body's last instruction of a round before its first: it reads what the round before left.
  Loop swapped;
  swapped.repeat->mutable_body()->SwapElements(0, 3);
  EXPECT_FALSE(swapped.verify().isOk());
  // In the body of a body.
  Loop nested;
  plan::Instruction outer;
  outer.mutable_repeat()->set_count(2);
  *outer.mutable_repeat()->add_body() = *nested.instruction;
  *nested.instruction = outer;
  EXPECT_NE(nested.verify().str().find("before the first round"), std::string::npos) << nested.verify().str();
}

TEST(VerifyRepeat, StepsComeToAnEnd) {
  auto endless = [](std::initializer_list<int64_t> counts) {
    Streams program;
    plan::Instruction inner;
    *inner.mutable_fill()->mutable_target() = slice(0, 0, 16, 1);
    inner.mutable_fill()->set_pattern_bytes(4);
    for (int64_t count : counts) {
      plan::Instruction outer;
      outer.mutable_repeat()->set_count(count);
      *outer.mutable_repeat()->add_body() = inner;
      inner = outer;
    }
    *program.entry()->add_instructions() = inner;
    return program.verify().str();
  };
  EXPECT_EQ(endless({1000000}), "");
  EXPECT_NE(endless({INT64_MAX}).find("execute more than 1000000000 instructions"), std::string::npos);
  EXPECT_NE(endless({100000, 100000}).find("execute more than"), std::string::npos);
  EXPECT_NE(endless({INT64_MAX, INT64_MAX, 2}).find("execute more than"), std::string::npos);
}

TEST(VerifyRepeat, CarriedNumbersAreThoseOfTheBody) {
  auto refused = [](auto change, const char *why) {
    Loop loop;
    change(loop);
    Status status = loop.verify();
    EXPECT_NE(status.str().find(why), std::string::npos) << status.str();
  };
  refused([](Loop &l) { l.repeat->mutable_carries()->Clear(); }, "reads value 2");
  refused([](Loop &l) { l.repeat->mutable_carries(0)->set_next_value(2); }, "carries value 2");
  refused([](Loop &l) { l.repeat->mutable_carries(0)->set_next_value(0); }, "without a proper number");
  refused([](Loop &l) { l.repeat->mutable_carries(0)->mutable_slice()->set_value(9); }, "before the first round");
  refused([](Loop &l) { l.repeat->mutable_carries(0)->mutable_slice()->set_offset(80); }, "before the first round");
  refused([](Loop &l) { l.repeat->mutable_carries(0)->mutable_slice()->set_bytes(8); }, "reads value 2");
  refused([](Loop &l) { l.repeat->mutable_carries(0)->mutable_slice()->set_bytes(24); }, "before the first round");
  refused([](Loop &l) { l.repeat->mutable_carries(0)->mutable_slice()->set_arena(7); }, "arena 7 does not exist");
  refused([](Loop &l) { l.repeat->mutable_body(1)->mutable_copy()->mutable_source()->set_value(5); }, "reads value 5");
  refused([](Loop &l) { l.repeat->mutable_body(2)->mutable_copy()->mutable_target()->set_value(6); },
          "carries value 5");
  refused([](Loop &l) { l.last()->mutable_source()->set_value(5); }, "reads value 5");
  refused([](Loop &l) { l.repeat->mutable_body()->Clear(); }, "without instructions");
}

/// Every number in the plan moved by a little or a lot: what is accepted must still mean the same bytes.
TEST(Verify, MutationsOfAllSlicesAreRefused) {
  int refusedCount = 0, total = 0;
  auto mutate = [&](const std::function<void(plan::Slice &)> &change) {
    plan::Plan original = regressionPlan();
    int slices = 0;
    auto visit = [](plan::Plan &plan, int wanted, const std::function<void(plan::Slice &)> &apply) {
      int at = 0;
      for (plan::Instruction &instruction : *plan.mutable_entries(0)->mutable_instructions()) {
        auto each = [&](plan::Slice *slice) {
          if (at++ == wanted)
            apply(*slice);
        };
        if (instruction.has_launch()) {
          for (plan::Slice &slice : *instruction.mutable_launch()->mutable_reads())
            each(&slice);
          for (plan::Slice &slice : *instruction.mutable_launch()->mutable_writes())
            each(&slice);
        } else {
          for (plan::Slice &slice : *instruction.mutable_call()->mutable_reads())
            each(&slice);
          for (plan::Slice &slice : *instruction.mutable_call()->mutable_writes())
            each(&slice);
        }
      }
      return at;
    };
    slices = visit(original, -1, change);
    for (int i = 0; i < slices; ++i) {
      plan::Plan mutant = original;
      visit(mutant, i, change);
      ++total;
      refusedCount += !verifyPlan(mutant).isOk();
    }
  };
  for (int64_t delta : {1, -1, 4, -4, 64, -64, 4096})
    mutate([=](plan::Slice &s) { s.set_offset(s.offset() + static_cast<uint64_t>(delta)); });
  mutate([](plan::Slice &s) { s.set_arena(s.arena() + 1); });
  mutate([](plan::Slice &s) { s.set_value(s.value() + 100); });
  mutate([](plan::Slice &s) { s.set_bytes(s.bytes() + 4096); });
  // Moving the difference or the first gemm's result consistently is impossible by one slice alone: all are refused.
  EXPECT_EQ(refusedCount, total);
}

} // namespace
