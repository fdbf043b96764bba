//===- Exchange.cpp - what host and device hand each other per step --------===//

#include "runtime/devices/Cuda/Exchange.h"

#include "runtime/CheckedMath.h"

#include <atomic>
#include <cstring>

namespace lowtide::rt::cuda {
namespace {

/// The number of the step comes first.
constexpr uint64_t numberBytes = 8;

} // namespace

ExchangeLayout::ExchangeLayout(const plan::Entry &entry) {
  inBytes = outBytes = exchangeAlignment;
  const std::vector<Travel> travels = findTravels(listBoundTensors(entry));
  auto add = [](std::vector<Part> &parts, uint64_t &bytes, const plan::Binding &binding) {
    parts.push_back({&binding.slice(), bytes});
    bytes += alignUp(binding.slice().bytes(), exchangeAlignment);
  };
  for (size_t i = 0; i < travels.size(); ++i) {
    if (travels[i] == Travel::In)
      add(in, inBytes, entry.bindings(static_cast<int>(i)));
    else if (travels[i] == Travel::Out)
      add(out, outBytes, entry.bindings(static_cast<int>(i)));
  }
}

void Exchange::bind(const plan::Plan &plan, std::span<const CUdeviceptr> device, std::span<uint8_t *const> host) {
  for (int i = 0; i < plan.arenas_size(); ++i) {
    const plan::Arena &arena = plan.arenas(i);
    const bool isIn = arena.role() == plan::Arena::EXCHANGE_IN;
    if (!isIn && arena.role() != plan::Arena::EXCHANGE_OUT)
      continue;
    for (unsigned slot = 0; slot < slots; ++slot) {
      const uint64_t offset = slot * (arena.bytes() / slots);
      if (arena.space() == plan::Arena::DEVICE)
        (isIn ? deviceIn_ : deviceOut_)[slot] = device[static_cast<size_t>(i)] + offset;
      else
        (isIn ? hostIn_ : hostOut_)[slot] = host[static_cast<size_t>(i)] + offset;
    }
  }
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
  if (layout.outBytes > exchangeAlignment)
    LOWTIDE_CUDA(api, driver, cuMemcpyDtoHAsync, hostOut_[slot] + exchangeAlignment,
                 deviceOut_[slot] + exchangeAlignment, layout.outBytes - exchangeAlignment, stream);
  LOWTIDE_CUDA(api, driver, cuMemcpyDtoHAsync, hostOut_[slot], deviceOut_[slot], numberBytes, stream);
  return Status::ok();
}

} // namespace lowtide::rt::cuda
