//===- FolderListing.h - the checkpoints in a folder -----------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_FOLDERLISTING_H
#define LOWTIDE_RUNTIME_CHECKPOINT_FOLDERLISTING_H

#include "runtime/checkpoint/RunState.h"

#include <string>
#include <vector>

namespace lowtide::rt {

/// Files in a folder of checkpoints that name one of them; none of those is ever pruned.
inline constexpr const char *latestPointer = "latest", *bestPointer = "best";

/// A directory `step-<number>`, or `step-<number>.replaced-<number>`: one that another of the same step has followed.
struct ListedCheckpoint {
  std::string name;
  int64_t step = 0; ///< of its name
  /// Nothing: its state.json says nothing that can be read.
  std::optional<StateFile> facts;
};

/// "step-00000120".
std::string stepName(int64_t step);
/// The checkpoints of a folder, whether sound or not, the last written first; none where there is no folder.
Expected<std::vector<ListedCheckpoint>> listCheckpoints(const std::string &folder);
/// The checkpoint that a pointer file names; empty if there is none of that name, which goes into `missing`.
std::string readPointer(const std::string &folder, const char *pointer, std::string *missing = nullptr);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_FOLDERLISTING_H
