//===- BatchesAhead.h - batches that are prepared while steps run ----------===//
#ifndef LOWTIDE_RUNTIME_DATA_BATCHESAHEAD_H
#define LOWTIDE_RUNTIME_DATA_BATCHESAHEAD_H

#include "runtime/Status.h"
#include "runtime/data/Feeder.h"

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace lowtide::rt {

/// Two slots in the host's memory, outside the plan: while a step runs on what was copied from one, threads fill the
/// other for the step after it. Which rows a batch holds is a function of its step alone, so that neither the number of
/// threads nor their pace can change one.
class BatchesAhead {
public:
  /// Writes a share of the batch of a step into a slot. Called by several threads at a time, never twice for one share.
  using Fill = std::function<Status(int64_t step, uint8_t *slot, Share share)>;
  struct Options {
    uint64_t slotBytes = 0; ///< of one batch
    unsigned threads = 1;   ///< each writes a share of every batch
    int64_t first = 0;      ///< the first step
    int64_t end = INT64_MAX;
    std::function<void()> interrupt = {}; ///< ends a `fill` that waits for a source; may be empty
  };
  /// Starts the threads. Fails where the machine gives no memory or no thread.
  static Expected<std::unique_ptr<BatchesAhead>> create(Fill fill, Options options);
  /// Ends the threads.
  ~BatchesAhead();
  BatchesAhead(const BatchesAhead &) = delete;
  BatchesAhead &operator=(const BatchesAhead &) = delete;

  /// Waits until the batch of the next step is whole; `givesUp` is asked about twenty times a second, and ends the
  /// wait. Returns whether it is whole, or has failed.
  bool await(const std::function<bool()> &givesUp = {});
  /// The slot with the batch of the next step, after `await`; fails as filling it did.
  Expected<const uint8_t *> current();
  /// Hands the slot back: its batch was copied. The next step is the one after it.
  void release();

  /// Seconds that `await` has waited so far.
  double secondsWaited() const { return secondsWaited_; }
  uint64_t bytes() const { return slots_.size() * options_.slotBytes; }

private:
  struct Slot {
    std::vector<uint8_t> bytes;
    int64_t step = 0;
    unsigned claimed = 0, written = 0; ///< shares
    Status status;
  };

  BatchesAhead(Fill fill, Options options) : fill_(std::move(fill)), options_(std::move(options)) {}
  void work();
  /// A slot of which a share is to be written, the earliest step first; null: none. Under the mutex.
  Slot *findWork();
  Slot &slotOf(int64_t step) { return slots_[static_cast<size_t>(step % static_cast<int64_t>(slots_.size()))]; }
  void stop();

  Fill fill_;
  Options options_;
  std::array<Slot, 2> slots_;
  int64_t next_ = 0; ///< the step whose batch is waited for, or copied
  bool stopped_ = false;
  double secondsWaited_ = 0;
  std::mutex mutex_;
  std::condition_variable toWrite_, isWhole_;
  std::vector<std::thread> threads_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DATA_BATCHESAHEAD_H
