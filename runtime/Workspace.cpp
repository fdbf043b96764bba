//===- Workspace.cpp - what a library call needs, asked before it runs -----===//

#include "runtime/Workspace.h"

#include "runtime/calls/CallKind.h"

#include <algorithm>

namespace lowtide::rt {

Expected<uint64_t> queryWorkspace(const plan::Call &call) {
  Expected<std::unique_ptr<ReadCall>> read = readCall(call);
  if (!read)
    return read.takeStatus();
  return (*read)->cpuWorkspace();
}

bool isGpu(std::string_view target) { return target.substr(0, 4) == "cuda"; }

/// With room for the libraries' alignment.
static Expected<uint64_t> alignedForLibraries(Checked bytes) {
  if (!bytes.atMost(uint64_t(1) << 46))
    return Status(StatusCode::VerifyFailed, "its workspace is too large to count");
  const uint64_t whole = alignUp(*bytes.get(), workspaceAlignment);
  return whole ? whole + libraryWorkspaceAlignment - workspaceAlignment : 0;
}

Expected<uint64_t> queryGpuWorkspace(const plan::Call &call, uint32_t processors) {
  Expected<std::unique_ptr<ReadCall>> read = readCall(call);
  if (!read)
    return read.takeStatus();
  return alignedForLibraries((*read)->gpuWorkspace(processors));
}

uint64_t workspaceBytes(const plan::Call &call) {
  Expected<uint64_t> bytes = queryWorkspace(call);
  return bytes ? *bytes : 0;
}

uint64_t countScratchParts(int64_t extent, int64_t grain, uint32_t threadsMax) {
  uint64_t tasks = extent <= 0 ? 0 : static_cast<uint64_t>((extent - 1) / grain) + 1;
  return std::min<uint64_t>(tasks, threadsMax);
}

} // namespace lowtide::rt
