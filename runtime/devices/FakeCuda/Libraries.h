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

/// All phases of a call on the fake device's host threads.
void runPrepared(const PreparedCall &call);

} // namespace lowtide::rt::cuda::fake

#endif // LOWTIDE_RUNTIME_DEVICES_FAKECUDA_LIBRARIES_H
