//===- Undo.cpp - what a step changes, as it was before --------------------===//

#include "Undo.h"

#include <cstring>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

Undo::Undo(Session &session) : session_(session) {
  uint64_t bytes = 0;
  for (const Tensor &tensor : session.persistent())
    if (tensor.binding->kind() != plan::Binding::CONSTANT)
      tensors_.push_back(tensor), bytes += tensor.bytes();
  copies_.resize(bytes);
}

Status Undo::keep() {
  LOWTIDE_TRY(session_.download());
  uint8_t *to = copies_.data();
  for (const Tensor &tensor : tensors_) {
    std::memcpy(to, tensor.data, tensor.bytes());
    to += tensor.bytes();
  }
  return Status::ok();
}

Status Undo::restore() {
  const uint8_t *from = copies_.data();
  for (const Tensor &tensor : tensors_) {
    std::memcpy(tensor.data, from, tensor.bytes());
    from += tensor.bytes();
  }
  return session_.upload();
}
