//===- ThreadPool.cpp - threads that share numbered tasks ------------------===//

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
    // A thread that runs must not be lost because the list of threads cannot grow.
    pool->workers_.reserve(threads);
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

/// Runs what is left of job `job`: first the thread's own stretch, then the others'.
void ThreadPool::work(uint64_t job, unsigned thread) {
  Call call = call_.load(std::memory_order_relaxed);
  void *context = context_.load(std::memory_order_relaxed);
  uint32_t done = 0;
  for (unsigned i = 0; i < threads_; ++i) {
    Stretch &stretch = stretches_[(thread + i) % threads_];
    uint64_t left = stretch.left.load(std::memory_order_acquire);
    while (left >> taskBits == job && (left & taskMask)) {
      // Success proves that the job is not over, so that call, context and end are its own.
      if (!stretch.left.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel, std::memory_order_acquire))
        continue;
      call(context, static_cast<int64_t>(stretch.end.load(std::memory_order_relaxed) - (left & taskMask)), thread);
      ++done;
      left = stretch.left.load(std::memory_order_acquire);
    }
  }
  if (done && unfinished_.fetch_sub(done, std::memory_order_acq_rel) == done)
    unfinished_.notify_one();
}

void ThreadPool::runShared(int64_t tasks, Call call, void *context) {
  uint64_t job = (generation_.load(std::memory_order_relaxed) + 1) & ((1u << (64 - taskBits)) - 1);
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  unfinished_.store(static_cast<uint32_t>(tasks), std::memory_order_relaxed);
  for (unsigned thread = 0; thread < threads_; ++thread) {
    auto begin = static_cast<uint64_t>(tasks * thread / threads_),
         end = static_cast<uint64_t>(tasks * (thread + 1) / threads_);
    stretches_[thread].end.store(end, std::memory_order_relaxed);
    stretches_[thread].left.store(job << taskBits | (end - begin), std::memory_order_release);
  }
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  work(job, 0);
  for (uint32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;)
    awaitChange(unfinished_, left);
}

void ThreadPool::loop(unsigned thread) {
  for (uint32_t seen = 0;;) {
    awaitChange(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stop_)
      return;
    work(seen & ((1u << (64 - taskBits)) - 1), thread);
  }
}

} // namespace lowtide::rt
