//===- Machine.h - the state of the fake device ----------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_FAKECUDA_MACHINE_H
#define LOWTIDE_RUNTIME_DEVICES_FAKECUDA_MACHINE_H

#include "runtime/devices/Cpu/MachineCode.h"
#include "runtime/devices/Cpu/ThreadPool.h"
#include "runtime/devices/FakeCuda/BlockRunner.h"
#include "runtime/devices/FakeCuda/FakeCuda.h"

#include <chrono>
#include <deque>
#include <functional>
#include <memory>

namespace lowtide::rt::cuda::fake {

/// One piece of work: returns what went wrong, or nothing.
using Work = std::function<std::string()>;

struct Event {
  uint64_t recorded = 0, completed = 0; ///< tickets
  std::chrono::steady_clock::time_point time{};
  /// Recorded while capturing: after these nodes, as long as the capture goes on.
  bool captured = false;
  std::weak_ptr<struct Capture> capture;
  std::vector<uint32_t> after;
};

/// A captured graph: nodes in the order of capture, each after others.
struct Graph {
  struct Node {
    Work work;
    std::vector<uint32_t> after;
  };
  std::vector<Node> nodes;
};

struct Capture {
  struct Stream *origin = nullptr;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::vector<struct Stream *> streams; ///< that take part
};

/// A graph under way.
struct RunningGraph {
  const Graph *graph = nullptr;
  std::vector<uint32_t> waitsFor, ready;
  std::vector<std::vector<uint32_t>> before;
  size_t left = 0;
};

struct Operation {
  enum class Kind { Work, Record, Wait, Graph } kind = Kind::Work;
  Work work;
  Event *event = nullptr;
  uint64_t ticket = 0;
  std::unique_ptr<RunningGraph> graph;
};

struct Stream {
  std::deque<Operation> queue;
  std::shared_ptr<Capture> capture;
  std::vector<uint32_t> last; ///< nodes that the next captured one comes after
};

struct Module {
  std::unique_ptr<MachineCode> code;
  std::vector<std::unique_ptr<struct Function>> functions;
};
struct Function {
  lt_gpu_kernel kernel = nullptr;
  std::string name;
};

class Machine {
public:
  static Machine &get();

  void configure(const Options &options);
  void schedule(uint64_t seed, unsigned threads);
  Report report() const;

  /// Counts a call; what it is to fail with, or CUDA_SUCCESS. After a failed piece of work everything fails.
  CUresult call(const char *name);
  /// Whether this call of a library's function is to fail.
  bool failsNow(const char *name);
  bool failsForMemory() const { return options_.failsForMemory; }
  const std::string &failure() const { return failure_; }

  // Memory. Addresses are those of the host.
  void *allocate(size_t bytes, bool pinned);
  bool release(void *address, bool pinned);
  /// Whether a range lies within one live allocation of the kind.
  bool holds(const void *address, size_t bytes, bool pinned) const;

  /// Handles of everything else, counted by kind, so that leaks have a name.
  template <typename T> T *make(const char *kind) {
    T *object = new T;
    live_[object] = kind;
    return object;
  }
  template <typename T> bool destroy(T *object) {
    if (!live_.erase(object))
      return false;
    delete object;
    return true;
  }
  bool isLive(const void *object) const { return live_.count(const_cast<void *>(object)) != 0; }

  /// Hands work to a stream, or to the graph that it is captured into.
  void enqueue(Stream &stream, Work work);
  void record(Stream &stream, Event &event);
  /// False when an event of another capture, or of one that has ended, is waited for.
  bool wait(Stream &stream, Event &event);
  void launch(Stream &stream, const Graph &graph);
  /// Does pieces of work until `stream` is empty, or until `most` are done; false when nothing can move.
  bool drive(Stream &stream, uint64_t most);
  /// Does everything that streams hold; drops it where something has gone wrong.
  void finish();

  std::vector<Stream *> &streams() { return streams_; }
  /// Runs a launch over all its blocks.
  std::string runKernel(const Function &function, const BlockLaunch &launch);
  ThreadPool &pool() { return *pool_; }
  Status start();
  bool started() const { return pool_ != nullptr; }
  int contexts = 0;

private:
  bool step();
  uint64_t pick(uint64_t count);

  Options options_;
  uint64_t random_ = 0;
  std::map<std::string, uint64_t> calls_;
  std::vector<std::string> trace_;
  std::string failure_;
  std::map<uintptr_t, size_t> memory_[2]; ///< device, pinned
  std::map<void *, const char *> live_;
  std::vector<Stream *> streams_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::unique_ptr<BlockRunner>> runners_;
};

} // namespace lowtide::rt::cuda::fake

#endif // LOWTIDE_RUNTIME_DEVICES_FAKECUDA_MACHINE_H
