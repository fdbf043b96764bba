//===- Exchange.h - what host and device hand each other per step ----------===//
//
// One block goes in before a step (batch arrays and scalars of the entry), one comes out (metrics, and state of the
// step as a whole). Each block begins with the number of the step: it is the last thing that is sent back, so that the
// host learns from its own memory that the step is done.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_EXCHANGE_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_EXCHANGE_H

#include "runtime/ExchangeBlocks.h"
#include "runtime/devices/Cuda/Api.h"
#include "runtime/devices/Cuda/HostMirror.h"

namespace lowtide::rt::cuda {

/// Which bytes of an entry travel, and where they lie in the blocks.
struct ExchangeLayout {
  struct Part {
    const plan::Slice *slice;
    uint64_t offset;
  };
  std::vector<Part> in, out;
  uint64_t inBytes = 0, outBytes = 0; ///< of what the entry uses of a block

  ExchangeLayout() = default;
  ExchangeLayout(const plan::Entry &entry);
};

/// The blocks of each kind in the plan's exchange arenas, on both sides.
class Exchange {
public:
  static constexpr unsigned slots = exchangeSlots;

  /// Takes the arenas of these roles of a plan that was proved; `device` and `host` are parallel to Plan.arenas and
  /// hold the addresses of those that lie there.
  void bind(const plan::Plan &plan, std::span<const CUdeviceptr> device, std::span<uint8_t *const> host);

  /// Copies what the host holds into the pinned block of step `number`.
  void pack(const ExchangeLayout &layout, const HostMirror &mirror, uint64_t number);
  /// Copies what step `number` brought back to where the host reads it.
  void unpack(const ExchangeLayout &layout, const HostMirror &mirror, uint64_t number) const;
  /// Whether step `number` has sent its number back.
  bool arrived(uint64_t number) const;

  /// Sends the block of a slot to the device, and one back to the host.
  Status upload(const Api &api, const ExchangeLayout &layout, unsigned slot, CUstream stream) const;
  Status download(const Api &api, const ExchangeLayout &layout, unsigned slot, CUstream stream) const;
  /// The first and the last work of a step, to be captured: from one block into the slices; from the slices into the
  /// other.
  Status enqueueIn(const Api &api, const ExchangeLayout &layout, unsigned slot, std::span<const CUdeviceptr> arenas,
                   CUstream stream) const;
  Status enqueueOut(const Api &api, const ExchangeLayout &layout, unsigned slot, std::span<const CUdeviceptr> arenas,
                    CUstream stream) const;

  static unsigned slotOf(uint64_t number) { return static_cast<unsigned>(number % slots); }

private:
  uint8_t *hostIn_[slots] = {}, *hostOut_[slots] = {};
  CUdeviceptr deviceIn_[slots] = {}, deviceOut_[slots] = {};
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_EXCHANGE_H
