//===- CudaDevice.h - a session on a CUDA device, real or fake -------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_CUDADEVICE_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_CUDADEVICE_H

#include "runtime/devices/Device.h"

namespace lowtide::rt::cuda {

/// "cuda:sm_90" and the like: NVIDIA's driver, which must be there; "cuda-emulated": the fake device.
///
/// A step is one graph launch. Batch arrays and scalars go from the host's view into a pinned block, from there by one
/// asynchronous copy into a block on the device while the step before is at work, and into their slices at the
/// beginning of the graph; metrics come back the same way. There are two blocks of each kind, so that one step may be
/// under way while the host prepares the next one. A number that travels through both blocks tells the host, in its own
/// memory, that a step is done: `run` and `settle` call nothing that waits.
Expected<std::unique_ptr<Device>> createCudaDevice(const Artifact &artifact);

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_CUDADEVICE_H
