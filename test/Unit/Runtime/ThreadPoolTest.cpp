//===- ThreadPoolTest.cpp - every task once, on any number of threads ------===//

#include "runtime/devices/Cpu/ThreadPool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

using namespace lowtide::rt;

namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (unsigned threads : {1u, 2u, 3u, 8u}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_TRUE(pool);
    std::vector<int> count(100);
    for (int round = 0; round < 3000; ++round) {
      int64_t tasks = round % 100;
      std::fill(count.begin(), count.end(), 0);
      (*pool)->run(tasks, [&](int64_t task, unsigned thread) {
        ASSERT_LT(thread, threads);
        ++count[static_cast<size_t>(task)];
      });
      for (int64_t task = 0; task < 100; ++task)
        ASSERT_EQ(count[static_cast<size_t>(task)], task < tasks) << "round " << round;
    }
  }
}

// A thread that was put aside between two looks at a job must not take a task of the next one, whose stretches are
// longer: it happened once in millions of jobs, and most where threads are more than cores.
TEST(ThreadPool, LateThreadsClaimNothing) {
  constexpr unsigned threads = 8;
  auto pool = ThreadPool::create(threads);
  ASSERT_TRUE(pool);
  std::vector<std::atomic<int>> count(64);
  for (int round = 0; round < 2'000'000; ++round) {
    const int64_t tasks = round % 2 ? 2 * threads : 64;
    (*pool)->run(tasks, [&](int64_t task, unsigned) {
      count[static_cast<size_t>(task)].fetch_add(1, std::memory_order_relaxed);
    });
    for (int64_t task = 0; task < 64; ++task)
      ASSERT_EQ(count[static_cast<size_t>(task)].exchange(0, std::memory_order_relaxed), task < tasks)
          << "round " << round;
  }
}

TEST(ThreadPool, JobsSeeWhatEarlierJobsWrote) {
  auto pool = ThreadPool::create(4);
  ASSERT_TRUE(pool);
  std::vector<int64_t> values(64, 0), next(64, 0);
  for (int round = 0; round < 5000; ++round) {
    (*pool)->run(64, [&](int64_t task, unsigned) {
      auto i = static_cast<size_t>(task);
      next[i] = values[(i + 1) % 64] + 1;
    });
    (*pool)->run(64,
                 [&](int64_t task, unsigned) { values[static_cast<size_t>(task)] = next[static_cast<size_t>(task)]; });
  }
  for (int64_t value : values)
    EXPECT_EQ(value, 5000);
}

} // namespace
