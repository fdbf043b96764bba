// What a proof costs where it is long, and how its failures read.
#include "Regression.h"
#include "runtime/Verify.h"

#include <ctime>
#include <functional>
#include <gtest/gtest.h>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

/// An entry that fills `count` ranges, each a value of its own, in a mixed order, twice.
plan::Plan fills(uint64_t count) {
  plan::Plan plan;
  plan.set_format_version(planFormatVersion);
  plan.set_target("cpu");
  addArena(plan, "transient", plan::Arena::TRANSIENT, count * 64);
  plan::Entry &entry = *plan.add_entries();
  entry.set_name("train");
  for (uint64_t value = 1; value <= 2 * count; ++value) {
    plan::Fill &fill = *entry.add_instructions()->mutable_fill();
    *fill.mutable_target() = slice(0, value * 7919 % count * 64, 64, value);
    fill.set_pattern_bytes(1);
  }
  return plan;
}

/// Seconds of the processor, the least of three.
double cost(uint64_t count) {
  const plan::Plan plan = fills(count);
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    EXPECT_TRUE(verifyPlan(plan).isOk());
    least = std::min(least, double(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

TEST(VerifyScale, SixtyThousandFillsCostLittleMoreThanTheirShare) {
  // Four times as many: n log n is 4.6 times the work, n² sixteen times.
  const double some = cost(15000), many = cost(60000);
  EXPECT_LT(many, 10 * some + 0.01) << some << " s and " << many << " s";
}

std::string refusal(const std::function<void(plan::Plan &)> &change) {
  plan::Plan plan = regressionPlan();
  change(plan);
  return verifyPlan(plan).str();
}

TEST(VerifyMessages, SizesThatWereNegativeReadSo) {
  const auto negative = static_cast<uint64_t>(int64_t(-2048));
  auto &&copyOf = [&](plan::Plan &plan) -> plan::Copy & {
    return *plan.mutable_entries(0)->mutable_instructions(0)->mutable_copy();
  };
  const std::string copied = refusal([&](plan::Plan &p) { copyOf(p).mutable_source()->set_bytes(negative); });
  EXPECT_NE(copied.find("copies -2048 bytes to 0"), std::string::npos) << copied;
  const std::string scratch = refusal([&](plan::Plan &p) {
    p.mutable_entries(0)->mutable_instructions(2)->mutable_launch()->mutable_scratch()->set_bytes(negative);
  });
  EXPECT_NE(scratch.find("scratch of -2048 bytes"), std::string::npos) << scratch;
  const std::string bound =
      refusal([&](plan::Plan &p) { p.mutable_entries(0)->mutable_bindings(0)->mutable_slice()->set_bytes(negative); });
  EXPECT_NE(bound.find("its slice has -2048 bytes"), std::string::npos) << bound;
  const std::string arena = refusal([&](plan::Plan &p) { p.mutable_arenas(0)->set_bytes(negative); });
  EXPECT_NE(arena.find("-2048 bytes; at most 2^46"), std::string::npos) << arena;
  const std::string read = refusal([&](plan::Plan &p) {
    p.mutable_entries(0)->mutable_instructions(0)->mutable_call()->mutable_reads(0)->set_offset(negative);
  });
  EXPECT_NE(read.find("bytes -2048 + 512 lie outside arena 'io'"), std::string::npos) << read;
  EXPECT_NE(read.find("instruction 0, gemm"), std::string::npos) << read;
}

} // namespace
