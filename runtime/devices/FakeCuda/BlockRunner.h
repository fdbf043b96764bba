//===- BlockRunner.h - the threads of a block as fibers --------------------===//
//
// Runs one block of an emulated kernel. Each thread is a fiber that runs until it waits at a barrier or a shuffle, or
// ends. Two orders are offered, because each shows mistakes that the other hides:
//
//  - turns: every thread runs to its next synchronization before any goes on;
//  - ahead: one warp runs as far ahead of the others as barriers allow (a missing barrier between a read and the write
//    that follows it shows only here).
//
// Shared memory holds NaN patterns when a block starts, so that a read before the write shows in either.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_FAKECUDA_BLOCKRUNNER_H
#define LOWTIDE_RUNTIME_DEVICES_FAKECUDA_BLOCKRUNNER_H

#include "runtime/devices/FakeCuda/EmulatedThread.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lowtide::rt::cuda::fake {

enum class ThreadOrder { Turns, FirstWarpAhead, LastWarpAhead };

struct BlockLaunch {
  lt_gpu_kernel kernel = nullptr;
  void *const *arguments = nullptr;
  uint32_t blocks = 1, threads = 1, sharedBytes = 0;
};

/// One per host thread: keeps the stacks from block to block.
class BlockRunner {
public:
  BlockRunner() = default;
  ~BlockRunner();
  BlockRunner(const BlockRunner &) = delete;
  BlockRunner &operator=(const BlockRunner &) = delete;

  /// Runs all threads of block `block`; says what went wrong with synchronization, or nothing.
  std::string run(const BlockLaunch &launch, uint32_t block, ThreadOrder order);

private:
  static constexpr uint32_t warpSize = 32, maxThreads = 1024;
  static constexpr size_t stackBytes = size_t(64) << 10;
  enum class State : uint8_t { Ready, Running, AtBarrier, AtShuffle, Ended };

  struct Fiber {
    lt_gpu_thread ids; ///< first: kernels hand its address back
    BlockRunner *runner = nullptr;
    void *context = nullptr;
    uint32_t stack = 0;
    bool started = false;
    State state = State::Ready;
    uint32_t value = 0, mode = 0, operand = 0; ///< of a shuffle
  };

  static void enter();
  static void barrier(lt_gpu_thread *self);
  static uint32_t shuffle(lt_gpu_thread *self, uint32_t value, uint32_t mode, uint32_t operand);
  void prepare(const BlockLaunch &launch, uint32_t block);
  void resume(uint32_t thread);
  void leave(State state);
  bool runWarp(uint32_t warp);
  bool shuffleWarp(uint32_t warp);
  bool releaseBarrier();
  std::string describeStop(uint32_t block) const;
  uint32_t warps() const { return (launch_.threads + warpSize - 1) / warpSize; }

  BlockLaunch launch_;
  uint8_t *stacks_ = nullptr;
  std::vector<uint32_t> freeStacks_;
  std::vector<Fiber> fibers_;
  std::vector<uint64_t> shared_;
  void *scheduler_ = nullptr;
  uint32_t running_ = 0, ended_ = 0;
  std::string misuse_;
};

} // namespace lowtide::rt::cuda::fake

#endif // LOWTIDE_RUNTIME_DEVICES_FAKECUDA_BLOCKRUNNER_H
