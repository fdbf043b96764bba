//===- Device.cpp - the device of a target ---------------------------------===//

#include "runtime/devices/Device.h"

#include "runtime/Workspace.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Cuda/CudaDevice.h"

namespace lowtide::rt {

Status Device::observe(const plan::Entry &, const Observer &) {
  return {StatusCode::Unsupported, "this device executes a step as a whole"};
}

Expected<std::unique_ptr<Device>> createDevice(const Artifact &artifact) {
  if (isGpu(artifact.plan().target()))
    return cuda::createCudaDevice(artifact);
  return std::unique_ptr<Device>(new CpuDevice(artifact));
}

} // namespace lowtide::rt
