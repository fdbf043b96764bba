//===- Checkpoint.h - a training run on disk -------------------------------===//
//
// A checkpoint is a directory `<folder>/step-<number>` that appears by one rename after everything in it was synced:
// params.safetensors (framework names, original layout), optimizer.safetensors, state.json, MANIFEST.json (sizes,
// SHA-256).
// `<folder>/latest` names the one that was written last. A run that resumes continues with the same bits. Who writes
// there is RunFolder's matter; here they are read, and nothing on disk is ever changed.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define LOWTIDE_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/RunState.h"

#include <string>
#include <vector>

namespace lowtide::rt {

struct LoadedCheckpoint {
  std::string path;
  RunState state;
  /// Names of damaged ones in the folder that were passed over.
  std::vector<std::string> damaged;
  /// What was passed over, and what is worth knowing.
  std::vector<std::string> notes;
};

/// Loads the checkpoint that `latest` names under `folder`, else the last written one of its run; or `folder` itself if
/// it is one, or what it names as a file `latest` or `best`. One that is damaged or not finite is passed over (an error
/// with `strict`); anything else that stands against one is an error with that reason, and so is it when none is left,
/// with the reason of each. The session is unchanged then.
Expected<LoadedCheckpoint> loadCheckpoint(Session &session, const std::string &folder, bool strict);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_CHECKPOINT_H
