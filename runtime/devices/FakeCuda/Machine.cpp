//===- Machine.cpp - the state of the fake device --------------------------===//

#include "runtime/devices/FakeCuda/Machine.h"

#include "runtime/RandomInit.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace lowtide::rt::cuda::fake {
namespace {

/// Bytes after each allocation that nothing may write; checked when it is released.
constexpr size_t fenceBytes = 256;
constexpr int fencePattern = 0xA5;

} // namespace

Machine &Machine::get() {
  static Machine machine;
  return machine;
}

void Machine::configure(const Options &options) {
  options_ = options;
  random_ = 0;
  calls_.clear();
  trace_.clear();
  failure_.clear();
  pool_.reset();
  runners_.clear();
}

void Machine::schedule(uint64_t seed, unsigned threads) {
  options_.seed = seed;
  random_ = 0;
  if (threads == options_.threads)
    return;
  options_.threads = threads;
  pool_.reset();
  runners_.clear();
}

Status Machine::start() {
  if (pool_)
    return Status::ok();
  unsigned threads = options_.threads ? options_.threads : std::max(1u, std::thread::hardware_concurrency());
  Expected<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
  if (!pool)
    return pool.takeStatus();
  pool_ = std::move(*pool);
  while (runners_.size() < threads)
    runners_.push_back(std::make_unique<BlockRunner>());
  return Status::ok();
}

Report Machine::report() const {
  Report report;
  report.calls = calls_;
  report.trace = trace_;
  for (int pinned = 0; pinned < 2; ++pinned)
    for (const auto &[address, bytes] : memory_[pinned]) {
      report.live.push_back(std::to_string(bytes) + " bytes of " + (pinned ? "pinned host" : "device") + " memory");
      (pinned ? report.pinned : report.device).push_back(bytes);
    }
  for (const auto &[object, kind] : live_)
    report.live.push_back(kind);
  if (contexts)
    report.live.push_back("primary context");
  return report;
}

bool Machine::failsNow(const char *name) {
  uint64_t count = ++calls_[name];
  if (options_.trace)
    trace_.push_back(name);
  return options_.failAt == count && options_.failCall == name;
}

CUresult Machine::call(const char *name) {
  if (failsNow(name)) {
    bool allocates = std::strcmp(name, "cuMemAlloc") == 0 || std::strcmp(name, "cuMemHostAlloc") == 0;
    return allocates || failsForMemory() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
  }
  return failure_.empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

void *Machine::allocate(size_t bytes, bool pinned) {
  // Pinned memory is whole pages.
  const size_t rounded = (bytes + 255) / 256 * 256 + fenceBytes, alignment = pinned ? 4096 : 512;
  void *address = std::aligned_alloc(alignment, (rounded + alignment - 1) / alignment * alignment);
  if (!address)
    return nullptr;
  // What was not written holds nonsense, as on a device.
  std::memset(address, 0xFF, bytes);
  std::memset(static_cast<uint8_t *>(address) + bytes, fencePattern, fenceBytes);
  memory_[pinned][reinterpret_cast<uintptr_t>(address)] = bytes;
  return address;
}

bool Machine::release(void *address, bool pinned) {
  auto it = memory_[pinned].find(reinterpret_cast<uintptr_t>(address));
  if (it == memory_[pinned].end())
    return false;
  const auto *fence = static_cast<const uint8_t *>(address) + it->second;
  bool whole = std::all_of(fence, fence + fenceBytes, [](uint8_t byte) { return byte == fencePattern; });
  if (!whole && failure_.empty())
    failure_ = "something was written past the end of an allocation of " + std::to_string(it->second) + " bytes";
  memory_[pinned].erase(it);
  std::free(address);
  return whole;
}

bool Machine::holds(const void *address, size_t bytes, bool pinned) const {
  auto at = reinterpret_cast<uintptr_t>(address);
  auto it = memory_[pinned].upper_bound(at);
  if (it == memory_[pinned].begin())
    return false;
  --it;
  return at - it->first <= it->second && bytes <= it->second - (at - it->first);
}

void Machine::enqueue(Stream &stream, Work work) {
  if (stream.capture) {
    Graph &graph = *stream.capture->graph;
    graph.nodes.push_back({std::move(work), stream.last});
    stream.last = {static_cast<uint32_t>(graph.nodes.size() - 1)};
    return;
  }
  Operation operation;
  operation.work = std::move(work);
  stream.queue.push_back(std::move(operation));
}

void Machine::record(Stream &stream, Event &event) {
  event.captured = stream.capture != nullptr;
  event.capture = stream.capture;
  if (stream.capture) {
    event.after = stream.last;
    return;
  }
  Operation operation;
  operation.kind = Operation::Kind::Record;
  operation.event = &event;
  operation.ticket = ++event.recorded;
  stream.queue.push_back(std::move(operation));
}

bool Machine::wait(Stream &stream, Event &event) {
  if (event.captured) {
    std::shared_ptr<Capture> capture = event.capture.lock();
    if (!capture || (stream.capture && stream.capture != capture))
      return false;
    if (!stream.capture) {
      // The stream joins the capture.
      stream.capture = capture;
      stream.last.clear();
      capture->streams.push_back(&stream);
    }
    for (uint32_t node : event.after)
      if (std::find(stream.last.begin(), stream.last.end(), node) == stream.last.end())
        stream.last.push_back(node);
    return true;
  }
  if (stream.capture)
    return false;
  Operation operation;
  operation.kind = Operation::Kind::Wait;
  operation.event = &event;
  operation.ticket = event.recorded;
  stream.queue.push_back(std::move(operation));
  return true;
}

void Machine::launch(Stream &stream, const Graph &graph) {
  Operation operation;
  operation.kind = Operation::Kind::Graph;
  operation.graph = std::make_unique<RunningGraph>();
  RunningGraph &running = *operation.graph;
  running.graph = &graph;
  running.left = graph.nodes.size();
  running.before.resize(graph.nodes.size());
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    running.waitsFor.push_back(static_cast<uint32_t>(graph.nodes[i].after.size()));
    if (graph.nodes[i].after.empty())
      running.ready.push_back(i);
    for (uint32_t other : graph.nodes[i].after)
      running.before[other].push_back(i);
  }
  stream.queue.push_back(std::move(operation));
}

