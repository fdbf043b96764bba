//===- Device.cpp - the device of a target ---------------------------------===//

#include "runtime/devices/Device.h"

#include "runtime/MemorySpaces.h"
#include "runtime/Workspace.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Cuda/CudaDevice.h"

namespace lowtide::rt {

Status Device::observe(const plan::Entry &, const Observer &) {
  return {StatusCode::Unsupported, "this device executes a step as a whole"};
}

Transfers countTransfers(const plan::Plan &plan, const plan::Entry &entry) {
  Transfers sum;
  auto spaceOf = [&](const plan::Slice &slice) { return plan.arenas(static_cast<int>(slice.arena())).space(); };
  auto count = [&](auto &&self, const plan::Instruction &instruction, uint64_t rounds) -> void {
    for (const plan::Instruction &inner : instruction.repeat().body())
      self(self, inner, rounds * static_cast<uint64_t>(instruction.repeat().count()));
    if (!instruction.has_copy())
      return;
    const plan::Copy &copy = instruction.copy();
    const std::optional<CopyDirection> direction = findDirection(spaceOf(copy.source()), spaceOf(copy.target()));
    if (direction == CopyDirection::FromDevice)
      sum.fromDevice += rounds * copy.source().bytes();
    else if (direction == CopyDirection::ToDevice)
      sum.toDevice += rounds * copy.source().bytes();
  };
  for (const plan::Instruction &instruction : entry.instructions())
    count(count, instruction, 1);
  return sum;
}

Expected<std::unique_ptr<Device>> createDevice(const Artifact &artifact) {
  if (isGpu(artifact.plan().target()))
    return cuda::createCudaDevice(artifact);
  return std::unique_ptr<Device>(new CpuDevice(artifact));
}

} // namespace lowtide::rt
