//===- LibraryCall.h - a call of the plan as calls of NVIDIA's libraries ---===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_LIBRARYCALL_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_LIBRARYCALL_H

#include "plan.pb.h"
#include "runtime/CheckedMath.h"
#include "runtime/Workspace.h"
#include "runtime/devices/BoundRange.h"
#include "runtime/devices/Cuda/Resources.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lowtide::rt::cuda {

/// Device addresses of a call's operands, and of its workspace as the libraries take it.
struct CallAddresses {
  std::vector<CUdeviceptr> reads, writes;
  CUdeviceptr workspace = 0;
  uint64_t workspaceBytes = 0;

  /// `addressOf` gives the address of a slice.
  template <typename AddressOf> static CallAddresses of(const plan::Call &call, AddressOf &&addressOf) {
    CallAddresses found{addressesOf<CUdeviceptr>(call.reads(), addressOf),
                        addressesOf<CUdeviceptr>(call.writes(), addressOf)};
    if (const uint64_t bytes = call.workspace().bytes()) {
      const CUdeviceptr begin = addressOf(call.workspace());
      found.workspace = alignUp(begin, libraryWorkspaceAlignment);
      found.workspaceBytes = bytes - std::min<uint64_t>(bytes, found.workspace - begin);
    }
    return found;
  }
};

/// Prepared once at bind, with descriptors and algorithm; enqueued when the step's graph is captured.
class LibraryCall {
public:
  virtual ~LibraryCall() = default;
  virtual Status enqueue(CUstream stream) = 0;
  /// Which algorithm was chosen: part of what a run records.
  virtual std::string choice() const = 0;
};

/// The libraries that a session has opened: handles, made when the first call needs them.
class Libraries {
public:
  Libraries(Api &api, Resources &resources) : api_(api), resources_(resources) {}

  /// Prepares a call that the verifier has accepted; refuses what the library does not take (LibraryTable.h).
  Expected<std::unique_ptr<LibraryCall>> prepare(const plan::Call &call, const CallAddresses &addresses);

  /// Open from the first call that needs them until `resources` are closed, which holds what calls are made of, too.
  Expected<cublasLtHandle_t> openCublasLt();
  Expected<cudnnHandle_t> openCudnn();
  /// What somebody else has opened and closes; null where a GPU is described and not there.
  void useCudnn(cudnnHandle_t handle) { cudnn_ = handle; }
  const Api &api() const { return api_; }
  Resources &resources() { return resources_; }

private:
  Api &api_;
  Resources &resources_;
  std::optional<cublasLtHandle_t> cublasLt_;
  std::optional<cudnnHandle_t> cudnn_;
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_LIBRARYCALL_H
