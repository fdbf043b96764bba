//===- FileArenas.cpp - arenas of a plan that lie in a file ----------------===//

#include "runtime/devices/Spill/FileArenas.h"

#include "runtime/FileStaging.h"
#include "runtime/Session.h"

namespace lowtide::rt {

static bool isInFile(const plan::Arena &arena) { return arena.space() == plan::Arena::FILE; }

Status FileArenas::open(const plan::Plan &plan, const BindOptions &options, std::span<uint8_t> staging) {
  uint64_t bytes = 0;
  for (const plan::Arena &arena : plan.arenas()) {
    offsets_.push_back(bytes);
    bytes += isInFile(arena) ? alignToFile(arena.bytes()) : 0;
  }
  views_.resize(offsets_.size());
  if (!bytes)
    return Status::ok();
  Expected<std::unique_ptr<SpillFile>> file = SpillFile::create(options.spill, bytes, staging, options.traffic);
  if (!file)
    return file.takeStatus();
  file_ = std::move(*file);
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const plan::Arena &arena = plan.arenas(static_cast<int>(i));
    if (!isInFile(arena))
      continue;
    if (arena.role() == plan::Arena::TRANSIENT) {
      transient_.emplace_back(offsets_[i], arena.bytes());
      continue;
    }
    Expected<uint8_t *> view = file_->map(offsets_[i], arena.bytes());
    if (!view)
      return view.takeStatus();
    views_[i] = *view;
  }
  return Status::ok();
}

Status FileArenas::poison() {
  for (auto [offset, bytes] : transient_)
    LOWTIDE_TRY(file_->poison(offset, bytes));
  return Status::ok();
}

} // namespace lowtide::rt
