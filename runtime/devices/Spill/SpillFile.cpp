//===- SpillFile.cpp - the memory space that is a file ---------------------===//

#include "runtime/devices/Spill/SpillFile.h"

#include "runtime/FileStaging.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
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
  const std::string where = problem ? "the folder for temporary files (of TMPDIR, TMP, TEMP or TEMPDIR, else /tmp)"
                                    : "spill folder '" + printable(folder) + "'";
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
    if (struct rlimit most; error == EFBIG && ::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < spill->bytes_)
      has = "; this process may write files of " + std::to_string(most.rlim_cur) + " bytes (ulimit -f)";
    else if (struct statvfs system; ::fstatvfs(file, &system) == 0)
      has = "; it has " + std::to_string(uint64_t(system.f_bavail) * system.f_frsize) + " free";
    return Status(error == ENOSPC || error == EFBIG ? StatusCode::OverBudget : StatusCode::Io,
                  "has no room for the " + std::to_string(spill->bytes_) +
                      " bytes in which values wait: " + std::strerror(error) + has + advice,
                  where);
  }
  struct statfs system;
  spill->isMemory_ = ::fstatfs(file, &system) == 0 && (static_cast<uint32_t>(system.f_type) == TMPFS_MAGIC ||
                                                       static_cast<uint32_t>(system.f_type) == RAMFS_MAGIC);
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
  // Shared: memory that is private counts against a limit of a process's data, although there is none.
  bytes = alignToFile(bytes);
  void *address = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return fail("has no addresses for " + std::to_string(bytes) + " bytes of its file: " + std::strerror(errno));
  views_.push_back({static_cast<uint8_t *>(address), bytes, offset});
  return views_.back().address;
}

Status SpillFile::readWindow(const Window &window, uint64_t first, uint64_t end) {
  return read(window.view.offset + first, window.view.address + first, end - first);
}

Status SpillFile::open(const Window &window, uint64_t from, uint64_t to, bool isOverwritten) {
  const uint64_t bytes = window.end - window.first;
  if (::mprotect(window.view.address + window.first, bytes, PROT_READ | PROT_WRITE) != 0)
    return fail("has no memory for " + std::to_string(bytes) + " bytes of its file: " + std::strerror(errno));
  if (!isOverwritten)
    return readWindow(window, window.first, window.end);
  // What shares the first and the last page with it.
  if (from != window.first)
    LOWTIDE_TRY(readWindow(window, window.first, window.first + fileAlignment));
  return to != window.end ? readWindow(window, window.end - fileAlignment, window.end) : Status::ok();
}

Status SpillFile::bring(const uint8_t *begin, uint64_t bytes, HostAccess access) {
  for (const View &view : views_) {
    if (begin < view.address || begin >= view.address + view.bytes || !bytes)
      continue;
    const auto from = static_cast<uint64_t>(begin - view.address);
    const uint64_t to = std::min<uint64_t>(from + bytes, view.bytes);
    const bool mayBeChanged = access != HostAccess::Read;
    Window window = {view, from / fileAlignment * fileAlignment, alignToFile(to), mayBeChanged};
    std::vector<Window> shared;
    for (Window &open : windows_) {
      if (open.view.address != view.address || open.end <= window.first || window.end <= open.first)
        continue;
      if (open.first <= window.first && window.end <= open.end) {
        open.mayBeChanged |= mayBeChanged;
        return Status::ok();
      }
      shared.push_back(open);
    }
    // A part of it is there: that is written, and all of both is read.
    for (const Window &open : shared) {
      window = {view, std::min(window.first, open.first), std::max(window.end, open.end),
                window.mayBeChanged || open.mayBeChanged};
      LOWTIDE_TRY(leave(view.address + open.first, open.end - open.first));
    }
    Status opened = open(window, from, to, access == HostAccess::Overwrite && shared.empty());
    if (!opened.isOk()) {
      window.mayBeChanged = false; // nothing of it may reach the file
      (void)close(window);
      return opened;
    }
    windows_.push_back(window);
    return Status::ok();
  }
  return Status::ok();
}

