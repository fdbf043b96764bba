//===- Api.cpp - failures of CUDA calls, told ------------------------------===//

#include "runtime/devices/Cuda/Api.h"

namespace lowtide::rt::cuda {
namespace {

constexpr const char *freeMemory =
    "compile with a smaller --device-budget, or free memory of other processes on the GPU";

/// What a user can do about a code of the driver.
const char *remedy(CUresult code) {
  switch (code) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return freeMemory;
  case CUDA_ERROR_NO_DEVICE:
  case CUDA_ERROR_INVALID_DEVICE:
    return "no GPU is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES, or compile with --target=cpu";
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
    return "another process holds the GPU exclusively";
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_INVALID_IMAGE:
    return "compile for this GPU: --target=cuda:sm_<its compute capability>";
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
  case CUDA_ERROR_STUB_LIBRARY:
    return "the driver is older than the artifact needs: update it";
  case CUDA_ERROR_ECC_UNCORRECTABLE:
    return "the GPU reports a memory error: reset it or take another";
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    return "a kernel went wrong: run the model with --target=cuda-emulated and report it";
  case CUDA_ERROR_NOT_FOUND:
    return "the artifact's machine code does not belong to its plan: compile again";
  default:
    return "look at nvidia-smi; the run can be continued from its last checkpoint (--resume)";
  }
}

/// A failure of a library's call; memory that is used up counts as that, whoever asked for it.
Status libraryFailure(const char *call, int code, const char *kind, bool isMemory, const char *library) {
  std::string message = std::string(call) + " failed: status " + std::to_string(code) + " (" + kind + "); ";
  if (isMemory)
    return {StatusCode::OverBudget, message + freeMemory};
  return {StatusCode::Device, message + "update " + library + ", or compile with --target=cpu"};
}

} // namespace

Status Api::check(CUresult result, const char *call) const {
  if (result == CUDA_SUCCESS)
    return Status::ok();
  const char *name = nullptr, *text = nullptr;
  if (driver.cuGetErrorName)
    (void)driver.cuGetErrorName(result, &name);
  if (driver.cuGetErrorString)
    (void)driver.cuGetErrorString(result, &text);
  std::string message = std::string(call) + " failed: " + (name ? name : "error " + std::to_string(result));
  if (text)
    message += std::string(" (") + text + ")";
  return {result == CUDA_ERROR_OUT_OF_MEMORY ? StatusCode::OverBudget : StatusCode::Device,
          message + "; " + remedy(result)};
}

Status Api::check(cublasStatus_t result, const char *call) const {
  if (result == CUBLAS_STATUS_SUCCESS)
    return Status::ok();
  const char *name = result == CUBLAS_STATUS_NOT_INITIALIZED    ? "not initialized"
                     : result == CUBLAS_STATUS_ALLOC_FAILED     ? "out of memory"
                     : result == CUBLAS_STATUS_INVALID_VALUE    ? "invalid value"
                     : result == CUBLAS_STATUS_ARCH_MISMATCH    ? "not for this GPU"
                     : result == CUBLAS_STATUS_EXECUTION_FAILED ? "execution failed"
                     : result == CUBLAS_STATUS_INTERNAL_ERROR   ? "internal error"
                     : result == CUBLAS_STATUS_NOT_SUPPORTED    ? "not supported"
                                                                : "unknown";
  return libraryFailure(call, result, name, result == CUBLAS_STATUS_ALLOC_FAILED, "cuBLASLt");
}

Status Api::check(cudnnStatus_t result, const char *call) const {
  if (result == CUDNN_STATUS_SUCCESS)
    return Status::ok();
  const bool isMemory = result == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                        result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  const char *kind = isMemory         ? "out of memory"
                     : result >= 5000 ? "execution failed"
                     : result >= 4000 ? "internal error"
                     : result >= 3000 ? "not supported"
                     : result >= 2000 ? "wrong parameter"
                                      : "not initialized";
  return libraryFailure(call, result, kind, isMemory, "cuDNN");
}

} // namespace lowtide::rt::cuda
