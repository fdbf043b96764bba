//===- LibraryTable.cpp - what cuBLASLt and cuDNN take ---------------------===//

#include "runtime/LibraryTable.h"

#include "runtime/calls/CallKind.h"

namespace lowtide::rt {

std::vector<const LibraryRule *> libraryRules() {
  std::vector<const LibraryRule *> rules;
  for (const CallKind &kind : callKinds())
    for (const LibraryRule &rule : kind.rules)
      rules.push_back(&rule);
  return rules;
}

Expected<const LibraryRule *> declineCall(const plan::Call &call) {
  Expected<std::unique_ptr<ReadCall>> read = readCall(call);
  if (!read)
    return read.takeStatus();
  return (*read)->declinedBy(call.reads_size());
}

bool hasCpuKernel(const plan::Call &call) {
  Expected<std::unique_ptr<ReadCall>> read = readCall(call);
  return read && (*read)->hasCpuKernel();
}

} // namespace lowtide::rt
