//===- Checkpoint.h - a training run on disk -------------------------------===//
//
// A checkpoint is a directory `<dir>/step-<number>` that appears by one rename after everything in it was synced:
// params.safetensors (framework names, original layout), optimizer.safetensors, state.json, MANIFEST.json (sizes,
// SHA-256).
// `<dir>/latest` names the newest. A run that resumes continues with the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define LOWTIDE_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "runtime/Session.h"

#include <optional>
#include <string>
#include <vector>

namespace lowtide::rt {

/// What a run needs besides its tensors.
struct RunState {
  int64_t step = 0; ///< the next step
  int64_t seed = 0;
  std::optional<uint64_t> shuffleSeed;
};

/// Saves under `directory` (made if absent); older checkpoints beyond `keep` are removed (0 keeps all). Returns the new
/// directory's path. A failure leaves what was there.
Expected<std::string> saveCheckpoint(const Session &session, const RunState &state, const std::string &directory,
                                     unsigned keep = 0);

/// Loads the newest sound checkpoint under `directory`, or `directory` itself if it is one. A damaged one is reported
/// in `notes`, renamed to *.corrupt, and the one before is taken; with `strict` it is an error instead.
Expected<RunState> loadCheckpoint(Session &session, const std::string &directory, bool strict,
                                  std::vector<std::string> &notes);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_CHECKPOINT_H
