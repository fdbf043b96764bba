//===- VerifySpacesTest.cpp - arenas in other memory than the device's -----===//

#include "VerifyRefusals.h"

#include "runtime/ExchangeBlocks.h"

#include <gmock/gmock.h>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;
using testing::HasSubstr;

namespace {

TEST(Verify, CopiesReachOtherSpacesThanTheDevice) {
  for (plan::Arena::Space space : {plan::Arena::HOST_PINNED, plan::Arena::HOST, plan::Arena::FILE}) {
    VerifyReport report;
    plan::Plan plan = evictionPlan(space);
    Status status = verifyPlan(plan, &report);
    ASSERT_TRUE(status.isOk()) << status.str();
    // What waits elsewhere does not count: the device holds one value at a time.
    EXPECT_EQ(report.entries[0].peakLiveBytes, 64u);
  }
  auto refusal = [](plan::Plan plan, auto &&change) {
    change(plan);
    return verifyPlan(plan).str();
  };
  const plan::Plan pinned = evictionPlan(plan::Arena::HOST_PINNED);
  const plan::Plan file = evictionPlan(plan::Arena::FILE);
  EXPECT_THAT(refusal(file, [](plan::Plan &p) { p.mutable_arenas()->RemoveLast(); }),
              HasSubstr("the plan has no arena of role STAGING in space device, through which values pass to a file"));
  EXPECT_THAT(refusal(file, [](plan::Plan &p) { p.mutable_arenas(3)->set_bytes(fileAlignment); }),
              HasSubstr("arena 'staging': has 4096 bytes at a multiple of 4096; what passes to a file goes through two "
                        "halves of it, of multiples of 4096"));
  EXPECT_THAT(refusal(file,
                      [](plan::Plan &p) {
                        p.mutable_arenas(1)->set_bytes(2 * fileAlignment);
                        for (int i : {1, 3}) {
                          plan::Copy &copy = *p.mutable_entries(0)->mutable_instructions(i)->mutable_copy();
                          (i == 1 ? copy.mutable_target() : copy.mutable_source())->set_offset(64);
                        }
                      }),
              HasSubstr("begins at byte 64 of a file; copies to a file and back begin at multiples of 4096"));
  EXPECT_THAT(refusal(file, [](plan::Plan &p) { p.mutable_arenas(3)->set_alignment(64); }),
              HasSubstr("arena 'staging': has 8192 bytes at a multiple of 64"));
  EXPECT_THAT(refusal(pinned, [](plan::Plan &p) { *p.add_arenas() = listFileStaging(); }),
              HasSubstr("arena 'staging': of role STAGING in space device, which the runtime does not ask for"));
  EXPECT_THAT(refusal(pinned, [](plan::Plan &p) { p.mutable_arenas(0)->set_space(plan::Arena::HOST); }),
              HasSubstr("an operand lies in arena 'transient' in space host; only copies reach other spaces"));
  EXPECT_THAT(refusal(pinned, [](plan::Plan &p) { p.mutable_arenas(2)->set_space(plan::Arena::HOST); }),
              HasSubstr("arena 'io': is for IO and lies in space host; what bindings lie in is in space device, but "
                        "for parameters and optimizer state in a file or pinned memory of the host"));
  EXPECT_THAT(refusal(pinned,
                      [](plan::Plan &p) {
                        addArena(p, "more", plan::Arena::TRANSIENT, 64, 0, plan::Arena::HOST);
                        plan::Copy &copy = *p.mutable_entries(0)->mutable_instructions()->Add()->mutable_copy();
                        *copy.mutable_source() = slice(1, 0, 64, 2), *copy.mutable_target() = slice(3, 0, 64, 6);
                      }),
              HasSubstr("copies from space host_pinned to space host"));
  EXPECT_EQ(refusal(fileParameterPlan(), [](plan::Plan &) {}), verifyPlan(file).str());
  EXPECT_THAT(refusal(fileParameterPlan(), [](plan::Plan &p) { p.mutable_arenas(1)->set_space(plan::Arena::HOST); }),
              HasSubstr("arena 'evicted': is for PARAMS and lies in space host"));
  EXPECT_THAT(refusal(fileParameterPlan(),
                      [](plan::Plan &p) {
                        p.mutable_entries(0)->mutable_instructions(3)->mutable_copy()->mutable_source()->set_value(2);
                      }),
              HasSubstr("reads value 2, but bytes 0–64 of arena 'transient' hold value 3"));
  // Of two values in one place the second is not the first, wherever it is.
  EXPECT_THAT(refusal(pinned,
                      [](plan::Plan &p) {
                        p.mutable_entries(0)->mutable_instructions(3)->mutable_copy()->mutable_source()->set_value(1);
                      }),
              HasSubstr("reads value 1, but bytes 0–64 of arena 'evicted' hold value 2"));
}

TEST(Verify, ExchangeArenasAreWhatBindingsAskFor) {
  auto refusal = [](auto &&change) {
    plan::Plan plan = evictionPlan(plan::Arena::HOST_PINNED, "cuda-emulated");
    plan::Entry &entry = *plan.mutable_entries(0);
    bind(entry, "x", plan::Binding::BATCH, plan::F32, {80}, slice(2, 64, 320, 9), 9);
    bind(entry, "lr", plan::Binding::SCALAR, plan::F32, {}, slice(2, 384, 4, 10), 10);
    plan.mutable_arenas(2)->set_bytes(448);
    addExchangeArenas(plan);
    change(plan);
    return verifyPlan(plan).str();
  };
  EXPECT_EQ(refusal([](plan::Plan &p) {
              // 256 bytes for the number of the step, 512 for x, 256 for lr; twice.
              EXPECT_EQ(p.arenas(3).bytes(), 2048u);
              EXPECT_EQ(p.arenas(4).bytes(), 512u);
            }),
            verifyPlan(regressionPlan()).str());
  for (int arena : {3, 4, 5, 6})
    for (int64_t off : {-256, 256})
      EXPECT_THAT(refusal([&](plan::Plan &p) {
                    plan::Arena &exchange = *p.mutable_arenas(arena);
                    exchange.set_bytes(exchange.bytes() + static_cast<uint64_t>(off));
                  }),
                  HasSubstr("bytes; 2 blocks for the bindings of its entries take"));
  EXPECT_THAT(refusal([](plan::Plan &p) { p.mutable_arenas()->DeleteSubrange(3, 1); }),
              HasSubstr("the plan has no arena of role EXCHANGE_IN in space device"));
  EXPECT_THAT(refusal([](plan::Plan &p) { p.mutable_arenas(7)->set_bytes(0); }),
              HasSubstr("arena 'staging': has 0 bytes"));
  EXPECT_THAT(refusal([](plan::Plan &p) { p.mutable_arenas(7)->set_space(plan::Arena::DEVICE); }),
              HasSubstr("of role STAGING in space device, which the runtime does not ask for"));
  EXPECT_THAT(refusal([](plan::Plan &p) { p.mutable_arenas(0)->set_alignment(512); }),
              HasSubstr("alignment 512 is not a power of two up to 256"));
  EXPECT_THAT(refusal([](plan::Plan &p) {
                p.mutable_entries(0)->mutable_instructions(0)->mutable_fill()->mutable_target()->set_arena(3);
              }),
              HasSubstr("a slice lies in arena 'exchange_in', which is the runtime's own"));
  refused([](plan::Plan &p) { addExchangeArenas(p); }, "arena 'exchange_in': of role EXCHANGE_IN in space device");
}

} // namespace
