//===- SpillFile.h - the memory space that is a file -----------------------===//
//
// A file without a name: the system takes it away when the run ends, however it ends. Past the page cache where the
// file system can; where it cannot, pages are written and dropped at once, so that no memory holds them unseen.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CPU_SPILLFILE_H
#define LOWTIDE_RUNTIME_DEVICES_CPU_SPILLFILE_H

#include "runtime/Status.h"

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
  static Expected<std::unique_ptr<SpillFile>> create(const std::string &folder, uint64_t bytes,
                                                     std::span<uint8_t> staging);
  ~SpillFile();
  SpillFile(const SpillFile &) = delete;
  SpillFile &operator=(const SpillFile &) = delete;

  /// Copies bytes to the file, or from it; `offset` is a multiple of fileAlignment. One write and one read may be under
  /// way at once.
  Status write(uint64_t offset, const uint8_t *from, uint64_t bytes);
  Status read(uint64_t offset, uint8_t *to, uint64_t bytes);
  /// Fills a range with 0xFF: what is read before it is written shows.
  Status poison(uint64_t offset, uint64_t bytes);

  /// The host's view of a range that outlives the steps, until the object goes: what copies wrote is seen there, and
  /// what the host writes there is what they read. Not while a copy is under way.
  Expected<uint8_t *> map(uint64_t offset, uint64_t bytes);
  /// Writes what the host has changed in its views, and takes their pages out of memory: all, or those that hold a
  /// range, if it lies in a view.
  Status flush();
  Status flush(const uint8_t *begin, uint64_t bytes);

  uint64_t bytes() const { return bytes_; }
  /// "space file: 1073741824 bytes in /tmp, past the page cache".
  std::string describe() const;

private:
  SpillFile(int file, std::string folder, uint64_t bytes, std::span<uint8_t> staging, bool isDirect)
      : file_(file), folder_(std::move(folder)), bytes_(bytes), staging_(staging), isDirect_(isDirect) {}
  std::span<uint8_t> half(unsigned number) const {
    return staging_.subspan(number * staging_.size() / 2, staging_.size() / 2);
  }
  Status transfer(uint64_t offset, std::span<uint8_t> bytes, bool isWrite);
  void drop(uint64_t offset, uint64_t bytes, bool isWritten);

  Status fail(const std::string &what) const;

  struct View {
    uint8_t *address;
    size_t bytes;
    uint64_t offset; ///< in the file
  };
  std::vector<View> views_;
  int file_;
  std::string folder_;
  uint64_t bytes_;
  std::span<uint8_t> staging_;
  bool isDirect_;
  /// Of the halves: the first is for what is written.
  std::mutex writing_, reading_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_CPU_SPILLFILE_H
