//===- RunState.h - what a run needs besides its tensors -------------------===//
//
// `state.json` of a checkpoint: the next step, seeds, who wrote it and when.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_RUNSTATE_H
#define LOWTIDE_RUNTIME_CHECKPOINT_RUNSTATE_H

#include "runtime/Session.h"

#include <optional>
#include <string>

namespace lowtide::rt {

/// The best evaluation of a run so far.
struct BestEvaluation {
  std::string measure;
  int64_t step = 0;   ///< steps that were done then
  double value = 0;   ///< NaN: none had a value
  int64_t waited = 0; ///< evaluations since
};

struct RunState {
  int64_t step = 0; ///< the next step; at most `maxStep`
  int64_t seed = 0;
  std::optional<uint64_t> shuffleSeed;
  /// Who trains: the same in every checkpoint of a run, however often it was resumed; empty: a run without a name.
  std::string run;
  std::optional<BestEvaluation> best; ///< where the run looks for it
};

/// The greatest step that the name of a checkpoint holds.
inline constexpr int64_t maxStep = 999'999'999'999'999'999;

/// A name that no other run has: 16 hexadecimal digits.
std::string newRunName();

/// A `state.json` as it was read.
struct StateFile {
  RunState state;
  std::string modelDigest; ///< SHA-256 of the model file; empty: not stated
  int64_t written = 0;     ///< nanoseconds since 1970; in one folder, later than in every checkpoint before it
};

/// Reads `<checkpoint>/state.json`; the status is BadInput where it is not one, Io where it cannot be read.
Expected<StateFile> readStateFile(const std::string &checkpoint);
/// Writes it for the next step of `session`.
Status writeStateFile(const std::string &checkpoint, const Session &session, const RunState &state, int64_t written);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_RUNSTATE_H
