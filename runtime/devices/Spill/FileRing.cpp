//===- FileRing.cpp - transfers between memory and a file by io_uring ------===//

#include "runtime/devices/Spill/FileQueue.h"

#ifdef LOWTIDE_HAVE_LIBURING

#include <array>
#include <cerrno>
#include <cstring>
#include <liburing.h>

namespace lowtide::rt {
namespace {

class Ring final : public FileQueue {
public:
  explicit Ring(int file) : file_(file) {}
  Ring(const Ring &) = delete;
  Ring &operator=(const Ring &) = delete;
  ~Ring() override {
    if (isOpen_)
      ::io_uring_queue_exit(&ring_);
  }

  /// 0 or -errno.
  int open() {
    const int problem = ::io_uring_queue_init(slots, &ring_, 0);
    isOpen_ = problem == 0;
    return problem;
  }

  void start(unsigned slot, const Transfer &transfer) override {
    slots_[slot] = {transfer, /*isUnderWay=*/true, 0};
    submit(slot);
  }

  int finish(unsigned slot) override {
    while (slots_[slot].isUnderWay) {
      const int waited = ::io_uring_submit_and_wait(&ring_, 1);
      if (waited < 0 && !isTemporary(-waited)) {
        slots_[slot].isUnderWay = false;
        slots_[slot].result = -waited;
      }
      std::array<io_uring_cqe *, slots> done;
      const unsigned count = ::io_uring_peek_batch_cqe(&ring_, done.data(), slots);
      for (unsigned i = 0; i < count; ++i) {
        const auto which = static_cast<unsigned>(::io_uring_cqe_get_data64(done[i]));
        const int result = done[i]->res;
        ::io_uring_cqe_seen(&ring_, done[i]);
        take(which, result);
      }
    }
    return slots_[slot].result;
  }

  const char *name() const override { return "io_uring"; }

private:
  struct Slot {
    Transfer transfer = {}; ///< what is left of it
    bool isUnderWay = false;
    int result = 0;
  };

  static bool isTemporary(int problem) { return problem == EINTR || problem == EAGAIN || problem == EBUSY; }

  /// What cannot be handed over now is by `finish`, which tries again: an entry has room for each slot.
  void submit(unsigned slot) {
    io_uring_sqe *entry = ::io_uring_get_sqe(&ring_);
    if (!entry) {
      slots_[slot].isUnderWay = false;
      slots_[slot].result = EBUSY;
      return;
    }
    const Transfer &rest = slots_[slot].transfer;
    const auto bytes = static_cast<unsigned>(std::min<uint64_t>(rest.bytes, uint64_t(1) << 30));
    if (rest.isWrite)
      ::io_uring_prep_write(entry, file_, rest.memory, bytes, rest.offset);
    else
      ::io_uring_prep_read(entry, file_, rest.memory, bytes, rest.offset);
    ::io_uring_sqe_set_data64(entry, slot);
    (void)::io_uring_submit(&ring_);
  }

  void take(unsigned slot, int moved) {
    Slot &at = slots_[slot];
    if (moved < 0 && isTemporary(-moved))
      return submit(slot);
    if (moved > 0) {
      at.transfer = restOf(at.transfer, static_cast<uint64_t>(moved));
      if (at.transfer.bytes)
        return submit(slot);
    }
    at.result = moved > 0 || !at.transfer.bytes ? 0 : moved ? -moved : endOfFile;
    at.isUnderWay = false;
  }

  int file_;
  io_uring ring_ = {};
  bool isOpen_ = false;
  std::array<Slot, slots> slots_;
};

} // namespace

Expected<std::unique_ptr<FileQueue>> createFileRing(int file) {
  auto ring = std::make_unique<Ring>(file);
  if (const int problem = ring->open())
    return Status(StatusCode::Unsupported,
                  std::string("the system has no io_uring for this process: ") + std::strerror(-problem));
  return std::unique_ptr<FileQueue>(std::move(ring));
}

} // namespace lowtide::rt

#else

namespace lowtide::rt {

Expected<std::unique_ptr<FileQueue>> createFileRing(int) {
  return Status(StatusCode::Unsupported, "this runtime was built without liburing");
}

} // namespace lowtide::rt

#endif // LOWTIDE_HAVE_LIBURING
