//===- FileArenas.h - arenas of a plan that lie in a file ------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_SPILL_FILEARENAS_H
#define LOWTIDE_RUNTIME_DEVICES_SPILL_FILEARENAS_H

#include "plan.pb.h"
#include "runtime/devices/Spill/SpillFile.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace lowtide::rt {

struct BindOptions;

/// One file for all of them, one after the other, whichever device computes.
class FileArenas {
public:
  /// Makes the file, if an arena lies in one. `staging`: as SpillFile asks for it.
  Status open(const plan::Plan &plan, const BindOptions &options, std::span<uint8_t> staging);

  /// Null: no arena lies in one.
  SpillFile *file() const { return file_.get(); }
  uint64_t bytes() const { return file_ ? file_->bytes() : 0; }
  /// Where the arenas begin in the file, parallel to Plan.arenas; what others have there means nothing.
  std::span<const uint64_t> offsets() const { return offsets_; }
  /// At which the host sees an arena that outlives the steps (SpillFile::map); null for every other.
  uint8_t *view(size_t arena) const { return views_[arena]; }
  /// Fills what a step finds undefined with 0xFF.
  Status poison();

private:
  std::vector<uint64_t> offsets_;
  std::vector<uint8_t *> views_;
  /// Offset and bytes of each arena that is undefined between steps.
  std::vector<std::pair<uint64_t, uint64_t>> transient_;
  std::unique_ptr<SpillFile> file_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_SPILL_FILEARENAS_H