Status SpillFile::close(const Window &window) {
  uint8_t *address = window.view.address + window.first;
  const uint64_t bytes = window.end - window.first;
  Status written = window.mayBeChanged ? write(window.view.offset + window.first, address, bytes) : Status::ok();
  (void)::madvise(address, bytes, MADV_REMOVE);
  (void)::mprotect(address, bytes, PROT_NONE);
  return written;
}

Status SpillFile::leave(const uint8_t *begin, uint64_t bytes) {
  Status status;
  std::erase_if(windows_, [&](const Window &window) {
    const uint8_t *first = window.view.address + window.first, *end = window.view.address + window.end;
    if (begin + bytes <= first || end <= begin)
      return false;
    Status closed = close(window);
    if (status.isOk())
      status = std::move(closed);
    return true;
  });
  return status;
}

Status SpillFile::leaveAll() {
  Status status;
  for (const Window &window : windows_) {
    Status closed = close(window);
    if (status.isOk())
      status = std::move(closed);
  }
  windows_.clear();
  return status;
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

uint64_t SpillFile::countSlotBytes(const Lane &lane) {
  const uint64_t pages = lane.half.size() / fileAlignment;
  return pages / std::min<uint64_t>(FileQueue::slots, pages) * fileAlignment;
}

std::span<uint8_t> SpillFile::slotsOf(const Lane &lane) {
  const uint64_t bytes = countSlotBytes(lane);
  return lane.half.first(std::min<uint64_t>(FileQueue::slots, lane.half.size() / bytes) * bytes);
}

template <typename Before, typename After>
Status SpillFile::pass(Lane &lane, uint64_t offset, uint64_t bytes, bool isWrite, Before &&before, After &&after) {
  const std::lock_guard<std::mutex> lock(lane.using_);
  const uint64_t slotBytes = countSlotBytes(lane), slots = slotsOf(lane).size() / slotBytes,
                 pieces = (bytes + slotBytes - 1) / slotBytes;
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

Status SpillFile::keepRest(Lane &lane, uint64_t offset, std::span<uint8_t> memory, unsigned slot) {
  const uint64_t tail = memory.size() / fileAlignment * fileAlignment;
  if (tail == memory.size())
    return Status::ok();
  std::array<uint8_t, fileAlignment> begun;
  std::memcpy(begun.data(), memory.data() + tail, memory.size() - tail);
  const FileQueue::Transfer page = {offset + tail, memory.data() + tail, fileAlignment, /*isWrite=*/false};
  lane.queue->start(slot, page);
  LOWTIDE_TRY(finish(*lane.queue, slot, page));
  std::memcpy(memory.data() + tail, begun.data(), memory.size() - tail);
  return Status::ok();
}

Status SpillFile::write(uint64_t offset, const uint8_t *from, uint64_t bytes) {
  auto fill = [&](std::span<uint8_t> memory, uint64_t done, unsigned slot) -> Status {
    std::memcpy(memory.data(), from + done, memory.size());
    return keepRest(writing_, offset + done, memory, slot);
  };
  return pass(writing_, offset, bytes, /*isWrite=*/true, fill, nothing);
}

Status SpillFile::writeStaged(uint64_t offset, uint64_t bytes) {
  auto keep = [&](std::span<uint8_t> memory, uint64_t done, unsigned slot) {
    return keepRest(writing_, offset + done, memory, slot);
  };
  return pass(writing_, offset, bytes, /*isWrite=*/true, keep, nothing);
}

Status SpillFile::readStaged(uint64_t offset, uint64_t bytes) {
  return pass(reading_, offset, bytes, /*isWrite=*/false, nothing, nothing);
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
         (isMemory_   ? ", which is memory, by "
          : isDirect_ ? ", past the page cache, by "
                      : ", through the page cache, which is emptied at once, by ") +
         way();
}

std::string SpillFile::warnOfMemory() const {
  return isMemory_ ? "spill folder '" + printable(folder_) + "' lies in memory (tmpfs): what waits there takes " +
                         std::to_string(bytes_) + " bytes of the machine's; --spill=FOLDER names one on a disk"
                   : std::string();
}

} // namespace lowtide::rt
