//===- Driver.h - the part of the CUDA driver API that the runtime uses ----===//
//
// Declared here so that neither CUDA's headers nor its libraries are needed to build. Names, values and signatures
// after cuda.h of the CUDA toolkit 13.0 and the CUDA Driver API reference; a test compares them with the toolkit's
// header where that is installed.
//
// One list (LOWTIDE_CUDA_DRIVER) serves the table of function pointers, the loader, and the fake device.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_DRIVER_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_DRIVER_H

#include <cstddef>
#include <cstdint>

namespace lowtide::rt::cuda {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;

/// Of NVIDIA's libraries (library_types.h).
enum libraryPropertyType : int { MAJOR_VERSION = 0, MINOR_VERSION = 1, PATCH_LEVEL = 2 };

/// The codes that the runtime tells apart; all others are told by name.
enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_UNKNOWN = 999,
};

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
};

/// Relaxed: libraries may load their kernels while they are captured.
enum CUstreamCaptureMode : int { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum CUjit_option : int { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DEFAULT = 0;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;
/// Ends the `extra` list of cuLaunchKernel; and what its other entries are.
inline constexpr uintptr_t CU_LAUNCH_PARAM_END = 0, CU_LAUNCH_PARAM_BUFFER_POINTER = 1, CU_LAUNCH_PARAM_BUFFER_SIZE = 2;

/// What a stream calls on the host; it must not call the driver.
using CUhostFn = void (*)(void *data);

/// X(name, symbol in libcuda.so.1, parameters). All return CUresult.
#define LOWTIDE_CUDA_DRIVER(X)                                                                                         \
  X(cuInit, cuInit, (unsigned flags))                                                                                  \
  X(cuDriverGetVersion, cuDriverGetVersion, (int *version))                                                            \
  X(cuGetErrorName, cuGetErrorName, (CUresult error, const char **name))                                               \
  X(cuGetErrorString, cuGetErrorString, (CUresult error, const char **text))                                           \
  X(cuDeviceGetCount, cuDeviceGetCount, (int *count))                                                                  \
  X(cuDeviceGet, cuDeviceGet, (CUdevice * device, int ordinal))                                                        \
  X(cuDeviceGetName, cuDeviceGetName, (char *name, int bytes, CUdevice device))                                        \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device))           \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                        \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                        \
  X(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext context))                                                             \
  X(cuMemGetInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                                                      \
  X(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                                  \
  X(cuMemFree, cuMemFree_v2, (CUdeviceptr address))                                                                    \
  X(cuMemHostAlloc, cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))                                    \
  X(cuMemFreeHost, cuMemFreeHost, (void *address))                                                                     \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))        \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))              \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))        \
  X(cuMemsetD8Async, cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))            \
  X(cuMemsetD16Async, cuMemsetD16Async, (CUdeviceptr to, unsigned short value, size_t count, CUstream stream))         \
  X(cuMemsetD32Async, cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t count, CUstream stream))               \
  X(cuMemsetD2D32Async, cuMemsetD2D32Async,                                                                            \
    (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream))                      \
  X(cuStreamCreate, cuStreamCreate, (CUstream * stream, unsigned flags))                                               \
  X(cuStreamDestroy, cuStreamDestroy_v2, (CUstream stream))                                                            \
  X(cuStreamSynchronize, cuStreamSynchronize, (CUstream stream))                                                       \
  X(cuStreamQuery, cuStreamQuery, (CUstream stream))                                                                   \
  X(cuStreamWaitEvent, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                            \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))                        \
  X(cuStreamEndCapture, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                        \
  X(cuEventCreate, cuEventCreate, (CUevent * event, unsigned flags))                                                   \
  X(cuEventDestroy, cuEventDestroy_v2, (CUevent event))                                                                \
  X(cuEventRecord, cuEventRecord, (CUevent event, CUstream stream))                                                    \
  X(cuEventElapsedTime, cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))                         \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx,                                                                            \
    (CUmodule * module, const void *image, unsigned count, CUjit_option *options, void **values))                      \
  X(cuModuleUnload, cuModuleUnload, (CUmodule module))                                                                 \
  X(cuModuleGetFunction, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))              \
  X(cuLaunchKernel, cuLaunchKernel,                                                                                    \
    (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,            \
     unsigned blockZ, unsigned sharedBytes, CUstream stream, void **parameters, void **extra))                         \
  X(cuLaunchHostFunc, cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data))                              \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags,                                                                   \
    (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                                               \
  X(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec executable))                                                  \
  X(cuGraphDestroy, cuGraphDestroy, (CUgraph graph))                                                                   \
  X(cuGraphUpload, cuGraphUpload, (CUgraphExec executable, CUstream stream))                                           \
  X(cuGraphLaunch, cuGraphLaunch, (CUgraphExec executable, CUstream stream))

/// The driver, as pointers.
struct DriverApi {
#define LOWTIDE_CUDA_POINTER(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  LOWTIDE_CUDA_DRIVER(LOWTIDE_CUDA_POINTER)
#undef LOWTIDE_CUDA_POINTER
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_DRIVER_H
