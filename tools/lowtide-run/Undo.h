//===- Undo.h - what a step changes, as it was before ----------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_UNDO_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_UNDO_H

#include "runtime/Session.h"

#include <span>
#include <vector>

namespace lowtide::run {

/// A second place for parameters and state, in the memory of the host and not of the plan: for --on-nonfinite=skip.
class Undo {
public:
  explicit Undo(rt::Session &session);
  uint64_t bytes() const { return copies_.size(); }

  /// Copies what the steps so far have left.
  rt::Status keep();
  /// Puts it back.
  rt::Status restore();

private:
  rt::Session &session_;
  std::vector<std::span<uint8_t>> pieces_;
  std::vector<uint8_t> copies_;
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_UNDO_H
