//===- ExternalData.cpp - tensors kept beside the model
//----------------------------===//
//
// A model names the files that hold its weights. Whoever wrote the model may
// lie, so:
//  1. the name must be relative, free of `..` and of NUL;
//  2. the kernel resolves it beneath the model's folder without following any
//  link
//     (openat2; where the kernel lacks it, component by component);
//  3. what was opened must be a plain file with one link;
//  4. offset and length must fit the file before anything is allocated or read.
//
//===----------------------------------------------------------------------===//

#include "ExternalData.h"

#include "lowtide/OnnxModel/NodeNames.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace llvm;
using namespace lowtide;

/// Why `location` is no name for a file beside the model; empty if it is one.
static std::string findPathFault(StringRef location) {
  if (location.empty())
    return "is empty";
  if (location.contains('\0'))
    return "contains a zero byte";
  if (location.starts_with("/"))
    return "is an absolute path";
  if (location.size() > 4096)
    return "is longer than 4096 bytes";
  for (StringRef part : llvm::split(location, '/'))
    if (part == "..")
      return "leaves the model's folder";
  return "";
}

std::optional<ExternalRange> lowtide::parseExternalRange(const ::onnx::TensorProto &tensor, Report &report) {
  ExternalRange range;
  bool good = true, hasLocation = false;
  SmallVector<StringRef> seen;
  auto fail = [&](const Twine &message) {
    report.errorAt(FailureKind::BadInput, tensor.name(),
                   "external data of tensor " + quoteName(tensor.name()) + ": " + message);
    good = false;
  };
  for (const auto &entry : tensor.external_data()) {
    StringRef key = entry.key(), value = entry.value();
    if (llvm::is_contained(seen, key)) {
      fail("key " + quoteName(key) + " occurs twice");
      continue;
    }
    seen.push_back(key);
    if (key == "location") {
      hasLocation = true;
      range.location = value.str();
      if (std::string fault = findPathFault(value); !fault.empty())
        fail("location " + quoteName(value) + " " + fault);
    } else if (key == "offset" || key == "length") {
      uint64_t number;
      if (value.getAsInteger(10, number) || number > uint64_t(INT64_MAX))
        fail(key + " " + quoteName(value) + " is not a number of bytes");
      else if (key == "offset")
        range.offset = number;
      else
        range.length = number;
    } else if (key != "checksum") {
      fail("key " + quoteName(key) + " is unknown; known are location, offset, length, checksum");
    }
  }
  if (!hasLocation)
    fail("no location is given");
  if (!good)
    return std::nullopt;
  return range;
}

/// Opens `location` beneath `folder` and follows no link. Returns a descriptor
/// or -1 with errno.
static int openBeneath(int folder, const std::string &location) {
  struct open_how how = {};
  // Non-blocking: a pipe must not hang us before we see that it is one.
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long fd = syscall(SYS_openat2, folder, location.c_str(), &how, sizeof(how));
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
    return static_cast<int>(fd);
  int current = dup(folder);
  SmallVector<StringRef> parts;
  StringRef(location).split(parts, '/', -1, /*KeepEmpty=*/false);
  for (size_t i = 0; i != parts.size() && current >= 0; ++i) {
    if (parts[i] == ".")
      continue;
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    if (i + 1 != parts.size())
      flags |= O_DIRECTORY;
    int next = openat(current, parts[i].str().c_str(), flags);
    int error = errno;
    close(current);
    errno = error;
    current = next;
  }
  return current;
}

/// Opens the file of `range` and sees that it holds `bytes` bytes there. The caller closes the descriptor.
static FailureOr<int> openExternal(StringRef modelPath, StringRef tensor, const ExternalRange &range, uint64_t bytes,
                                   Report &report) {
  auto fail = [&](FailureKind kind, const Twine &message, const Twine &remedy = "") {
    report.errorAt(kind, tensor, "external data of tensor " + quoteName(tensor) + ": " + message, remedy);
    return failure();
  };
  std::string folderPath = sys::path::parent_path(modelPath).str();
  if (folderPath.empty())
    folderPath = ".";
  int folder = open(folderPath.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return fail(FailureKind::Io, "cannot open the model's folder: " + Twine(std::strerror(errno)));
  scope_exit closeFolder([&] { close(folder); });

  int fd = openBeneath(folder, range.location);
  if (fd < 0) {
    std::string file = quoteName(range.location);
    if (errno == ENOENT)
      return fail(FailureKind::Io, "file " + file + " is not beside the model",
                  "put it into the model's folder, or compile with --no-weights and start with random ones: "
                  "--init=random:<seed> of lowtide-run");
    if (errno == ELOOP || errno == EXDEV)
      return fail(FailureKind::BadInput, "file " + file + " is reached through a link; links are not followed");
    return fail(FailureKind::Io, "cannot open file " + file + ": " + std::strerror(errno));
  }
  scope_exit closeFile([&] { close(fd); });

  struct stat status;
  if (fstat(fd, &status) != 0)
    return fail(FailureKind::Io, "cannot examine " + quoteName(range.location) + ": " + std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    return fail(FailureKind::BadInput, quoteName(range.location) + " is not a plain file");
  if (status.st_nlink != 1)
    return fail(FailureKind::BadInput, quoteName(range.location) + " has " + Twine(status.st_nlink) +
                                           " hard links; a file with more than one may lie anywhere");
  uint64_t length = range.length.value_or(bytes);
  if (length != bytes)
    return fail(FailureKind::BadInput, Twine(length) + " bytes are stated where the shape needs " + Twine(bytes));
  uint64_t size = status.st_size;
  if (range.offset > size || bytes > size - range.offset)
    return fail(FailureKind::BadInput, "bytes " + Twine(range.offset) + " to " + Twine(range.offset) + "+" +
                                           Twine(bytes) + " are past the end of " + quoteName(range.location) +
                                           ", which has " + Twine(size) + " bytes");
  closeFile.release();
  return fd;
}

LogicalResult lowtide::checkExternal(StringRef modelPath, StringRef tensor, const ExternalRange &range, uint64_t bytes,
                                     Report &report) {
  FailureOr<int> fd = openExternal(modelPath, tensor, range, bytes, report);
  if (failed(fd))
    return failure();
  close(*fd);
  return success();
}

LogicalResult lowtide::streamExternal(StringRef modelPath, StringRef tensor, const ExternalRange &range, uint64_t bytes,
                                      Report &report, function_ref<void(ArrayRef<char>)> sink) {
  FailureOr<int> fd = openExternal(modelPath, tensor, range, bytes, report);
  if (failed(fd))
    return failure();
  scope_exit closeFile([&] { close(*fd); });
  std::vector<char> piece(std::min<uint64_t>(bytes, uint64_t(1) << 20));
  for (uint64_t done = 0; done != bytes;) {
    ssize_t got = pread(*fd, piece.data(), std::min<uint64_t>(piece.size(), bytes - done), range.offset + done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0) {
      report.errorAt(FailureKind::Io, tensor,
                     "external data of tensor " + quoteName(tensor) + ": reading " + quoteName(range.location) + ": " +
                         (got ? std::strerror(errno) : "the file became shorter"));
      return failure();
    }
    sink(ArrayRef<char>(piece.data(), got));
    done += got;
  }
  return success();
}
