//===- RunFolder.h - the folder that a run saves into ----------------------===//
//
// A folder belongs to one run, and one process at a time writes there. A checkpoint appears by one rename after
// everything in it was synced; whatever was whole before stays until it is one too many (`keep`) or is to be replaced
// by a run that has saved as much (`overwrite`).
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_RUNFOLDER_H
#define LOWTIDE_RUNTIME_CHECKPOINT_RUNFOLDER_H

#include "runtime/checkpoint/FolderListing.h"
#include "runtime/checkpoint/FolderLock.h"

#include <memory>

namespace lowtide::rt {

class RunFolder {
public:
  /// Makes the folder if there is none, locks it, and removes what killed writers left. `notes` gets what is worth
  /// knowing. The folder goes again with the object if it was made here and nothing was saved.
  static Expected<std::unique_ptr<RunFolder>> open(const std::string &folder, std::vector<std::string> &notes);
  ~RunFolder();

  /// Refuses (Usage) a folder in which another run has saved last. With `overwrite` that run's checkpoints go, as soon
  /// as the first of this one is whole.
  Status claim(const RunState &state, bool overwrite);
  /// Renames a damaged checkpoint of this folder to `<name>.corrupt`; returns its new path.
  Expected<std::string> setAside(const std::string &name);
  /// Saves the next step of `session`, names it in `latest`, and removes this run's oldest beyond `keep` (0 keeps all),
  /// never one that `latest` or `best` names. Returns the checkpoint's path. NonFinite if a parameter or state is not
  /// finite. A failure leaves every checkpoint that was there. Where the folder was renamed or removed since it was
  /// opened, a new one of its name is saved into, and `takeNote` says so; refused (Usage) if that is another run's.
  Expected<std::string> save(const Session &session, const RunState &state, unsigned keep);
  /// What is worth knowing of the last `save`; empty if nothing is.
  std::string takeNote() { return std::exchange(note_, {}); }
  /// Makes a pointer file (`latest`, `best`) name the checkpoint of a step.
  Status point(const char *pointer, int64_t step);

private:
  RunFolder(std::string folder, FolderLock lock) : folder_(std::move(folder)), lock_(std::move(lock)) {}
  std::string pathOf(const std::string &name) const { return folder_ + "/" + name; }
  void removeStale();
  Status openAgain(const RunState &state);
  Status write(const Session &session, const RunState &state, const std::string &temporary);
  /// Gives a whole checkpoint its name. Returns the new name of the sound one that had it; empty if there was none.
  Expected<std::string> publish(const std::string &temporary, const std::string &name);
  void remove(const std::string &name);
  void prune(const std::string &saved, unsigned keep);

  std::string folder_;
  bool made_ = false, saved_ = false;
  std::vector<std::string> overwritten_; ///< go when the first own checkpoint is whole
  std::string note_;
  std::optional<FolderLock> lock_;
};

/// One checkpoint in a folder that is locked for just as long; asks not whose the folder is.
Expected<std::string> saveCheckpoint(const Session &session, const RunState &state, const std::string &folder,
                                     unsigned keep = 0);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_RUNFOLDER_H
