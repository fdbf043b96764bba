//===- MappedFile.cpp - a regular file, mapped read-only -------------------===//

#include "runtime/MappedFile.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lowtide::rt {

/// Watches stay in their list for good and are used again: a signal handler walks the list at any time.
struct MappedFile::Watch {
  std::atomic<uintptr_t> begin = 0, end = 0; ///< whole pages; 0: of no mapping
  std::atomic<bool> isWhole = true;
  std::string path; ///< under the mutex
  Watch *next = nullptr;

  static std::atomic<Watch *> first;
  static std::mutex mutex;

  static Watch *start(const void *address, size_t bytes, const std::string &path);
  static void onLostBytes(int signal, siginfo_t *info, void *);
};

std::atomic<MappedFile::Watch *> MappedFile::Watch::first = nullptr;
std::mutex MappedFile::Watch::mutex;

static uintptr_t pageBytes() {
  static const uintptr_t bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

MappedFile::Watch *MappedFile::Watch::start(const void *address, size_t bytes, const std::string &path) {
  std::lock_guard lock(mutex);
  Watch *free = first;
  while (free && free->begin)
    free = free->next;
  if (!free) {
    free = new Watch;
    free->next = first;
    first = free;
  }
  free->path = path;
  free->isWhole = true;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  free->end = (begin + bytes + pageBytes() - 1) / pageBytes() * pageBytes();
  free->begin = begin;
  return free;
}

void MappedFile::Watch::onLostBytes(int signal, siginfo_t *info, void *) {
  const int saved = errno;
  const uintptr_t at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Watch *watch = first; watch; watch = watch->next) {
    const uintptr_t begin = watch->begin, end = watch->end;
    if (!begin || at < begin || at >= end)
      continue;
    const uintptr_t page = at / pageBytes() * pageBytes();
    if (::mmap(reinterpret_cast<void *>(page), end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
      break;
    watch->isWhole = false;
    errno = saved;
    return;
  }
  std::signal(signal, SIG_DFL); // not ours: the access is tried again, and ends the process
  errno = saved;
}

void MappedFile::surviveLostBytes() {
  (void)pageBytes(); // not for the first time in a signal handler
  struct sigaction action = {};
  action.sa_sigaction = Watch::onLostBytes;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void MappedFile::leave(std::span<const uint8_t> part) const {
  const auto begin = (reinterpret_cast<uintptr_t>(part.data()) + pageBytes() - 1) / pageBytes() * pageBytes(),
             end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / pageBytes() * pageBytes();
  if (!bytes_.empty() && part.data() >= bytes_.data() && part.data() < bytes_.data() + bytes_.size() && begin < end)
    (void)::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

bool MappedFile::isWhole() const { return !watch_ || watch_->isWhole; }

std::string MappedFile::firstNotWhole() {
  for (Watch *watch = Watch::first; watch; watch = watch->next)
    if (watch->begin && !watch->isWhole) {
      std::lock_guard lock(Watch::mutex);
      return watch->path;
    }
  return {};
}

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
      mapped.bytes_ = {static_cast<const uint8_t *>(address), size}, mapped.watch_ = Watch::start(address, size, path);
  }
  ::close(file);
  if (!status.isOk())
    return status;
  return mapped;
}

MappedFile::~MappedFile() {
  if (watch_)
    watch_->begin = 0;
  if (bytes_.data())
    ::munmap(const_cast<uint8_t *>(bytes_.data()), bytes_.size());
}

} // namespace lowtide::rt
