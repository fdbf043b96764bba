//===- PreparedCall.cpp - a library call on the CPU ------------------------===//

#include "runtime/kernels/PreparedCall.h"

#include "runtime/calls/CallKind.h"

namespace lowtide::rt {

Expected<std::unique_ptr<PreparedCall>> prepareCall(const plan::Call &call, const CallOperands &operands) {
  Expected<std::unique_ptr<ReadCall>> read = readCall(call);
  if (!read)
    return read.takeStatus();
  if (!(*read)->hasCpuKernel())
    return Status(StatusCode::Unsupported,
                  "the CPU has no kernel for '" + call.callee() + "'; compile the model for it");
  return (*read)->prepareCpu(operands);
}

} // namespace lowtide::rt
