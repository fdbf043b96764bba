//===- BoundRange.h - copies, fills and operands with addresses ------------===//
//
// What the programs of all devices read from a plan in the same way. `Address` is a pointer of the host or an address
// of a device; `addressOf` gives that of a slice.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_BOUNDRANGE_H
#define LOWTIDE_RUNTIME_DEVICES_BOUNDRANGE_H

#include "plan.pb.h"

#include <cstdint>
#include <vector>

namespace lowtide::rt {

/// A copy or a fill; the steps are bytes per round of the repeat around it, negative where a range moves back.
template <typename Address> struct BoundRange {
  Address source{}, target{};
  uint64_t bytes = 0, pattern = 0;
  int64_t sourceStep = 0, targetStep = 0;
  uint32_t patternBytes = 1;

  template <typename AddressOf> void bind(const plan::Copy &copy, AddressOf &&addressOf) {
    source = addressOf(copy.source()), target = addressOf(copy.target()), bytes = copy.target().bytes();
    sourceStep = copy.source_step(), targetStep = copy.target_step();
  }
  template <typename AddressOf> void bind(const plan::Fill &fill, AddressOf &&addressOf) {
    target = addressOf(fill.target()), bytes = fill.target().bytes();
    pattern = fill.pattern(), patternBytes = fill.pattern_bytes();
  }
};

/// Addresses of slices, as elements of type `To`.
template <typename To, typename Slices, typename AddressOf>
std::vector<To> addressesOf(const Slices &slices, AddressOf &&addressOf) {
  std::vector<To> addresses;
  for (const plan::Slice &slice : slices)
    addresses.push_back(addressOf(slice));
  return addresses;
}

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_BOUNDRANGE_H
