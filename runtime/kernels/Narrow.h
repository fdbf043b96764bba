//===- Narrow.h - f16 and bf16 in memory, f32 in registers -----------------===//
//
// Conversion of runs of elements. Widening is exact; narrowing rounds to nearest, ties to even, with subnormal numbers
// and infinities as IEEE 754 has them; NaN stays NaN. Loops are plain: the compiler vectorizes them.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_NARROW_H
#define LOWTIDE_RUNTIME_KERNELS_NARROW_H

#include <bit>
#include <cstdint>

namespace lowtide::rt::kernels {

struct BFloat16 {
  uint16_t bits;
};
using Float16 = _Float16;

inline float widen(float x) { return x; }
inline float widen(Float16 x) { return static_cast<float>(x); }
inline float widen(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

inline void narrow(float x, float &to) { to = x; }
inline void narrow(float x, Float16 &to) { to = static_cast<Float16>(x); }
inline void narrow(float x, BFloat16 &to) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  bool isNaN = (bits & 0x7fffffff) > 0x7f800000;
  to.bits = static_cast<uint16_t>(isNaN ? 0x7fc0 : rounded);
}

template <typename S> inline void widenRun(float *__restrict to, const S *__restrict from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = widen(from[i]);
}
template <typename S> inline void narrowRun(S *__restrict to, const float *__restrict from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    narrow(from[i], to[i]);
}

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_KERNELS_NARROW_H
