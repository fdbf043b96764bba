//===- AdviceTest.cpp - kernel tables and what lowtide-bench advises ------===//
#include "tools/lowtide-bench/Advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::bench;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// An instruction that ran twice in each of five steps.
InstructionTime timeOf(const char *what, const char *symbol, double microseconds, uint64_t bytes, uint64_t flops) {
  InstructionTime time;
  time.what = what;
  time.symbol = symbol;
  time.location = std::string("at ") + what;
  time.generated = *symbol;
  time.runs = 10;
  time.nanoseconds = uint64_t(microseconds * 1e3) * time.runs;
  time.bytes = bytes;
  time.flops = flops;
  return time;
}

InstructionCosts costsOf(const char *name, bool generated, double milliseconds, double bytes, double flops,
                         uint64_t count = 1) {
  InstructionCosts costs;
  costs.name = name;
  costs.generated = generated;
  costs.count = count;
  costs.runs = double(count);
  costs.milliseconds = milliseconds;
  costs.bytes = bytes;
  costs.flops = flops;
  return costs;
}

/// 100 GB/s, 1000 GFLOP/s: 1e8 bytes or 1e9 operations in a millisecond.
MeasuredStep stepOf(std::vector<InstructionCosts> kernels, double milliseconds) {
  MeasuredStep step;
  step.milliseconds = milliseconds;
  step.kernels = std::move(kernels);
  step.ceilings.copyGBPerSecond = 100;
  step.ceilings.gemmGFlops = 1000;
  return step;
}

TEST(InstructionCosts, AreSummedByKernelAndByKind) {
  const std::vector<InstructionTime> times = {
      timeOf("loop: add", "loop_1", 10, 100, 5), timeOf("gemm 8×8×8", "", 300, 400, 1024),
      timeOf("loop: add", "loop_1", 30, 100, 5), timeOf("loop: add", "loop_2", 20, 100, 5),
      timeOf("gemm 8×8×8", "", 100, 400, 1024),  timeOf("2 × loop: cast", "batch_3", 1, 8, 0)};
  const std::vector<InstructionCosts> kernels = sumByKernel(times, 5);
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(kernels[0].name, "gemm 8×8×8");
  EXPECT_EQ(kernels[1].name, "loop_1: add");
  EXPECT_EQ(kernels[2].name, "loop_2: add");
  EXPECT_EQ(kernels[3].name, "batch_3: 2 × loop: cast");
  EXPECT_EQ(kernels[0].count, 2u);
  EXPECT_DOUBLE_EQ(kernels[0].runs, 4);
  EXPECT_DOUBLE_EQ(kernels[0].milliseconds, 0.8);
  EXPECT_DOUBLE_EQ(kernels[0].bytes, 1600);
  EXPECT_DOUBLE_EQ(kernels[0].flops, 4096);
  EXPECT_FALSE(kernels[0].generated);
  EXPECT_TRUE(kernels[1].generated);
  EXPECT_EQ(kernels[1].location, "at loop: add");
  EXPECT_DOUBLE_EQ(kernels[1].milliseconds, 0.08);
  const std::vector<InstructionCosts> kinds = sumByKind(times, 5);
  ASSERT_EQ(kinds.size(), 3u);
  EXPECT_EQ(kinds[0].name, "gemm");
  EXPECT_EQ(kinds[1].name, "loop");
  EXPECT_EQ(kinds[1].count, 3u);
  EXPECT_DOUBLE_EQ(kinds[1].milliseconds, 0.12);
  EXPECT_EQ(kinds[2].name, "batch");
  const InstructionCosts all = sumOf(kinds);
  EXPECT_EQ(all.count, 6u);
  EXPECT_DOUBLE_EQ(all.milliseconds, 0.922);
}

TEST(Advice, FloorsAreBytesOrProducts) {
  const Ceilings ceilings = stepOf({}, 1).ceilings;
  EXPECT_DOUBLE_EQ(floorMilliseconds(costsOf("loop_1: add", true, 5, 2e8, 9e9), ceilings), 2);
  EXPECT_DOUBLE_EQ(floorMilliseconds(costsOf("gemm 8×8×8", false, 5, 2e8, 3e9), ceilings), 3);
  EXPECT_DOUBLE_EQ(floorMilliseconds(costsOf("gemm 8×8×8", false, 5, 2e8, 1e9), ceilings), 2);
}

TEST(Advice, NamesKernelsFarFromTheirCeilings) {
  const std::vector<std::string> lines =
      advise(stepOf({costsOf("gemm 8×8×8", false, 50, 1e8, 20e9, 2), costsOf("row_1: sum", true, 40, 4e8, 0, 4),
                     costsOf("gemm 1×8×8", false, 9, 3e8, 1e6), costsOf("loop_2: add", true, 1, 0.2e8, 0)},
                    100));
  EXPECT_THAT(
      lines,
      ElementsAre(
          "row_1: sum (4 in a step): 10 % of what the device copies at best, 36.000 ms a step lost; it waits for "
          "something other than memory: a larger batch gives it more rows at once",
          "gemm 8×8×8 (2 in a step): 40 % of what the device multiplies at best, 30.000 ms a step lost; larger "
          "products come nearer: a larger batch, or fewer micro-batches",
          "gemm 1×8×8 (1 in a step): 33 % of what the device copies at best, 6.000 ms a step lost; it is small "
          "for a call: a larger batch, or fewer micro-batches"));
}

TEST(Advice, SaysWhatStartingTakes) {
  const std::vector<std::string> lines = advise(
      stepOf({costsOf("gemm 8×8×8", false, 1, 0, 1e9, 4), costsOf("loop_1: add", true, 0.25, 0.24e8, 0, 50)}, 1));
  EXPECT_THAT(lines, ElementsAre("50 of 54 instructions take less than 10 µs each, together 20 % of the time: starting "
                                 "them is most of it; a larger batch gives each more to do"));
}

TEST(Advice, SaysWhatIsMovedAndWhatWaits) {
  MeasuredStep step = stepOf({costsOf("loop_1: add", true, 4, 4e8, 0), costsOf("gemm 8×8×8", false, 4, 0, 4e9)}, 10);
  EXPECT_THAT(advise(step), ElementsAre("50 % of the time goes to kernels near the speed of a copy: "
                                        "--precision=mixed-bf16 halves most of what they move",
                                        "2.000 ms of a step (20 %) pass between instructions: a larger batch, or data "
                                        "that comes faster"));
  step.ceilings.gemmType = plan::BF16;
  step.milliseconds = 8;
  EXPECT_THAT(advise(step), ElementsAre(HasSubstr("no kernel is far from what the device can do")));
  // A sample takes 1 MiB of what grows with the batch.
  step.batch = 16;
  step.transientBytes = 16 << 20;
  step.freeBytes = uint64_t(3) << 30;
  EXPECT_THAT(advise(step),
              ElementsAre("3.00 GiB of the device are free: room for about 3072 more samples in a step, or "
                          "for a larger --device-budget if it recomputes"));
  step.freeBytes = 1 << 19;
  EXPECT_THAT(advise(step), ElementsAre(HasSubstr("no kernel is far")));
}

} // namespace
