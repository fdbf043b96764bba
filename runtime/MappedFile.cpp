//===- MappedFile.cpp - a regular file, mapped read-only -------------------===//

#include "runtime/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lowtide::rt {

Expected<MappedFile> MappedFile::open(const std::string &path) {
  // O_NONBLOCK: a pipe must not hang the open; what it is gets decided on the descriptor.
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return ioError(std::string("cannot open: ") + std::strerror(errno), path);
  struct stat info;
  Status status;
  MappedFile mapped;
  if (::fstat(file, &info) != 0) {
    status = ioError(std::string("cannot examine: ") + std::strerror(errno), path);
  } else if (!S_ISREG(info.st_mode)) {
    status = badInput("not a regular file", path);
  } else if (info.st_size > 0) {
    size_t size = static_cast<size_t>(info.st_size);
    void *address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (address == MAP_FAILED)
      status = ioError(std::string("cannot map: ") + std::strerror(errno), path);
    else
      mapped.bytes_ = {static_cast<const uint8_t *>(address), size};
  }
  ::close(file);
  if (!status.isOk())
    return status;
  return mapped;
}

MappedFile::~MappedFile() {
  if (bytes_.data())
    ::munmap(const_cast<uint8_t *>(bytes_.data()), bytes_.size());
}

} // namespace lowtide::rt
