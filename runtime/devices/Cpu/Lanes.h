//===- Lanes.h - threads that copy while a step computes -------------------===//
//
// A thread for each stream of a plan but the first, which the caller of a step is. A stream does one thing after the
// other; where streams meet is said by events.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CPU_LANES_H
#define LOWTIDE_RUNTIME_DEVICES_CPU_LANES_H

#include "runtime/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace lowtide::rt {

/// Points of streams, each of which is recorded once in a run.
class Events {
public:
  explicit Events(unsigned count) : runs_(new std::atomic<uint32_t>[count]()) {}
  void record(uint32_t event, uint32_t run) {
    runs_[event].store(run, std::memory_order_release);
    runs_[event].notify_all();
  }
  bool isRecorded(uint32_t event, uint32_t run) const { return runs_[event].load(std::memory_order_acquire) == run; }
  void await(uint32_t event, uint32_t run) const {
    for (uint32_t seen; (seen = runs_[event].load(std::memory_order_acquire)) != run;)
      runs_[event].wait(seen, std::memory_order_acquire);
  }

private:
  std::unique_ptr<std::atomic<uint32_t>[]> runs_;
};

class Lanes {
public:
  /// Starts `count` threads.
  static Expected<std::unique_ptr<Lanes>> create(unsigned count);
  ~Lanes();
  Lanes(const Lanes &) = delete;
  Lanes &operator=(const Lanes &) = delete;

  /// Calls work(lane) on the thread of each of the first `count` lanes; `wait` returns when all are done. Neither
  /// allocates. `work` outlives the call of `wait`, and must not throw.
  template <typename Work> void start(unsigned count, Work &work) {
    begin(count, [](void *context, unsigned lane) { (*static_cast<Work *>(context))(lane); }, &work);
  }
  void wait();

private:
  using Call = void (*)(void *context, unsigned lane);

  Lanes() = default;
  void begin(unsigned count, Call call, void *context);
  void loop(unsigned lane);

  std::vector<std::thread> threads_;
  Call call_ = nullptr;
  void *context_ = nullptr;
  unsigned count_ = 0;
  bool stop_ = false;
  std::atomic<uint32_t> generation_ = 0, unfinished_ = 0;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_CPU_LANES_H
