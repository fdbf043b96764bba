//===- SpillFile.cpp - the memory space that is a file ---------------------===//

#include "runtime/devices/Cpu/SpillFile.h"

#include "runtime/FileStaging.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace lowtide::rt {

namespace fs = std::filesystem;

/// A file that has no name, or loses it at once; -1 with errno.
static int openNameless(const std::string &folder, int flags) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
    return file;
  std::string path = folder + "/lowtide-spill-XXXXXX";
  const int named = ::mkostemp(path.data(), O_CLOEXEC | flags);
  if (named >= 0)
    ::unlink(path.c_str());
  return named;
}

Expected<std::unique_ptr<SpillFile>> SpillFile::create(const std::string &given, uint64_t bytes,
                                                       std::span<uint8_t> staging) {
  std::error_code problem;
  const std::string folder = given.empty() ? fs::temp_directory_path(problem).string() : given;
  const std::string where = "spill folder '" + printable(folder) + "'";
  const char *advice = "; --spill=FOLDER, or `spill` of lowtide_bind_options, names another one";
  if (problem)
    return ioError("is not there: " + problem.message() + advice, where);
  int file = openNameless(folder, O_DIRECT);
  const bool isDirect = file >= 0;
  if (!isDirect && errno == EINVAL)
    file = openNameless(folder, 0);
  if (file < 0)
    return ioError("takes no file: " + std::string(std::strerror(errno)) + advice, where);
  std::unique_ptr<SpillFile> spill(new SpillFile(file, folder, alignToFile(bytes), staging, isDirect));
  const int error = spill->bytes_ ? ::posix_fallocate(file, 0, static_cast<off_t>(spill->bytes_)) : 0;
  if (error) {
    std::string has;
    if (struct statvfs system; ::fstatvfs(file, &system) == 0)
      has = "; it has " + std::to_string(uint64_t(system.f_bavail) * system.f_frsize) + " free";
    return Status(error == ENOSPC || error == EFBIG ? StatusCode::OverBudget : StatusCode::Io,
                  "has no room for the " + std::to_string(spill->bytes_) +
                      " bytes in which values wait: " + std::strerror(error) + has + advice,
                  where);
  }
  return spill;
}

SpillFile::~SpillFile() {
  for (const View &view : views_)
    ::munmap(view.address, view.bytes);
  ::close(file_);
}

Status SpillFile::fail(const std::string &what) const {
  return ioError(what, "spill folder '" + printable(folder_) + "'");
}

Expected<uint8_t *> SpillFile::map(uint64_t offset, uint64_t bytes) {
  if (!bytes)
    return static_cast<uint8_t *>(nullptr);
  void *address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(offset));
  if (address == MAP_FAILED)
    return fail("cannot map " + std::to_string(bytes) + " bytes of its file: " + std::strerror(errno));
  views_.push_back({static_cast<uint8_t *>(address), bytes, offset});
  return views_.back().address;
}

Status SpillFile::flush(const uint8_t *begin, uint64_t bytes) {
  for (const View &view : views_) {
    if (begin < view.address || begin >= view.address + view.bytes)
      continue;
    const uint64_t first = static_cast<uint64_t>(begin - view.address) / fileAlignment * fileAlignment,
                   end =
                       std::min<uint64_t>(alignToFile(static_cast<uint64_t>(begin - view.address) + bytes), view.bytes);
    if (::msync(view.address + first, end - first, MS_SYNC) != 0)
      return fail(std::string("writing parameters and optimizer state to their file failed: ") + std::strerror(errno));
    (void)::madvise(view.address + first, end - first, MADV_DONTNEED);
    (void)::posix_fadvise(file_, static_cast<off_t>(view.offset + first), static_cast<off_t>(end - first),
                          POSIX_FADV_DONTNEED);
  }
  return Status::ok();
}

Status SpillFile::flush() {
  for (const View &view : views_)
    LOWTIDE_TRY(flush(view.address, view.bytes));
  return Status::ok();
}

/// All of the bytes, however many the system takes at once.
Status SpillFile::transfer(uint64_t offset, std::span<uint8_t> bytes, bool isWrite) {
  for (size_t done = 0; done < bytes.size();) {
    const auto at = static_cast<off_t>(offset + done);
    const ssize_t count = isWrite ? ::pwrite(file_, bytes.data() + done, bytes.size() - done, at)
                                  : ::pread(file_, bytes.data() + done, bytes.size() - done, at);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return fail(std::string(isWrite ? "writing" : "reading") + " " + std::to_string(bytes.size()) + " bytes at " +
                  std::to_string(offset) +
                  " of the file in which values wait failed: " + (count ? std::strerror(errno) : "it ends there"));
    done += static_cast<size_t>(count);
  }
  return Status::ok();
}

/// Takes pages out of the page cache where the file goes through it.
void SpillFile::drop(uint64_t offset, uint64_t bytes, bool isWritten) {
  if (isDirect_)
    return;
  const auto begin = static_cast<off_t>(offset), length = static_cast<off_t>(bytes);
  if (isWritten)
    (void)::sync_file_range(file_, begin, length,
                            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  (void)::posix_fadvise(file_, begin, length, POSIX_FADV_DONTNEED);
}

Status SpillFile::write(uint64_t offset, const uint8_t *from, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(writing_);
  const std::span<uint8_t> piece = half(0);
  for (uint64_t done = 0; done < bytes; done += piece.size()) {
    const uint64_t part = std::min<uint64_t>(piece.size(), bytes - done), whole = alignToFile(part);
    // What follows on the last page stays as it is.
    if (const uint64_t tail = part / fileAlignment * fileAlignment; tail != part)
      LOWTIDE_TRY(transfer(offset + done + tail, piece.subspan(tail, fileAlignment), /*isWrite=*/false));
    std::memcpy(piece.data(), from + done, part);
    LOWTIDE_TRY(transfer(offset + done, piece.first(whole), /*isWrite=*/true));
    drop(offset + done, whole, /*isWritten=*/true);
  }
  return Status::ok();
}

Status SpillFile::read(uint64_t offset, uint8_t *to, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(reading_);
  const std::span<uint8_t> piece = half(1);
  for (uint64_t done = 0; done < bytes; done += piece.size()) {
    const uint64_t part = std::min<uint64_t>(piece.size(), bytes - done), whole = alignToFile(part);
    LOWTIDE_TRY(transfer(offset + done, piece.first(whole), /*isWrite=*/false));
    drop(offset + done, whole, /*isWritten=*/false);
    std::memcpy(to + done, piece.data(), part);
  }
  return Status::ok();
}

Status SpillFile::poison(uint64_t offset, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(writing_);
  const std::span<uint8_t> piece = half(0);
  std::memset(piece.data(), 0xFF, piece.size());
  for (uint64_t done = 0; done < bytes; done += piece.size())
    LOWTIDE_TRY(transfer(offset + done, piece.first(alignToFile(std::min<uint64_t>(piece.size(), bytes - done))),
                         /*isWrite=*/true));
  return Status::ok();
}

std::string SpillFile::describe() const {
  return "space file: " + std::to_string(bytes_) + " bytes in " + folder_ +
         (isDirect_ ? ", past the page cache" : ", through the page cache, which is emptied at once");
}

} // namespace lowtide::rt
