//===- Safetensors.h - named tensors in one file ---------------------------===//
//
// Eight bytes of header length, a JSON header (name → dtype, shape, offsets), the values without gaps. Offsets, shapes
// and sizes of a file that is read are checked against each other before anything is used.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CHECKPOINT_SAFETENSORS_H
#define LOWTIDE_RUNTIME_CHECKPOINT_SAFETENSORS_H

#include "runtime/data/HostArray.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lowtide::rt {

/// One tensor to be written; `write` produces its bytes in order, in one or more pieces.
struct SafetensorsEntry {
  std::string name;
  plan::DType dtype;
  std::vector<int64_t> dims;
  uint64_t bytes;
  using Sink = std::function<Status(const void *data, size_t bytes)>;
  std::function<Status(const Sink &)> write;
};

/// Writes a file (created or truncated, synced). Entries keep their order; names must be unique. The format has taken
/// the name `__metadata__` for itself: a tensor of that name, or one that goes on with underscores only, is written
/// with one underscore more, and read without it.
Status writeSafetensors(const std::string &path, const std::vector<SafetensorsEntry> &entries,
                        const std::map<std::string, std::string> &metadata = {});

/// Maps a file and parses it; the arrays keep it mapped. Errors name `path`.
Expected<std::map<std::string, HostArray>> readSafetensors(const std::string &path);

/// Parses a file in memory. Limits: header 100 MB, depth 64, a million tensors, rank 16.
Expected<std::vector<NamedArray>> parseSafetensors(std::span<const uint8_t> file, std::shared_ptr<const void> owner);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CHECKPOINT_SAFETENSORS_H
