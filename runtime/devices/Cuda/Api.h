//===- Api.h - the one door to CUDA ----------------------------------------===//
//
// Everything that the runtime asks of CUDA goes through these tables of function pointers: they are filled from the
// driver and NVIDIA's libraries as found at run time, or from the fake device, which computes on host memory. A failure
// of a call becomes a status that names the call, what it said, and what to do.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_API_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_API_H

#include "runtime/Status.h"
#include "runtime/devices/Cuda/CublasLt.h"
#include "runtime/devices/Cuda/Cudnn.h"
#include "runtime/devices/Cuda/Driver.h"

#include <string>

namespace lowtide::rt::cuda {

struct Api {
  DriverApi driver;
  CublasLtApi cublasLt;
  CudnnApi cudnn;
  /// Where each was found, for reports; empty: not loaded.
  std::string driverPath, cublasLtPath, cudnnPath;
  /// Not NVIDIA's: computes on host memory.
  bool fake = false;

  /// Ok, or which call failed, why, and what to do about it.
  Status check(CUresult result, const char *call) const;
  Status check(cublasStatus_t result, const char *call) const;
  Status check(cudnnStatus_t result, const char *call) const;
};

/// Finds libcuda.so.1 and fills `api.driver`.
Status loadDriver(Api &api);
/// Finds libcublasLt (13 or 12) or libcudnn (9): by the loader's own search, in CUDA's folder, in the Python packages'
/// folders. Once loaded, a library stays until the process ends.
Status loadCublasLt(Api &api);
Status loadCudnn(Api &api);

} // namespace lowtide::rt::cuda

/// Calls `function` of a table and returns from the enclosing function when it fails: LOWTIDE_CUDA(api, driver, cuInit,
/// 0).
#define LOWTIDE_CUDA(api, table, function, ...) LOWTIDE_TRY((api).check((api).table.function(__VA_ARGS__), #function))

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_API_H
