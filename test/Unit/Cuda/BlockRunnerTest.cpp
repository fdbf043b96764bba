//===- BlockRunnerTest.cpp - threads of a block, and mistakes of kernels ---===//

#include "runtime/devices/FakeCuda/BlockRunner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

using namespace lowtide::rt::cuda::fake;
using testing::HasSubstr;

namespace {

constexpr ThreadOrder orders[] = {ThreadOrder::Turns, ThreadOrder::FirstWarpAhead, ThreadOrder::LastWarpAhead};

/// Runs `blocks` blocks of `threads` over `out`; the first complaint.
std::string run(lt_gpu_kernel kernel, std::vector<uint32_t> &out, uint32_t threads, ThreadOrder order,
                uint32_t blocks = 1, uint32_t shared = 4096) {
  BlockRunner runner;
  void *arguments[] = {out.data()};
  for (uint32_t block = 0; block < blocks; ++block)
    if (std::string said = runner.run({kernel, arguments, blocks, threads, shared}, block, order); !said.empty())
      return said;
  return {};
}

void ids(void *const *args, lt_gpu_thread *thread, void *) {
  static_cast<uint32_t *>(args[0])[thread->block * thread->threads + thread->thread] =
      thread->block * 1000 + thread->thread + 100000 * thread->blocks;
}

TEST(BlockRunner, EveryThreadRunsOnceWithItsIds) {
  for (ThreadOrder order : orders) {
    std::vector<uint32_t> out(3 * 96);
    EXPECT_EQ(run(ids, out, 96, order, 3), "");
    for (uint32_t block = 0; block < 3; ++block)
      for (uint32_t thread = 0; thread < 96; ++thread)
        EXPECT_EQ(out[block * 96 + thread], block * 1000 + thread + 300000);
  }
}

/// Each of 50 rounds reverses what the threads hold, through shared memory.
template <bool barrierAfterWrite, bool barrierAfterRead>
void reverse(void *const *args, lt_gpu_thread *thread, void *shared) {
  auto *cells = static_cast<uint32_t *>(shared);
  uint32_t value = thread->thread, last = thread->threads - 1;
  for (int round = 0; round < 51; ++round) {
    cells[thread->thread] = value;
    if (barrierAfterWrite)
      thread->barrier(thread);
    value = cells[last - thread->thread] + 1;
    if (barrierAfterRead)
      thread->barrier(thread);
  }
  static_cast<uint32_t *>(args[0])[thread->thread] = value;
}

bool isReversed(const std::vector<uint32_t> &out) {
  for (uint32_t thread = 0; thread < out.size(); ++thread)
    if (out[thread] != out.size() - 1 - thread + 51)
      return false;
  return true;
}

TEST(BlockRunner, SharedMemoryBetweenBarriers) {
  for (ThreadOrder order : orders) {
    std::vector<uint32_t> out(256);
    EXPECT_EQ(run(reverse<true, true>, out, 256, order), "");
    EXPECT_TRUE(isReversed(out));
  }
}

TEST(BlockRunner, AMissingBarrierAfterAWriteShowsInEveryOrder) {
  for (ThreadOrder order : orders) {
    std::vector<uint32_t> out(256);
    EXPECT_EQ(run(reverse<false, true>, out, 256, order), "");
    EXPECT_FALSE(isReversed(out));
  }
}

TEST(BlockRunner, AMissingBarrierAfterAReadShowsWhenAWarpRunsAhead) {
  int wrong = 0;
  for (ThreadOrder order : {ThreadOrder::FirstWarpAhead, ThreadOrder::LastWarpAhead}) {
    std::vector<uint32_t> out(256);
    EXPECT_EQ(run(reverse<true, false>, out, 256, order), "");
    wrong += !isReversed(out);
  }
  EXPECT_EQ(wrong, 2);
}

void shuffles(void *const *args, lt_gpu_thread *thread, void *) {
  uint32_t lane = thread->thread % 32, *out = static_cast<uint32_t *>(args[0]) + thread->thread * 4;
  out[0] = thread->shuffle(thread, lane * 10, 0, 5);
  out[1] = thread->shuffle(thread, lane * 10, 1, 3);
  out[2] = thread->shuffle(thread, lane * 10, 2, 3);
  out[3] = thread->shuffle(thread, lane * 10, 3, 7);
}

TEST(BlockRunner, ShufflesOfAWarp) {
  for (ThreadOrder order : orders) {
    std::vector<uint32_t> out(64 * 4);
    EXPECT_EQ(run(shuffles, out, 64, order), "");
    for (uint32_t thread = 0; thread < 64; ++thread) {
      uint32_t lane = thread % 32;
      EXPECT_EQ(out[thread * 4], (lane ^ 5) * 10);
      EXPECT_EQ(out[thread * 4 + 1], (lane + 3 < 32 ? lane + 3 : lane) * 10);
      EXPECT_EQ(out[thread * 4 + 2], (lane >= 3 ? lane - 3 : lane) * 10);
      EXPECT_EQ(out[thread * 4 + 3], 70u);
    }
  }
}

void earlyExit(void *const *args, lt_gpu_thread *thread, void *) {
  if (thread->thread >= 40)
    return;
  thread->barrier(thread);
  static_cast<uint32_t *>(args[0])[thread->thread] = 1;
}

TEST(BlockRunner, ThreadsThatHaveEndedAreNotWaitedFor) {
  for (ThreadOrder order : orders) {
    std::vector<uint32_t> out(64);
    EXPECT_EQ(run(earlyExit, out, 64, order), "");
    EXPECT_EQ(out[39], 1u);
    EXPECT_EQ(out[40], 0u);
  }
}

void divergent(void *const *, lt_gpu_thread *thread, void *) {
  if (thread->thread % 32 < 8)
    thread->barrier(thread);
  else
    (void)thread->shuffle(thread, 0, 0, 1);
}
void twoShuffles(void *const *, lt_gpu_thread *thread, void *) {
  (void)thread->shuffle(thread, 0, thread->thread < 8 ? 0 : 1, 1);
}

TEST(BlockRunner, SynchronizationInDivergentCodeIsTold) {
  for (ThreadOrder order : orders) {
    std::vector<uint32_t> out(1);
    EXPECT_THAT(run(divergent, out, 64, order),
                HasSubstr("of 64 threads 16 wait at a barrier, 48 at a shuffle, 0 have ended"));
    EXPECT_THAT(run(twoShuffles, out, 32, order), HasSubstr("different shuffles"));
  }
}

void readUnwritten(void *const *args, lt_gpu_thread *thread, void *shared) {
  static_cast<uint32_t *>(args[0])[thread->thread] = static_cast<uint32_t *>(shared)[thread->thread];
}

TEST(BlockRunner, SharedMemoryStartsAsNaN) {
  std::vector<uint32_t> out(32);
  EXPECT_EQ(run(ids, out, 32, ThreadOrder::Turns), "");
  EXPECT_EQ(run(readUnwritten, out, 32, ThreadOrder::Turns), "");
  float value;
  std::memcpy(&value, &out[5], 4);
  EXPECT_TRUE(std::isnan(value));
}

TEST(BlockRunner, ABlockThatStandsStillLeavesTheNextAlone) {
  BlockRunner runner;
  std::vector<uint32_t> out(256);
  void *arguments[] = {out.data()};
  EXPECT_NE(runner.run({divergent, arguments, 1, 1024, 0}, 0, ThreadOrder::Turns), "");
  EXPECT_EQ(runner.run({reverse<true, true>, arguments, 1, 256, 1024}, 0, ThreadOrder::Turns), "");
  EXPECT_TRUE(isReversed(out));
}

} // namespace
