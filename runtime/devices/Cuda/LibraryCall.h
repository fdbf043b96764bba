//===- LibraryCall.h - a call of the plan as calls of NVIDIA's libraries ---===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_LIBRARYCALL_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_LIBRARYCALL_H

#include "runtime/CallShape.h"
#include "runtime/devices/Cuda/Resources.h"

#include <memory>
#include <string>
#include <vector>

namespace lowtide::rt::cuda {

/// Device addresses of a call's operands.
struct CallAddresses {
  std::vector<CUdeviceptr> reads, writes;
  CUdeviceptr workspace = 0;
  uint64_t workspaceBytes = 0;
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

private:
  Status openCublasLt();
  Status openCudnn();

  Api &api_;
  Resources &resources_;
  cublasLtHandle_t cublasLt_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
};

/// What they are made of is released with `resources`.
Expected<std::unique_ptr<LibraryCall>> prepareCublasLtGemm(const Api &api, Resources &resources,
                                                           cublasLtHandle_t handle, const GemmShape &shape,
                                                           const CallAddresses &addresses);
Expected<std::unique_ptr<LibraryCall>> prepareCudnnConv(const Api &api, Resources &resources, cudnnHandle_t handle,
                                                        const ConvShape &shape, const CallAddresses &addresses);
Expected<std::unique_ptr<LibraryCall>> prepareCudnnAttention(const Api &api, Resources &resources, cudnnHandle_t handle,
                                                             const AttentionShape &shape,
                                                             const CallAddresses &addresses);

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_LIBRARYCALL_H
