//===- OutputFile.h - a file that is written once and synced ---------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_OUTPUTFILE_H
#define LOWTIDE_RUNTIME_CHECKPOINT_OUTPUTFILE_H

#include "runtime/Status.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace lowtide::rt {

/// Owns a descriptor for writing. `close` syncs; without it, what was written may be lost.
class OutputFile {
public:
  /// Creates or truncates.
  static Expected<OutputFile> create(const std::string &path);
  ~OutputFile();
  OutputFile(OutputFile &&other) noexcept : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}
  OutputFile &operator=(OutputFile &&) = delete;

  Status write(const void *data, size_t bytes);
  Status close();

private:
  OutputFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  std::string path_;
  int file_ = -1;
};

/// What `errno` says of a file that was to be created, or that its folder is missing.
Status cannotCreate(const std::string &path);
/// Writes a small file and syncs it.
Status writeFile(const std::string &path, std::string_view content);
/// Writes a file under another name, syncs it and renames it; errors name `path`. What was there stays where it fails.
Status replaceFile(const std::string &path, std::string_view content);
/// Refuses a path where no file could be created now: the folder is missing or not to be written, or it is a folder.
Status checkWritable(const std::string &path);
/// Makes the names in a directory durable.
Status syncDirectory(const std::string &path);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_OUTPUTFILE_H
