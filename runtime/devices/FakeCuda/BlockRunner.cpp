//===- BlockRunner.cpp - the threads of a block as fibers ------------------===//

#include "runtime/devices/FakeCuda/BlockRunner.h"

#include "runtime/devices/FakeCuda/FiberSwitch.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace lowtide::rt::cuda::fake {
namespace {

thread_local BlockRunner *current = nullptr;

/// What a lane reads from one that is not there.
constexpr uint32_t absentLane = 0x7fc0dead; // a NaN as f32

} // namespace

BlockRunner::~BlockRunner() {
  if (stacks_)
    ::munmap(stacks_, maxThreads * stackBytes);
}

void BlockRunner::prepare(const BlockLaunch &launch, uint32_t block) {
  launch_ = launch;
  ended_ = 0;
  misuse_.clear();
  if (!stacks_) {
    // Only what is touched takes memory: a kernel without barriers runs all its threads on one stack.
    void *memory = ::mmap(nullptr, maxThreads * stackBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw std::bad_alloc();
    stacks_ = static_cast<uint8_t *>(memory);
  }
  // None at first; some are missing after a block that stopped.
  if (freeStacks_.size() != maxThreads) {
    freeStacks_.resize(maxThreads);
    for (uint32_t i = 0; i < maxThreads; ++i)
      freeStacks_[i] = maxThreads - 1 - i;
  }
  fibers_.resize(launch.threads);
  for (uint32_t thread = 0; thread < launch.threads; ++thread) {
    Fiber &fiber = fibers_[thread];
    fiber.started = false;
    fiber.state = State::Ready;
    fiber.runner = this;
    fiber.ids = {thread, block, launch.blocks, launch.threads, barrier, shuffle};
  }
  // The 64-byte boundary lies within the first eight words.
  size_t words = (launch.sharedBytes + 7) / 8 + 8;
  if (shared_.size() < words)
    shared_.resize(words);
  std::memset(shared_.data(), 0xFF, words * 8);
}

std::string BlockRunner::run(const BlockLaunch &launch, uint32_t block, ThreadOrder order) {
  prepare(launch, block);
  BlockRunner *outer = current;
  current = this;
  uint32_t count = warps();
  while (ended_ < launch_.threads && misuse_.empty()) {
    bool moved = false;
    if (order == ThreadOrder::Turns) {
      for (uint32_t warp = 0; warp < count; ++warp)
        moved |= runWarp(warp);
      for (uint32_t warp = 0; warp < count; ++warp)
        moved |= shuffleWarp(warp);
    } else {
      for (uint32_t i = 0; i < count; ++i) {
        uint32_t warp = order == ThreadOrder::FirstWarpAhead ? i : count - 1 - i;
        while (runWarp(warp) || shuffleWarp(warp))
          moved = true;
      }
    }
    // Released only when nothing else can move: nothing is nearer to the limit of what the program allows.
    if (!moved && !releaseBarrier())
      break;
  }
  current = outer;
  return ended_ == launch_.threads && misuse_.empty() ? std::string() : describeStop(block);
}

/// Runs the threads of a warp that can run; whether there were any.
bool BlockRunner::runWarp(uint32_t warp) {
  bool moved = false;
  uint32_t end = std::min(launch_.threads, (warp + 1) * warpSize);
  for (uint32_t thread = warp * warpSize; thread < end; ++thread)
    if (fibers_[thread].state == State::Ready) {
      resume(thread);
      moved = true;
    }
  return moved;
}

/// Completes the shuffle of a warp when all its threads that live have come to it.
bool BlockRunner::shuffleWarp(uint32_t warp) {
  uint32_t first = warp * warpSize, lanes = std::min(launch_.threads - first, warpSize);
  Fiber *fibers = &fibers_[first];
  const Fiber *any = nullptr;
  for (uint32_t lane = 0; lane < lanes && !any; ++lane)
    if (fibers[lane].state == State::AtShuffle)
      any = &fibers[lane];
  if (!any)
    return false;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const Fiber &fiber = fibers[lane];
    if (fiber.state == State::AtShuffle && fiber.mode != any->mode) {
      misuse_ = "threads of a warp meet in different shuffles";
      return false;
    }
    if (fiber.state != State::AtShuffle && fiber.state != State::Ended)
      return false;
  }
  uint32_t values[warpSize];
  bool there[warpSize] = {};
  for (uint32_t lane = 0; lane < lanes; ++lane)
    values[lane] = fibers[lane].value, there[lane] = fibers[lane].state == State::AtShuffle;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    Fiber &fiber = fibers[lane];
    if (!there[lane])
      continue;
    // A lane that does not exist gives the own value (PTX ISA, shfl.sync); one that has ended gives nonsense.
    int64_t own = lane, operand = fiber.operand;
    int64_t source = fiber.mode == 0   ? static_cast<int64_t>(lane ^ fiber.operand)
                     : fiber.mode == 1 ? own + operand
                     : fiber.mode == 2 ? own - operand
                                       : operand;
    if (source < 0 || source >= warpSize)
      source = own;
    fiber.value = source < lanes && there[source] ? values[source] : absentLane;
    fiber.state = State::Ready;
  }
  return true;
}

