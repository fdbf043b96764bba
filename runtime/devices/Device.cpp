//===- Device.cpp - the device of a target ---------------------------------===//

#include "runtime/devices/Device.h"

#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Cuda/CudaDevice.h"

namespace lowtide::rt {

Expected<std::unique_ptr<Device>> createDevice(const Artifact &artifact) {
  const std::string &target = artifact.plan().target();
  if (target.rfind("cuda", 0) == 0)
    return cuda::createCudaDevice(artifact);
  return std::unique_ptr<Device>(new CpuDevice(artifact));
}

} // namespace lowtide::rt
