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
  MappedFile(MappedFile &&other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile &operator=(MappedFile &&other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::span<const uint8_t> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char *>(bytes_.data()), bytes_.size()}; }

private:
  std::span<const uint8_t> bytes_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_MAPPEDFILE_H