uint64_t Machine::pick(uint64_t count) {
  return options_.seed && count > 1 ? counterRandom(options_.seed, random_++) % count : 0;
}

/// Does one piece of work of a stream that can go on; false when none can.
bool Machine::step() {
  std::vector<Stream *> able;
  for (Stream *stream : streams_) {
    if (stream->queue.empty())
      continue;
    const Operation &head = stream->queue.front();
    if (head.kind != Operation::Kind::Wait || head.event->completed >= head.ticket)
      able.push_back(stream);
  }
  if (able.empty() || !failure_.empty())
    return false;
  Stream &stream = *able[pick(able.size())];
  Operation &head = stream.queue.front();
  switch (head.kind) {
  case Operation::Kind::Work:
    failure_ = head.work();
    break;
  case Operation::Kind::Record:
    head.event->completed = std::max(head.event->completed, head.ticket);
    head.event->time = std::chrono::steady_clock::now();
    break;
  case Operation::Kind::Wait:
    break;
  case Operation::Kind::Graph: {
    RunningGraph &running = *head.graph;
    if (running.left) {
      // In program order without a seed: the smallest node that is ready.
      auto chosen = options_.seed ? running.ready.begin() + static_cast<ptrdiff_t>(pick(running.ready.size()))
                                  : std::min_element(running.ready.begin(), running.ready.end());
      uint32_t node = *chosen;
      running.ready.erase(chosen);
      failure_ = running.graph->nodes[node].work();
      for (uint32_t next : running.before[node])
        if (--running.waitsFor[next] == 0)
          running.ready.push_back(next);
      --running.left;
    }
    if (running.left)
      return true;
    break;
  }
  }
  stream.queue.pop_front();
  return true;
}

bool Machine::drive(Stream &stream, uint64_t most) {
  for (uint64_t i = 0; i < most && !stream.queue.empty(); ++i)
    if (!step()) {
      if (failure_.empty())
        failure_ = "streams wait for events that nothing records";
      return false;
    }
  return true;
}

void Machine::finish() {
  while (step()) {
  }
  for (Stream *stream : streams_)
    stream->queue.clear();
}

std::string Machine::runKernel(const Function &function, const BlockLaunch &launch) {
  uint64_t seed = options_.seed;
  ThreadOrder order = seed % 2 == 0   ? ThreadOrder::Turns
                      : seed % 4 == 1 ? ThreadOrder::FirstWarpAhead
                                      : ThreadOrder::LastWarpAhead;
  // Few blocks per task where they are large, many where they are small.
  int64_t perTask = std::clamp<int64_t>(4096 / launch.threads, 1, 64);
  int64_t tasks = (launch.blocks + perTask - 1) / perTask;
  std::atomic<bool> failed = false;
  std::string failure;
  std::mutex mutex;
  pool_->run(tasks, [&](int64_t task, unsigned thread) {
    int64_t end = std::min<int64_t>(launch.blocks, (task + 1) * perTask);
    for (int64_t i = task * perTask; i < end && !failed.load(std::memory_order_relaxed); ++i) {
      // No block may count on another: with a seed they come in the opposite order.
      auto block = static_cast<uint32_t>(seed ? launch.blocks - 1 - i : i);
      std::string said = runners_[thread]->run(launch, block, order);
      if (said.empty())
        continue;
      std::lock_guard lock(mutex);
      if (!failed.exchange(true))
        failure = "kernel '" + function.name + "', " + said;
    }
  });
  return failure;
}

} // namespace lowtide::rt::cuda::fake
