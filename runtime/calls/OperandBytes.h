//===- OperandBytes.h - operands of library calls against their shapes ----===//
#ifndef LOWTIDE_RUNTIME_CALLS_OPERANDBYTES_H
#define LOWTIDE_RUNTIME_CALLS_OPERANDBYTES_H

#include "runtime/VerifyEntry.h"
#include "runtime/calls/CallAttributes.h"

#include <string>

namespace lowtide::rt {

/// Whether `slice` holds `elements`, exactly or at least, and begins at one. At most 2^43 bytes: CallAttributes.
inline Status checkOperandBytes(const plan::Slice &slice, uint64_t elements, uint64_t elementSize, const char *what,
                                bool exact) {
  uint64_t need = elements * elementSize;
  if (exact ? slice.bytes() != need : slice.bytes() < need)
    return refuseCall(std::string(what) + " has " + showSize(slice.bytes()) + " bytes, its shape needs " +
                      std::to_string(need));
  if (slice.offset() % elementSize)
    return refuseCall(std::string(what) + " is not aligned to its elements");
  return Status::ok();
}

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLS_OPERANDBYTES_H
