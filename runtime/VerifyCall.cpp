//===- VerifyCall.cpp - library calls against the bytes of their operands --===//

#include "runtime/VerifyEntry.h"
#include "runtime/Workspace.h"
#include "runtime/calls/CallAttributes.h"
#include "runtime/calls/CallKind.h"

namespace lowtide::rt {

Status checkCall(const plan::Call &call, std::string_view target) {
  Expected<std::unique_ptr<ReadCall>> read = readCall(call);
  if (!read)
    return read.takeStatus();
  LOWTIDE_TRY((*read)->checkOperands(call));
  // Libraries of a GPU choose an algorithm within what they get.
  if (isGpu(target))
    return Status::ok();
  Expected<uint64_t> workspace = (*read)->cpuWorkspace();
  if (!workspace)
    return workspace.takeStatus();
  if (call.workspace().bytes() < *workspace)
    return refuseCall("workspace of " + showSize(call.workspace().bytes()) + " bytes; it needs " +
                      std::to_string(*workspace));
  return Status::ok();
}

} // namespace lowtide::rt
