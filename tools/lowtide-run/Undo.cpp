//===- Undo.cpp - what a step changes, as it was before --------------------===//

#include "Undo.h"

#include <cstring>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

Undo::Undo(Session &session) : session_(session) {
  uint64_t bytes = 0;
  for (const Tensor &tensor : session.persistent()) {
    if (tensor.binding->kind() == plan::Binding::CONSTANT)
      continue;
    bytes += tensor.bytes();
    if (!tensor.low) {
      pieces_.emplace_back(tensor.data, tensor.bytes());
      continue;
    }
    pieces_.emplace_back(tensor.data, tensor.bytes() / 2);
    pieces_.emplace_back(tensor.low, tensor.bytes() / 2);
  }
  copies_.resize(bytes);
}

Status Undo::keep() {
  LOWTIDE_TRY(session_.download());
  uint8_t *to = copies_.data();
  for (std::span<uint8_t> piece : pieces_) {
    LOWTIDE_TRY(session_.bring(piece, HostAccess::Read));
    std::memcpy(to, piece.data(), piece.size());
    LOWTIDE_TRY(session_.leave(piece));
    to += piece.size();
  }
  return Status::ok();
}

Status Undo::restore() {
  const uint8_t *from = copies_.data();
  for (std::span<uint8_t> piece : pieces_) {
    LOWTIDE_TRY(session_.bring(piece, HostAccess::Overwrite));
    std::memcpy(piece.data(), from, piece.size());
    LOWTIDE_TRY(session_.leave(piece));
    from += piece.size();
  }
  return session_.upload();
}
