//===- FileQueue.cpp - transfers between memory and a file, some at once ---===//

#include "runtime/devices/Spill/FileQueue.h"

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <unistd.h>

namespace lowtide::rt {
namespace {

/// Threads of a queue: as many as keep a disk at work while the caller copies from and to the slots.
constexpr unsigned queueThreads = 2;
/// They call nothing but pread and pwrite.
constexpr size_t stackBytes = size_t(1) << 17;

int transferAll(int file, FileQueue::Transfer rest) {
  while (rest.bytes) {
    const auto at = static_cast<off_t>(rest.offset);
    const ssize_t count =
        rest.isWrite ? ::pwrite(file, rest.memory, rest.bytes, at) : ::pread(file, rest.memory, rest.bytes, at);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count ? errno : FileQueue::endOfFile;
    rest = restOf(rest, static_cast<uint64_t>(count));
  }
  return 0;
}

class ThreadQueue final : public FileQueue {
public:
  explicit ThreadQueue(int file) : file_(file) {}
  ThreadQueue(const ThreadQueue &) = delete;
  ThreadQueue &operator=(const ThreadQueue &) = delete;

  ~ThreadQueue() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    begun_.notify_all();
    for (unsigned i = 0; i < threads_; ++i)
      ::pthread_join(ids_[i], nullptr);
  }

  Status startThreads() {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    (void)::pthread_attr_setstacksize(&attributes, stackBytes);
    int problem = 0;
    while (!problem && threads_ < queueThreads)
      if (problem = ::pthread_create(&ids_[threads_], &attributes, work, this); !problem)
        ++threads_;
    ::pthread_attr_destroy(&attributes);
    // One of them is enough.
    return threads_ ? Status::ok()
                    : Status(StatusCode::Io, std::string("cannot start a thread: ") + std::strerror(problem));
  }

  void start(unsigned slot, const Transfer &transfer) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      slots_[slot] = {transfer, ++started_, State::Waiting, 0};
    }
    begun_.notify_one();
  }

  int finish(unsigned slot) override {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [&] { return slots_[slot].state == State::Idle; });
    return slots_[slot].result;
  }

  const char *name() const override { return "threads"; }

private:
  enum class State { Idle, Waiting, Working };
  struct Slot {
    Transfer transfer = {};
    uint64_t number = 0; ///< first come, first served
    State state = State::Idle;
    int result = 0;
  };

  static void *work(void *queue) {
    static_cast<ThreadQueue *>(queue)->loop();
    return nullptr;
  }

  void loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      Slot *next = nullptr;
      begun_.wait(lock, [&] {
        for (Slot &slot : slots_)
          if (slot.state == State::Waiting && (!next || slot.number < next->number))
            next = &slot;
        return next || stop_;
      });
      if (!next)
        return;
      next->state = State::Working;
      lock.unlock();
      const int result = transferAll(file_, next->transfer);
      lock.lock();
      next->result = result;
      next->state = State::Idle;
      done_.notify_all();
    }
  }

  int file_;
  std::array<pthread_t, queueThreads> ids_ = {};
  unsigned threads_ = 0;
  std::mutex mutex_;
  std::condition_variable begun_, done_;
  std::array<Slot, slots> slots_;
  uint64_t started_ = 0;
  bool stop_ = false;
};

} // namespace

Expected<FileTraffic> findFileTraffic(std::string_view name) {
  if (name == "auto")
    return FileTraffic::Any;
  if (name == "io_uring")
    return FileTraffic::Ring;
  if (name == "threads")
    return FileTraffic::Threads;
  return Status(StatusCode::Usage, "'" + printable(name) + "' is no way to a file: auto, io_uring, threads");
}

Expected<std::unique_ptr<FileQueue>> FileQueue::create(int file, FileTraffic traffic) {
  if (traffic != FileTraffic::Threads) {
    Expected<std::unique_ptr<FileQueue>> ring = createFileRing(file);
    if (ring || traffic == FileTraffic::Ring)
      return ring;
  }
  auto queue = std::make_unique<ThreadQueue>(file);
  LOWTIDE_TRY(queue->startThreads());
  return std::unique_ptr<FileQueue>(std::move(queue));
}

} // namespace lowtide::rt
