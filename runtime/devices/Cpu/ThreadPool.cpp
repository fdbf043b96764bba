//===- ThreadPool.cpp - threads that share numbered tasks, by a fixed rule ===//

#include "runtime/devices/Cpu/ThreadPool.h"

#include <system_error>

namespace lowtide::rt {
namespace {

/// The next job of a step usually follows within microseconds; only then is it worth to keep the core.
constexpr int spins = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns when `value` is no longer `old`.
void awaitChange(std::atomic<uint32_t> &value, uint32_t old) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old)
      return;
    relax();
  }
  while (value.load(std::memory_order_acquire) == old)
    value.wait(old, std::memory_order_acquire);
}

} // namespace

Expected<std::unique_ptr<ThreadPool>> ThreadPool::create(unsigned threads) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads));
  try {
    for (unsigned thread = 1; thread < threads; ++thread)
      pool->workers_.emplace_back([raw = pool.get(), thread] { raw->loop(thread); });
  } catch (const std::system_error &error) {
    return Status(StatusCode::Device, "cannot start " + std::to_string(threads) + " threads: " + error.what());
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread &worker : workers_)
    worker.join();
}

void ThreadPool::share(unsigned thread) {
  int64_t begin = tasks_ * thread / threads_, end = tasks_ * (thread + 1) / threads_;
  if (begin < end)
    range_(context_, begin, end, thread);
}

void ThreadPool::runShared(int64_t tasks, Range range, void *context) {
  tasks_ = tasks, range_ = range, context_ = context;
  running_.store(threads_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  share(0);
  for (uint32_t left; (left = running_.load(std::memory_order_acquire)) != 0;)
    awaitChange(running_, left);
}

void ThreadPool::loop(unsigned thread) {
  for (uint32_t seen = 0;;) {
    awaitChange(generation_, seen);
    ++seen; // jobs follow each other only after everybody has finished: none is missed
    if (stop_)
      return;
    share(thread);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      running_.notify_one();
  }
}

} // namespace lowtide::rt
