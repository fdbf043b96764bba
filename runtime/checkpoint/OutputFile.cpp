//===- OutputFile.cpp - a file that is written once and synced -------------===//

#include "runtime/checkpoint/OutputFile.h"
#include "runtime/SpecialFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace lowtide::rt {

static Status systemError(const char *what, const std::string &path) {
  return ioError(std::string(what) + ": " + std::strerror(errno), path);
}

Status cannotCreate(const std::string &path) {
  const std::string reason = std::strerror(errno), parent = std::filesystem::path(path).parent_path().string();
  std::error_code ignored;
  const bool isMissing = !parent.empty() && !std::filesystem::exists(parent, ignored);
  return ioError("cannot create: " + (isMissing ? "folder '" + printable(parent) + "' does not exist" : reason), path);
}

Expected<OutputFile> OutputFile::create(const std::string &path) {
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0)
    return cannotCreate(path);
  return OutputFile(path, file);
}

OutputFile::~OutputFile() {
  if (file_ >= 0)
    ::close(file_);
}

Status OutputFile::write(const void *data, size_t bytes) {
  const char *p = static_cast<const char *>(data);
  while (bytes) {
    ssize_t written = ::write(file_, p, bytes);
    if (written < 0 && errno != EINTR)
      return systemError("cannot write", path_);
    if (written > 0)
      p += written, bytes -= static_cast<size_t>(written);
  }
  return Status::ok();
}

Status OutputFile::close() {
  if (::fsync(file_) != 0 && errno != EINVAL) // a device has nothing to sync
    return systemError("cannot sync", path_);
  int file = std::exchange(file_, -1);
  return ::close(file) == 0 ? Status::ok() : systemError("cannot close", path_);
}

Status writeFile(const std::string &path, std::string_view content) {
  Expected<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.takeStatus();
  LOWTIDE_TRY(file->write(content.data(), content.size()));
  return file->close();
}

Status replaceFile(const std::string &path, std::string_view content) {
  if (isSpecialFile(path))
    return writeFile(path, content);
  const std::string temporary = path + ".tmp";
  std::string failure;
  if (const Status written = writeFile(temporary, content); !written.isOk())
    failure = written.message();
  else if (::rename(temporary.c_str(), path.c_str()) != 0)
    failure = std::string("cannot rename to its final name: ") + std::strerror(errno);
  if (failure.empty())
    return Status::ok();
  ::unlink(temporary.c_str());
  return ioError(failure, path);
}

Status checkWritable(const std::string &path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return ioError("cannot create: it is a folder", path);
  if (std::filesystem::exists(path, ignored) && ::access(path.c_str(), W_OK) == 0)
    return Status::ok();
  const std::string parent = std::filesystem::path(path).parent_path().string(), folder = parent.empty() ? "." : parent;
  if (!std::filesystem::is_directory(folder, ignored))
    return ioError("cannot create: folder '" + printable(folder) + "' does not exist", path);
  return ::access(folder.c_str(), W_OK) == 0 ? Status::ok() : systemError("cannot create", path);
}

Status syncDirectory(const std::string &path) {
  int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return systemError("cannot open the directory", path);
  int result = ::fsync(directory);
  ::close(directory);
  return result == 0 ? Status::ok() : systemError("cannot sync the directory", path);
}

} // namespace lowtide::rt
