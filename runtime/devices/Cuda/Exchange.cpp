//===- Exchange.cpp - what host and device hand each other per step --------===//

#include "runtime/devices/Cuda/Exchange.h"

#include "runtime/CheckedMath.h"
#include "runtime/Element.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace lowtide::rt::cuda {
namespace {

/// The number of the step comes first; parts start on boundaries that every copy engine likes.
constexpr uint64_t numberBytes = 8, partAlignment = 256;

/// A single number of the step's own, such as the loss scale: not a slot of a parameter's optimizer state.
bool isStateOfStep(const plan::Entry &entry, const plan::Binding &binding) {
  if (binding.kind() != plan::Binding::STATE || binding.slice().bytes() != elementBytes(binding.dtype()))
    return false;
  return std::none_of(entry.bindings().begin(), entry.bindings().end(), [&](const plan::Binding &other) {
    return other.kind() == plan::Binding::PARAM && binding.name().size() > other.name().size() &&
           binding.name().compare(0, other.name().size(), other.name()) == 0 &&
           binding.name()[other.name().size()] == '.';
  });
}

} // namespace

ExchangeLayout::ExchangeLayout(const plan::Entry &entry) {
  inBytes = outBytes = partAlignment;
  auto add = [](std::vector<Part> &parts, uint64_t &bytes, const plan::Binding &binding) {
    if (!binding.slice().bytes())
      return;
    parts.push_back({&binding.slice(), bytes});
    bytes += alignUp(binding.slice().bytes(), partAlignment);
  };
  for (const plan::Binding &binding : entry.bindings()) {
    if (binding.kind() == plan::Binding::BATCH || binding.kind() == plan::Binding::SCALAR)
      add(in, inBytes, binding);
    else if (binding.kind() == plan::Binding::METRIC || isStateOfStep(entry, binding))
      add(out, outBytes, binding);
  }
}

Status Exchange::allocate(Resources &resources, uint64_t inBytes, uint64_t outBytes) {
  auto pair = [&](uint64_t bytes, uint8_t *&host, CUdeviceptr &device) -> Status {
    Expected<uint8_t *> pinned = resources.pinnedMemory(bytes);
    if (!pinned)
      return pinned.takeStatus();
    Expected<CUdeviceptr> memory = resources.deviceMemory(bytes);
    if (!memory)
      return memory.takeStatus();
    host = *pinned, device = *memory;
    return Status::ok();
  };
  for (unsigned slot = 0; slot < slots; ++slot) {
    LOWTIDE_TRY(pair(inBytes, hostIn_[slot], deviceIn_[slot]));
    LOWTIDE_TRY(pair(outBytes, hostOut_[slot], deviceOut_[slot]));
  }
  return Status::ok();
}

void Exchange::pack(const ExchangeLayout &layout, const HostMirror &mirror, uint64_t number) {
  uint8_t *block = hostIn_[slotOf(number)];
  std::memcpy(block, &number, sizeof number);
  for (const ExchangeLayout::Part &part : layout.in)
    std::memcpy(block + part.offset, mirror.address(*part.slice), part.slice->bytes());
}

void Exchange::unpack(const ExchangeLayout &layout, const HostMirror &mirror, uint64_t number) const {
  const uint8_t *block = hostOut_[slotOf(number)];
  for (const ExchangeLayout::Part &part : layout.out)
    std::memcpy(mirror.address(*part.slice), block + part.offset, part.slice->bytes());
}

bool Exchange::arrived(uint64_t number) const {
  // The device wrote the metrics first; they are seen by whoever sees the number.
  auto *place = reinterpret_cast<uint64_t *>(hostOut_[slotOf(number)]);
  return std::atomic_ref(*place).load(std::memory_order_acquire) == number;
}

Status Exchange::upload(const Api &api, const ExchangeLayout &layout, unsigned slot, CUstream stream) const {
  LOWTIDE_CUDA(api, driver, cuMemcpyHtoDAsync, deviceIn_[slot], hostIn_[slot], layout.inBytes, stream);
  return Status::ok();
}

Status Exchange::enqueueIn(const Api &api, const ExchangeLayout &layout, unsigned slot,
                           std::span<const CUdeviceptr> arenas, CUstream stream) const {
  for (const ExchangeLayout::Part &part : layout.in)
    LOWTIDE_CUDA(api, driver, cuMemcpyDtoDAsync, arenas[part.slice->arena()] + part.slice->offset(),
                 deviceIn_[slot] + part.offset, part.slice->bytes(), stream);
  return Status::ok();
}

Status Exchange::enqueueOut(const Api &api, const ExchangeLayout &layout, unsigned slot,
                            std::span<const CUdeviceptr> arenas, CUstream stream) const {
  for (const ExchangeLayout::Part &part : layout.out)
    LOWTIDE_CUDA(api, driver, cuMemcpyDtoDAsync, deviceOut_[slot] + part.offset,
                 arenas[part.slice->arena()] + part.slice->offset(), part.slice->bytes(), stream);
  LOWTIDE_CUDA(api, driver, cuMemcpyDtoDAsync, deviceOut_[slot], deviceIn_[slot], numberBytes, stream);
  return Status::ok();
}

Status Exchange::download(const Api &api, const ExchangeLayout &layout, unsigned slot, CUstream stream) const {
  // Two copies: within one, nothing says in which order bytes arrive.
  if (layout.outBytes > partAlignment)
    LOWTIDE_CUDA(api, driver, cuMemcpyDtoHAsync, hostOut_[slot] + partAlignment, deviceOut_[slot] + partAlignment,
                 layout.outBytes - partAlignment, stream);
  LOWTIDE_CUDA(api, driver, cuMemcpyDtoHAsync, hostOut_[slot], deviceOut_[slot], numberBytes, stream);
  return Status::ok();
}

} // namespace lowtide::rt::cuda
