//===- ThreadPool.h - threads that share numbered tasks --------------------===//
//
// Tasks are fixed by the caller: what a task computes never depends on the thread that runs it, nor on their number.
// Each thread starts with its own stretch of neighbouring tasks, the same in every run (so that caches stay warm from
// job to job), and helps the others when it is done: a thread that the system has put aside holds up no other.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CPU_THREADPOOL_H
#define LOWTIDE_RUNTIME_DEVICES_CPU_THREADPOOL_H

#include "runtime/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace lowtide::rt {

class ThreadPool {
public:
  /// Starts `threads` − 1 threads; the caller of `run` is the remaining one.
  static Expected<std::unique_ptr<ThreadPool>> create(unsigned threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  unsigned threads() const { return threads_; }

  /// Calls work(task, thread) for every task in [0, tasks), and returns when all are done. Allocates nothing. One
  /// caller at a time; `work` must not throw.
  template <typename Work> void run(int64_t tasks, Work &&work) {
    if (tasks <= 1 || threads_ == 1 || tasks > INT32_MAX) {
      for (int64_t task = 0; task < tasks; ++task)
        work(task, 0u);
      return;
    }
    auto call = [](void *context, int64_t task, unsigned thread) {
      (*static_cast<std::remove_reference_t<Work> *>(context))(task, thread);
    };
    runShared(tasks, call, &work);
  }

private:
  using Call = void (*)(void *context, int64_t task, unsigned thread);

  /// A stretch of tasks. `left` holds the job's number above the number of unclaimed tasks: a claim for a job that is
  /// over, or of which nothing is left, fails by this word alone. `end` may be read only by who has claimed.
  struct alignas(64) Stretch {
    std::atomic<uint64_t> left = 0;
    std::atomic<uint64_t> end = 0;
  };
  static constexpr unsigned taskBits = 40;
  static constexpr uint64_t taskMask = (uint64_t(1) << taskBits) - 1;

  explicit ThreadPool(unsigned threads) : threads_(threads), stretches_(new Stretch[threads]) {}
  void runShared(int64_t tasks, Call call, void *context);
  void work(uint64_t job, unsigned thread);
  void loop(unsigned thread);

  unsigned threads_;
  std::unique_ptr<Stretch[]> stretches_;
  std::vector<std::thread> workers_;
  // The job. A thread that is late may read these while the next job is written; its claims then fail.
  std::atomic<Call> call_ = nullptr;
  std::atomic<void *> context_ = nullptr;
  std::atomic<bool> stop_ = false;
  alignas(64) std::atomic<uint32_t> generation_ = 0;
  alignas(64) std::atomic<uint32_t> unfinished_ = 0;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_CPU_THREADPOOL_H
