//===- VectorExp.h - exponentials of a vector ------------------------------===//
//
// exp(x) = 2^n · exp(r), r = x − n · ln 2 in two parts, exp(r) by a polynomial of degree 6 on |r| ≤ ln 2 / 2 (S. L.
// Moshier, Cephes 2.8, expf.c); within two units of the last place. What is below the smallest normal number is 0.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_VECTOREXP_H
#define LOWTIDE_RUNTIME_KERNELS_VECTOREXP_H

#include "runtime/kernels/Tile.h"

namespace lowtide::rt::kernels {

[[gnu::always_inline]] inline Vec<float> exponential(Vec<float> x) {
  typedef int32_t Bits __attribute__((vector_size(32)));
  constexpr float lowest = -87.336544f, highest = 88.722838f, rounder = 12582912.0f; // 1.5 · 2^23
  const Vec<float> lowers = Vec<float>{} + lowest, uppers = Vec<float>{} + highest;
  Vec<float> y = x < lowers ? lowers : x;
  y = y > uppers ? uppers : y;
  const Vec<float> n = (y * 1.44269504088896341f + rounder) - rounder;
  const Vec<float> r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec<float> p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^128 is no number: half of it, twice.
  const Bits half = __builtin_convertvector(n, Bits) >> 1, rest = __builtin_convertvector(n, Bits) - half;
  const Vec<float> power = (Vec<float>)((half + 127) << 23), remaining = (Vec<float>)((rest + 127) << 23);
  const Vec<float> value = p * power * remaining;
  return x < lowers ? Vec<float>{} : value;
}

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_KERNELS_VECTOREXP_H
