//===- FiberSwitch.h - from one stack to another ---------------------------===//
//
// Saves what the System V calling convention asks a callee to keep, changes the stack, and jumps. A jump, not a return:
// the processor predicts returns from the calls that it saw, and every return on another stack would be predicted
// wrong.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_FAKECUDA_FIBERSWITCH_H
#define LOWTIDE_RUNTIME_DEVICES_FAKECUDA_FIBERSWITCH_H

#include <cstdint>

namespace lowtide::rt::cuda::fake {

#if defined(__x86_64__)
inline constexpr bool haveFibers = true;
#else
inline constexpr bool haveFibers = false;
#endif

/// Leaves the running context in `*from` and goes on where `to` was left.
extern "C" void lowtide_fiber_switch(void **from, void *to);

/// A context that will start in `entry` (which never returns) on the stack that ends at `top`, a multiple of 16.
inline void *newFiber(uint8_t *top, void (*entry)()) {
  auto *slots = reinterpret_cast<uint64_t *>(top);
  // Below the top: the place where a caller would have left its return address, the address to jump to, six registers.
  slots -= 2;
  slots[0] = reinterpret_cast<uint64_t>(entry);
  slots[1] = 0;
  for (int i = 0; i < 6; ++i)
    *--slots = 0;
  return slots;
}

} // namespace lowtide::rt::cuda::fake

#endif // LOWTIDE_RUNTIME_DEVICES_FAKECUDA_FIBERSWITCH_H
