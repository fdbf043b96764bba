//===- Workspace.h - what a library call needs, asked before it runs -------===//
//
// The compiler plans the workspace of every call as a buffer like any other; it asks here. The answer is a function of
// the call's attributes and, on a GPU, of the number of processors that the plan is for: not of the machine that runs
// it, not of the number of threads.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_WORKSPACE_H
#define LOWTIDE_RUNTIME_WORKSPACE_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <string_view>

namespace lowtide::rt {

/// Alignment that Call.workspace and Launch.scratch must have, in bytes.
inline constexpr uint64_t workspaceAlignment = 64;

/// Whether plans for `target` run on a GPU, or on the fake device that stands for one.
bool isGpu(std::string_view target);

/// Bytes of Call.workspace that `call` needs on the CPU, from its callee and attributes (reads and writes are not
/// looked at). Fails when the callee is unknown or an attribute is missing or out of range.
Expected<uint64_t> queryWorkspace(const plan::Call &call);

/// Where NVIDIA's libraries want a workspace to begin, in bytes (cuBLAS 13.0 documentation, cublasLtMatmul()). Plans
/// promise `workspaceAlignment`, so that what they reserve is longer by the difference.
inline constexpr uint64_t libraryWorkspaceAlignment = 256;

/// Bytes of Call.workspace that a plan reserves for `call` on a GPU, which has `processors` multiprocessors. The
/// libraries choose their algorithm within it, so that more is no need and less is no error. What it holds is said by
/// each kind of call (runtime/calls).
Expected<uint64_t> queryGpuWorkspace(const plan::Call &call, uint32_t processors);
/// The same for a call that is known to be right (the compiler's own): 0 when the query fails.
uint64_t workspaceBytes(const plan::Call &call);

/// Parts of Launch.scratch, each of Kernel.scratch_bytes: as many as tasks of the launch can run at once on at most
/// `threadsMax` threads. `grain` > 0.
uint64_t countScratchParts(int64_t extent, int64_t grain, uint32_t threadsMax);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_WORKSPACE_H
