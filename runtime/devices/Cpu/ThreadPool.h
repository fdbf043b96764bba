//===- ThreadPool.h - threads that share numbered tasks, by a fixed rule ---===//
//
// Task i of n goes to thread ⌊i · threads / n⌋: neighbours stay together, nothing is claimed at run time. What a task computes
// never depends on where it runs.
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

  /// Calls work(task, thread) for every task in [0, tasks), and returns when all are done. Allocates nothing. One caller at a
  /// time; `work` must not throw.
  template <typename Work> void run(int64_t tasks, Work &&work) {
    if (tasks <= 1 || threads_ == 1) {
      for (int64_t task = 0; task < tasks; ++task)
        work(task, 0u);
      return;
    }
    auto call = [](void *context, int64_t begin, int64_t end, unsigned thread) {
      for (int64_t task = begin; task < end; ++task)
        (*static_cast<std::remove_reference_t<Work> *>(context))(task, thread);
    };
    runShared(tasks, call, &work);
  }

private:
  using Range = void (*)(void *context, int64_t begin, int64_t end, unsigned thread);

  explicit ThreadPool(unsigned threads) : threads_(threads) {}
  void runShared(int64_t tasks, Range range, void *context);
  void share(unsigned thread);
  void loop(unsigned thread);

  unsigned threads_;
  std::vector<std::thread> workers_;
  // One job at a time: written before `generation_` is raised, read after it was seen.
  int64_t tasks_ = 0;
  Range range_ = nullptr;
  void *context_ = nullptr;
  bool stop_ = false;
  alignas(64) std::atomic<uint32_t> generation_ = 0;
  alignas(64) std::atomic<uint32_t> running_ = 0;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_CPU_THREADPOOL_H
