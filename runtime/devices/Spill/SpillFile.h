//===- SpillFile.h - the memory space that is a file -----------------------===//
//
// A file without a name: the system takes it away when the run ends, however it ends. Past the page cache where the
// file system can; where it cannot, pages are written and dropped at once, so that no memory holds them unseen.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_SPILL_SPILLFILE_H
#define LOWTIDE_RUNTIME_DEVICES_SPILL_SPILLFILE_H

#include "runtime/Status.h"
#include "runtime/devices/Device.h"
#include "runtime/devices/Spill/FileQueue.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace lowtide::rt {

class SpillFile {
public:
  /// Makes a file of `bytes` in a folder (empty: the system's for temporary files), with room for all of it. `staging`:
  /// two halves (FileStaging.h) that outlive the object.
  static Expected<std::unique_ptr<SpillFile>>
  create(const std::string &folder, uint64_t bytes, std::span<uint8_t> staging, FileTraffic traffic = FileTraffic::Any);
  ~SpillFile();
  SpillFile(const SpillFile &) = delete;
  SpillFile &operator=(const SpillFile &) = delete;

  /// Copies bytes to the file, or from it; `offset` is a multiple of fileAlignment. One write and one read may be under
  /// way at once.
  Status write(uint64_t offset, const uint8_t *from, uint64_t bytes);
  Status read(uint64_t offset, uint8_t *to, uint64_t bytes);
  /// The same where something else moves bytes between their place and the memory that is staged for it, as much as
  /// that at most.
  Status writeStaged(uint64_t offset, uint64_t bytes);
  Status readStaged(uint64_t offset, uint64_t bytes);
  std::span<uint8_t> stagedForWriting() const { return slotsOf(writing_); }
  std::span<uint8_t> stagedForReading() const { return slotsOf(reading_); }
  /// Fills a range with 0xFF: what is read before it is written shows.
  Status poison(uint64_t offset, uint64_t bytes);

  /// Addresses at which the host sees a range that outlives the steps, until the object goes. There is memory only for
  /// what it has brought; touching other bytes ends the process.
  Expected<uint8_t *> map(uint64_t offset, uint64_t bytes);
  /// Reads the pages that hold a range, if it lies in a view (Device::bring). Not while a copy is under way.
  Status bring(const uint8_t *begin, uint64_t bytes, HostAccess access);
  /// Writes what may be changed of what was brought together with a range, and gives its memory back; the same of all.
  Status leave(const uint8_t *begin, uint64_t bytes);
  Status leaveAll();

  /// Whether something of it is memory that the host sees.
  bool hasWindows() const { return !windows_.empty(); }

  uint64_t bytes() const { return bytes_; }
  /// What moves bytes: "io_uring" or "threads".
  const char *way() const { return writing_.queue->name(); }
  /// "space file: 1073741824 bytes in /tmp, past the page cache, by io_uring".
  std::string describe() const;
  /// A sentence for the user where the file takes memory of the machine, as in a tmpfs; else empty.
  std::string warnOfMemory() const;

private:
  SpillFile(int file, std::string folder, uint64_t bytes, bool isDirect)
      : file_(file), folder_(std::move(folder)), bytes_(bytes), isDirect_(isDirect) {}

  /// One way of copies. They go through the slots of its half of the staging memory, some of which are under way while
  /// others are filled or emptied.
  struct Lane {
    std::mutex using_;
    std::span<uint8_t> half;
    std::unique_ptr<FileQueue> queue;
  };
  /// The pages of its half that are one slot.
  static uint64_t countSlotBytes(const Lane &lane);
  /// All slots of its half, one after the other.
  static std::span<uint8_t> slotsOf(const Lane &lane);
  /// Reads into `memory` the rest of the page on which a write of so many bytes ends: what follows stays as it is.
  Status keepRest(Lane &lane, uint64_t offset, std::span<uint8_t> memory, unsigned slot);
  /// Moves bytes in pieces. before(memory, done, slot): fills a slot's memory with those from `done` on that are to be
  /// written; after(memory, done): takes what was read. Both return a Status.
  template <typename Before, typename After>
  Status pass(Lane &lane, uint64_t offset, uint64_t bytes, bool isWrite, Before &&before, After &&after);
  Status finish(FileQueue &queue, unsigned slot, const FileQueue::Transfer &transfer);
  void drop(uint64_t offset, uint64_t bytes, bool isWritten);

  Status fail(const std::string &what) const;

  struct View {
    uint8_t *address;
    size_t bytes;
    uint64_t offset; ///< in the file
  };
  /// Pages of a view that are in memory, from the first to before the last.
  struct Window {
    View view;
    uint64_t first, end;
    bool mayBeChanged;
  };
  /// Makes memory of a window, for bytes from `from` to before `to`.
  Status open(const Window &window, uint64_t from, uint64_t to, bool isOverwritten);
  Status readWindow(const Window &window, uint64_t first, uint64_t end);
  Status close(const Window &window);

  std::vector<View> views_;
  std::vector<Window> windows_;
  int file_;
  std::string folder_;
  uint64_t bytes_;
  bool isDirect_;
  bool isMemory_ = false; ///< the file system holds its files in memory
  Lane writing_, reading_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_SPILL_SPILLFILE_H
