//===- Halves.h - f32 numbers in two halves --------------------------------===//
//
// A parameter `w` of bf16 with a state `w.low_half` of i16 are the halves of f32 numbers: `w` the nearest bf16 (ties
// away from zero), the state what is left of their bits (nn.high_half, nn.low_half).
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_HALVES_H
#define LOWTIDE_RUNTIME_HALVES_H

#include <bit>
#include <cstdint>
#include <string_view>

namespace lowtide::rt {

/// What the name of the state has after the parameter's.
inline constexpr std::string_view lowHalfSuffix = ".low_half";

struct Halves {
  uint16_t high, low;
};

/// Of a NaN the halves of its bits, made quiet.
inline Halves splitNumber(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  const bool isNaN = (bits & 0x7fffffff) > 0x7f800000;
  const uint32_t high = (isNaN ? bits | 0x00400000 : bits + 0x8000) >> 16;
  return {static_cast<uint16_t>(high), static_cast<uint16_t>(bits)};
}

inline float joinHalves(Halves halves) {
  const uint32_t upper = static_cast<uint32_t>(halves.high) << 16;
  const bool isNaN = (upper & 0x7fffffff) > 0x7f800000;
  const auto low = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(halves.low)));
  return std::bit_cast<float>(isNaN ? upper | halves.low : upper + low);
}

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_HALVES_H
