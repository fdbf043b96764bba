//===- FolderLock.h - one writer in a folder of checkpoints ----------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_FOLDERLOCK_H
#define LOWTIDE_RUNTIME_CHECKPOINT_FOLDERLOCK_H

#include "runtime/Status.h"

#include <string>
#include <utility>

namespace lowtide::rt {

/// Holds `<folder>/.lock`, which names the process that writes there. The system lets go of it when the process ends,
/// however it ends; the file goes with the object.
class FolderLock {
public:
  /// Usage, naming the holder, if another writer has it; Io if the folder takes no file. A file system without locks is
  /// no failure: `note` then says so.
  static Expected<FolderLock> take(const std::string &folder, std::string &note);
  ~FolderLock();
  /// Whether the path still leads to the file that is held: the folder may have been renamed or removed.
  bool isInPlace() const;
  FolderLock(FolderLock &&other) noexcept : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}
  FolderLock &operator=(FolderLock &&) = delete;

private:
  FolderLock(std::string path, int file) : path_(std::move(path)), file_(file) {}
  std::string path_;
  int file_ = -1;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_FOLDERLOCK_H
