//===- CallKind.h - what a library call is, for everyone who asks ---------===//
//
// Verifier, planner, CPU, GPU and the fake libraries ask the same object. What it is made of lies in the folder of its
// kind (docs/adding/a-library-call.md).
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_CALLKIND_H
#define LOWTIDE_RUNTIME_CALLS_CALLKIND_H

#include "plan.pb.h"
#include "runtime/CheckedMath.h"
#include "runtime/LibraryTable.h"
#include "runtime/Status.h"
#include "runtime/kernels/PreparedCall.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace lowtide::rt {

namespace cuda {
class Libraries;
class LibraryCall;
struct CallAddresses;
} // namespace cuda

/// A call whose attributes have been read.
class ReadCall {
public:
  virtual ~ReadCall() = default;

  /// Number, bytes and overlap of operands and results, against its shapes.
  virtual Status checkOperands(const plan::Call &call) const = 0;
  /// Number of the read over which the first result may be written; -1: none.
  virtual int overwritableRead() const { return -1; }

  /// Whether the CPU has a kernel for it.
  virtual bool hasCpuKernel() const { return true; }
  /// Bytes of Call.workspace on the CPU: a function of the shapes alone.
  virtual Expected<uint64_t> cpuWorkspace() const = 0;
  virtual Expected<std::unique_ptr<PreparedCall>> prepareCpu(const CallOperands &operands) const = 0;

  /// The first of its kind's rules that it breaks; null: NVIDIA's library takes it. `reads`: its operands.
  virtual const LibraryRule *declinedBy(int reads) const = 0;
  /// Bytes of Call.workspace on a GPU of so many multiprocessors, before they are aligned.
  virtual Checked gpuWorkspace(uint32_t processors) const = 0;
  /// Makes the library's descriptors, and chooses its algorithm.
  virtual Expected<std::unique_ptr<cuda::LibraryCall>> prepareCuda(cuda::Libraries &libraries,
                                                                   const cuda::CallAddresses &addresses) const = 0;
};

/// One library operation with its derivatives: a folder of this one.
struct CallKind {
  /// What Call.callee is.
  std::span<const std::string_view> callees;
  /// What NVIDIA's library takes of it, in the order in which that is asked.
  std::span<const LibraryRule> rules;
  /// Refuses what is missing, unknown, out of range or too large to count.
  Expected<std::unique_ptr<ReadCall>> (*read)(const plan::Call &call);
};

/// All of them, by the names of their folders.
std::span<const CallKind> callKinds();
/// Reads a call of any kind; refuses a callee that there is none of.
Expected<std::unique_ptr<ReadCall>> readCall(const plan::Call &call);
/// Number of the read over which the first result may be written; -1: none, or a call that cannot be read.
int overwritableRead(const plan::Call &call);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLS_CALLKIND_H
