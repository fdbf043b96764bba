//===- SpillFile.cpp - the memory space that is a file ---------------------===//

#include "runtime/devices/Cpu/SpillFile.h"

#include "runtime/FileStaging.h"

#include <array>
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
                                                       std::span<uint8_t> staging, FileTraffic traffic) {
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
  std::unique_ptr<SpillFile> spill(new SpillFile(file, folder, alignToFile(bytes), isDirect));
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
  for (Lane *lane : {&spill->writing_, &spill->reading_}) {
    lane->half = staging.subspan(lane == &spill->writing_ ? 0 : staging.size() / 2, staging.size() / 2);
    Expected<std::unique_ptr<FileQueue>> queue = FileQueue::create(file, traffic);
    if (!queue)
      return queue.takeStatus().at(where);
    lane->queue = std::move(*queue);
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

/// Of a copy whose other end is all there is to it.
static constexpr auto nothing = [](auto...) { return Status::ok(); };

Status SpillFile::finish(FileQueue &queue, unsigned slot, const FileQueue::Transfer &transfer) {
  const int problem = queue.finish(slot);
  if (!problem)
    return Status::ok();
  return fail(std::string(transfer.isWrite ? "writing" : "reading") + " " + std::to_string(transfer.bytes) +
              " bytes at " + std::to_string(transfer.offset) + " of the file in which values wait failed: " +
              (problem == FileQueue::endOfFile ? "it ends there" : std::strerror(problem)));
}

template <typename Before, typename After>
Status SpillFile::pass(Lane &lane, uint64_t offset, uint64_t bytes, bool isWrite, Before &&before, After &&after) {
  const std::lock_guard<std::mutex> lock(lane.using_);
  const uint64_t pages = lane.half.size() / fileAlignment, slots = std::min<uint64_t>(FileQueue::slots, pages),
                 slotBytes = pages / slots * fileAlignment, pieces = (bytes + slotBytes - 1) / slotBytes;
  std::array<FileQueue::Transfer, FileQueue::slots> underWay;
  Status status;
  uint64_t begun = 0, ended = 0;
  while (ended < begun || (begun < pieces && status.isOk())) {
    if (begun < pieces && begun - ended < slots && status.isOk()) {
      const uint64_t done = begun * slotBytes, part = std::min(slotBytes, bytes - done);
      const std::span<uint8_t> memory = lane.half.subspan(begun % slots * slotBytes, part);
      const auto slot = static_cast<unsigned>(begun % slots);
      if (status = before(memory, done, slot); !status.isOk())
        continue;
      underWay[slot] = {offset + done, memory.data(), alignToFile(part), isWrite};
      lane.queue->start(slot, underWay[slot]);
      ++begun;
      continue;
    }
    // The memory of what is under way is the file's, also after a failure.
    const auto slot = static_cast<unsigned>(ended % slots);
    const uint64_t done = ended * slotBytes, part = std::min(slotBytes, bytes - done);
    Status moved = finish(*lane.queue, slot, underWay[slot]);
    ++ended;
    if (moved.isOk()) {
      drop(offset + done, alignToFile(part), isWrite);
      moved = after(lane.half.subspan(slot * slotBytes, part), done);
    }
    if (status.isOk())
      status = std::move(moved);
  }
  return status;
}

Status SpillFile::write(uint64_t offset, const uint8_t *from, uint64_t bytes) {
  auto fill = [&](std::span<uint8_t> memory, uint64_t done, unsigned slot) -> Status {
    // What follows on the last page stays as it is.
    if (const uint64_t tail = memory.size() / fileAlignment * fileAlignment; tail != memory.size()) {
      const FileQueue::Transfer page = {offset + done + tail, memory.data() + tail, fileAlignment, /*isWrite=*/false};
      writing_.queue->start(slot, page);
      LOWTIDE_TRY(finish(*writing_.queue, slot, page));
    }
    std::memcpy(memory.data(), from + done, memory.size());
    return Status::ok();
  };
  return pass(writing_, offset, bytes, /*isWrite=*/true, fill, nothing);
}

Status SpillFile::read(uint64_t offset, uint8_t *to, uint64_t bytes) {
  auto take = [&](std::span<uint8_t> memory, uint64_t done) -> Status {
    std::memcpy(to + done, memory.data(), memory.size());
    return Status::ok();
  };
  return pass(reading_, offset, bytes, /*isWrite=*/false, nothing, take);
}

Status SpillFile::poison(uint64_t offset, uint64_t bytes) {
  auto fill = [](std::span<uint8_t> memory, uint64_t, unsigned) -> Status {
    std::memset(memory.data(), 0xFF, alignToFile(memory.size()));
    return Status::ok();
  };
  return pass(writing_, offset, bytes, /*isWrite=*/true, fill, nothing);
}

std::string SpillFile::describe() const {
  return "space file: " + std::to_string(bytes_) + " bytes in " + folder_ +
         (isDirect_ ? ", past the page cache, by " : ", through the page cache, which is emptied at once, by ") + way();
}

} // namespace lowtide::rt
