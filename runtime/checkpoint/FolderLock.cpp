//===- FolderLock.cpp - one writer in a folder of checkpoints --------------===//

#include "runtime/checkpoint/FolderLock.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lowtide::rt {
namespace {

/// "process 4711 on box since 2026-11-25 12:00:00 UTC".
std::string ownName() {
  char host[256] = "this machine", when[64] = "";
  (void)::gethostname(host, sizeof host - 1);
  const std::time_t now = std::time(nullptr);
  struct tm utc;
  if (::gmtime_r(&now, &utc))
    std::strftime(when, sizeof when, " since %Y-%m-%d %H:%M:%S UTC", &utc);
  return "process " + std::to_string(::getpid()) + " on " + host + when;
}

std::string holderOf(int file) {
  char text[128];
  const ssize_t size = ::pread(file, text, sizeof text, 0);
  std::string name(text, size > 0 ? static_cast<size_t>(size) : 0);
  name = printable(name.substr(0, name.find('\n')));
  return name.empty() ? "another process" : name;
}

} // namespace

Expected<FolderLock> FolderLock::take(const std::string &folder, std::string &note) {
  const std::string path = folder + "/.lock";
  for (;;) {
    FolderLock lock(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (lock.file_ < 0)
      return ioError(std::string("cannot write there: ") + std::strerror(errno), folder);
    if (::flock(lock.file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR)
        continue;
      if (errno == EWOULDBLOCK) {
        std::string holder = holderOf(lock.file_);
        ::close(std::exchange(lock.file_, -1)); // the file is the holder's
        return Status(StatusCode::Usage,
                      holder + " saves its run there: wait until it ends, or give this run another folder", folder);
      }
      note = folder + ": this file system has no locks (" + std::strerror(errno) +
             "): nothing keeps a second run from saving there";
      return lock;
    }
    // Who held it before may have removed the file since it was opened.
    if (!lock.isInPlace()) {
      ::close(std::exchange(lock.file_, -1));
      continue;
    }
    // A full disk leaves the holder without a name, no more.
    const std::string name = ownName() + "\n";
    if (::ftruncate(lock.file_, 0) != 0 || ::pwrite(lock.file_, name.data(), name.size(), 0) < 0)
      (void)::ftruncate(lock.file_, 0);
    return lock;
  }
}

bool FolderLock::isInPlace() const {
  struct stat held, named;
  return ::fstat(file_, &held) == 0 && ::stat(path_.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

FolderLock::~FolderLock() {
  if (file_ < 0)
    return;
  if (isInPlace())           // of a folder that was renamed since, the path may be another run's
    ::unlink(path_.c_str()); // before it is let go: who waits for it finds another file there, and looks again
  ::close(file_);
}

} // namespace lowtide::rt
