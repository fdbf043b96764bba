//===- MappedFile.h - a regular file, mapped read-only ---------------------===//
#ifndef LOWTIDE_RUNTIME_MAPPEDFILE_H
#define LOWTIDE_RUNTIME_MAPPEDFILE_H

#include "runtime/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace lowtide::rt {

/// Owns a private, read-only mapping of a whole regular file. Pipes, devices and directories are refused.
class MappedFile {
public:
  MappedFile() = default;
  static Expected<MappedFile> open(const std::string &path);
  ~MappedFile();
  MappedFile(MappedFile &&other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), watch_(std::exchange(other.watch_, nullptr)) {}
  MappedFile &operator=(MappedFile &&other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(watch_, other.watch_);
    return *this;
  }

  std::span<const uint8_t> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char *>(bytes_.data()), bytes_.size()}; }

  /// Takes pages that lie within `part` of the bytes out of memory; they come back when they are read.
  void leave(std::span<const uint8_t> part) const;

  /// From now on, bytes of a mapped file that are no longer there (somebody has shortened it, its disk fails) read as
  /// zeros instead of ending the process by SIGBUS. For programs: it takes over the signal.
  static void surviveLostBytes();
  /// Whether every byte that was read was there.
  bool isWhole() const;
  /// Path of a file that is mapped now and not whole; empty: there is none.
  static std::string firstNotWhole();

private:
  struct Watch;
  std::span<const uint8_t> bytes_;
  Watch *watch_ = nullptr; ///< what a signal handler may read of the mapping
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_MAPPEDFILE_H
