//===- Libraries.h - cuBLASLt and cuDNN of the fake device -----------------===//
//
// The same entry points as NVIDIA's libraries, computed by the runtime's own kernels. They read descriptors as the
// documents describe them, and refuse what the table (runtime/LibraryTable.h) says that the libraries do not take.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_FAKECUDA_LIBRARIES_H
#define LOWTIDE_RUNTIME_DEVICES_FAKECUDA_LIBRARIES_H

#include "runtime/devices/Cuda/Api.h"
#include "runtime/devices/FakeCuda/Machine.h"
#include "runtime/kernels/PreparedCall.h"

namespace lowtide::rt::cuda::fake {

CublasLtApi cublasLtApi();
CudnnApi cudnnApi();

/// The object of a handle; null when the fake device has not made it.
template <typename T, typename Handle> T *liveObject(Handle handle) {
  T *object = reinterpret_cast<T *>(handle);
  return Machine::get().isLive(object) ? object : nullptr;
}

/// What the functions of a library say when they are told to fail, and of a handle that is none.
template <typename Status> struct Answers;
template <> struct Answers<cublasStatus_t> {
  static constexpr cublasStatus_t good = CUBLAS_STATUS_SUCCESS, broken = CUBLAS_STATUS_INTERNAL_ERROR,
                                  exhausted = CUBLAS_STATUS_ALLOC_FAILED, wrong = CUBLAS_STATUS_INVALID_VALUE;
};
template <> struct Answers<cudnnStatus_t> {
  static constexpr cudnnStatus_t good = CUDNN_STATUS_SUCCESS, broken = CUDNN_STATUS_INTERNAL_ERROR,
                                 exhausted = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                                 wrong = CUDNN_STATUS_BAD_PARAM;
};

/// What a function says that is told to fail.
template <typename Status> Status failed() {
  return Machine::get().failsForMemory() ? Answers<Status>::exhausted : Answers<Status>::broken;
}

/// Makes an object of the fake device and its handle.
template <typename T, typename Status, typename Handle> Status makeObject(Handle *handle, const char *kind) {
  *handle = reinterpret_cast<Handle>(Machine::get().make<T>(kind));
  return Answers<Status>::good;
}

/// A release is done even when it is told to fail.
template <typename T, typename Status, typename Handle> Status releaseObject(const char *name, Handle handle) {
  bool fails = Machine::get().failsNow(name);
  bool there = Machine::get().destroy(reinterpret_cast<T *>(handle));
  return fails ? failed<Status>() : there ? Answers<Status>::good : Answers<Status>::wrong;
}

/// All phases of a call on the fake device's host threads.
void runPrepared(const PreparedCall &call);

} // namespace lowtide::rt::cuda::fake

/// Counts the call and returns if it is to fail.
#define LOWTIDE_FAKE_ENTER(Status, name)                                                                               \
  do {                                                                                                                 \
    if (Machine::get().failsNow(#name))                                                                                \
      return failed<Status>();                                                                                         \
  } while (false)

#endif // LOWTIDE_RUNTIME_DEVICES_FAKECUDA_LIBRARIES_H