/// Lets everybody go on when all threads that live wait at the barrier.
bool BlockRunner::releaseBarrier() {
  uint32_t waiting = 0;
  for (const Fiber &fiber : fibers_)
    waiting += fiber.state == State::AtBarrier;
  if (waiting == 0 || waiting + ended_ != launch_.threads)
    return false;
  for (Fiber &fiber : fibers_)
    if (fiber.state == State::AtBarrier)
      fiber.state = State::Ready;
  return true;
}

std::string BlockRunner::describeStop(uint32_t block) const {
  uint32_t counts[5] = {};
  for (const Fiber &fiber : fibers_)
    ++counts[static_cast<int>(fiber.state)];
  std::string why = misuse_.empty() ? "a barrier or a shuffle lies in divergent code" : misuse_;
  return "block " + std::to_string(block) + " stands still: of " + std::to_string(launch_.threads) + " threads " +
         std::to_string(counts[static_cast<int>(State::AtBarrier)]) + " wait at a barrier, " +
         std::to_string(counts[static_cast<int>(State::AtShuffle)]) + " at a shuffle, " + std::to_string(ended_) +
         " have ended: " + why;
}

void BlockRunner::resume(uint32_t thread) {
  Fiber &fiber = fibers_[thread];
  if (!fiber.started) {
    fiber.started = true;
    fiber.stack = freeStacks_.back();
    freeStacks_.pop_back();
    fiber.context = newFiber(stacks_ + (fiber.stack + 1) * stackBytes, enter);
  }
  fiber.state = State::Running;
  running_ = thread;
  lowtide_fiber_switch(&scheduler_, fiber.context);
}

void BlockRunner::leave(State state) {
  Fiber &fiber = fibers_[running_];
  fiber.state = state;
  lowtide_fiber_switch(&fiber.context, scheduler_);
}

void BlockRunner::enter() {
  BlockRunner &runner = *current;
  Fiber &fiber = runner.fibers_[runner.running_];
  auto aligned = (reinterpret_cast<uintptr_t>(runner.shared_.data()) + 63) & ~uintptr_t(63);
  runner.launch_.kernel(runner.launch_.arguments, &fiber.ids, reinterpret_cast<void *>(aligned));
  ++runner.ended_;
  runner.freeStacks_.push_back(fiber.stack);
  runner.leave(State::Ended);
  __builtin_unreachable();
}

void BlockRunner::barrier(lt_gpu_thread *self) { reinterpret_cast<Fiber *>(self)->runner->leave(State::AtBarrier); }

uint32_t BlockRunner::shuffle(lt_gpu_thread *self, uint32_t value, uint32_t mode, uint32_t operand) {
  auto &fiber = *reinterpret_cast<Fiber *>(self);
  fiber.value = value, fiber.mode = mode, fiber.operand = operand;
  fiber.runner->leave(State::AtShuffle);
  return fiber.value;
}

} // namespace lowtide::rt::cuda::fake
