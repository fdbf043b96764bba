//===- Manifest.h - whether a checkpoint is what was written ---------------===//
//
// MANIFEST.json: format, and size and SHA-256 of the other files.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_MANIFEST_H
#define LOWTIDE_RUNTIME_CHECKPOINT_MANIFEST_H

#include "runtime/Status.h"

#include <optional>
#include <string>

namespace lowtide::rt {

inline constexpr int checkpointFormat = 2;
/// The first whose optimizer state has the layout of parameters, not that in which it is stored.
inline constexpr int layoutFormat = 2;
inline constexpr const char *manifestName = "MANIFEST.json";
/// What a manifest lists: parameters and buffers, optimizer state, state of the run.
inline constexpr const char *checkpointFiles[] = {"params.safetensors", "optimizer.safetensors", "state.json"};

/// What it lists besides where low-rank pairs are trained: PEFT's files (Adapters.h).
inline constexpr const char *adapterFiles[] = {"adapter_model.safetensors", "adapter_config.json"};

/// Why a checkpoint was not loaded.
enum class Unloadable {
  Damaged,        ///< not what was written: a digest does not hold, a file is missing or cannot be parsed
  NotFinite,      ///< holds a parameter or state that is not finite
  NewerFormat,    ///< a later runtime wrote it
  OtherModel,     ///< lacks a tensor of the artifact, or holds one of another shape
  OtherPrecision, ///< holds a tensor of another element type
  Unreadable,     ///< memory, rights, a disk: says nothing about the checkpoint
};

/// A checkpoint that was not loaded, and why; `status` says it in words, with the place.
struct Refusal {
  Unloadable why;
  Status status;
};

/// Whether the files are those that were written; nothing: they are.
std::optional<Refusal> checkManifest(const std::string &checkpoint);
/// The format that it states; the current one where it states none.
int manifestFormat(const std::string &checkpoint);
/// Writes it for the files, which are there.
Status writeManifest(const std::string &checkpoint);
/// Whether two manifests state the same bytes of parameters, buffers and optimizer state.
bool statesSameTensors(const std::string &checkpoint, const std::string &other);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_MANIFEST_H
