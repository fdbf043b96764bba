//===- FileQueue.h - transfers between memory and a file, some at once -----===//
//
// io_uring where this runtime was built with liburing and the kernel lets a process use it; else threads that call
// pread and pwrite.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_SPILL_FILEQUEUE_H
#define LOWTIDE_RUNTIME_DEVICES_SPILL_FILEQUEUE_H

#include "runtime/Status.h"

#include <cstdint>
#include <memory>
#include <string_view>

namespace lowtide::rt {

enum class FileTraffic { Any, Ring, Threads };

/// "auto", "io_uring" or "threads"; fails with Usage for other words.
Expected<FileTraffic> findFileTraffic(std::string_view name);

/// Of one thread at a time.
class FileQueue {
public:
  /// Transfers that may be under way at once: one in each slot.
  static constexpr unsigned slots = 4;
  /// What `finish` says of a file that ends before all bytes were read; errors of the system are above 0.
  static constexpr int endOfFile = -1;

  struct Transfer {
    uint64_t offset;
    uint8_t *memory; ///< may go when the transfer is finished
    uint64_t bytes;
    bool isWrite;
  };

  /// A queue for an open file, which outlives it. `Any`: io_uring, or threads where it cannot be used; `Ring` fails
  /// there, with words.
  static Expected<std::unique_ptr<FileQueue>> create(int file, FileTraffic traffic);
  virtual ~FileQueue() = default;

  /// Begins a transfer in a slot that has none under way. Allocates nothing.
  virtual void start(unsigned slot, const Transfer &transfer) = 0;
  /// Waits until all bytes of the slot's transfer are moved, however many the system takes at once: 0, or what was
  /// wrong, endOfFile or errno.
  virtual int finish(unsigned slot) = 0;
  /// "io_uring".
  virtual const char *name() const = 0;
};

/// What is left of a transfer after the system has moved `moved` bytes.
inline FileQueue::Transfer restOf(const FileQueue::Transfer &transfer, uint64_t moved) {
  return {transfer.offset + moved, transfer.memory + moved, transfer.bytes - moved, transfer.isWrite};
}

/// io_uring alone (FileRing.cpp); fails with Unsupported where it cannot be used.
Expected<std::unique_ptr<FileQueue>> createFileRing(int file);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_SPILL_FILEQUEUE_H
