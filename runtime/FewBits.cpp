//===- FewBits.cpp - frozen matrices in codes of few bits ------------------===//

#include "runtime/FewBits.h"

#include <algorithm>
#include <cmath>

namespace lowtide::rt {

std::optional<FewBits> findFewBits(std::string_view name) {
  if (name == "int8")
    return FewBits::Int8;
  if (name == "nf4")
    return FewBits::Nf4;
  if (name == "fp8")
    return FewBits::Fp8;
  return std::nullopt;
}

namespace {

/// Below it a block is zeros: scales that are no normal numbers lose bits, and what is decoded from them has others.
constexpr float smallestLargest = 0x1p-116F;

float largestSize(std::span<const float> block) {
  float largest = 0.0F;
  for (float number : block)
    largest = std::max(largest, std::fabs(number));
  return largest < smallestLargest ? 0.0F : largest;
}

float encodeInt8(std::span<const float> block, uint8_t *codes) {
  const float scale = largestSize(block) / 127.0F;
  for (size_t i = 0; i < block.size(); ++i) {
    const float code = scale > 0.0F ? std::clamp(std::nearbyint(block[i] / scale), -127.0F, 127.0F) : 0.0F;
    codes[i] = static_cast<uint8_t>(static_cast<int8_t>(code));
  }
  return scale;
}

float encodeNf4(std::span<const float> block, uint8_t *codes) {
  static const auto middles = [] {
    std::array<float, nf4Numbers.size() - 1> found{};
    for (size_t i = 0; i < found.size(); ++i)
      found[i] = (nf4Numbers[i] + nf4Numbers[i + 1]) / 2.0F;
    return found;
  }();
  const float scale = largestSize(block), factor = scale > 0.0F ? 1.0F / scale : 0.0F;
  for (size_t i = 0; i < block.size(); ++i) {
    const float number = std::clamp(block[i] * factor, -1.0F, 1.0F);
    // A number in the middle of two has the lower code: the first middle that is not below it.
    const auto code = static_cast<uint8_t>(std::lower_bound(middles.begin(), middles.end(), number) - middles.begin());
    codes[i / 2] = i % 2 ? static_cast<uint8_t>(codes[i / 2] | code) : static_cast<uint8_t>(code << 4);
  }
  return scale;
}

/// The largest number of a float8_e4m3fn.
constexpr float largestE4M3 = 448.0F;

/// The code of the nearest number, ties to even; beyond the largest one its code.
uint8_t nearestE4M3(float number) {
  const float size = std::min(std::fabs(number), largestE4M3);
  const int power = size > 0.0F ? std::max(std::ilogb(size), -6) : -6;
  // Eighths of the power of two: 16 of them are 8 of the next power, whose code is the next one.
  const int eighths = static_cast<int>(std::nearbyint(std::ldexp(size, 3 - power)));
  const int code = eighths + (power + 6) * 8;
  return static_cast<uint8_t>(std::signbit(number) ? code | 128 : code);
}

float encodeFp8(std::span<const float> block, uint8_t *codes) {
  const float scale = largestSize(block) / largestE4M3;
  for (size_t i = 0; i < block.size(); ++i)
    codes[i] = scale > 0.0F ? nearestE4M3(block[i] / scale) : uint8_t(0);
  return scale;
}

float encodeBlock(FewBits codec, std::span<const float> block, uint8_t *codes) {
  switch (codec) {
  case FewBits::Int8:
    return encodeInt8(block, codes);
  case FewBits::Nf4:
    return encodeNf4(block, codes);
  case FewBits::Fp8:
    return encodeFp8(block, codes);
  }
  return 0.0F;
}

float numberOf(FewBits codec, const uint8_t *codes, size_t i) {
  switch (codec) {
  case FewBits::Int8:
    return static_cast<float>(static_cast<int8_t>(codes[i]));
  case FewBits::Nf4:
    return nf4Numbers[i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4];
  case FewBits::Fp8:
    return readE4M3(codes[i]);
  }
  return 0.0F;
}

} // namespace

std::optional<uint64_t> encodeFewBits(FewBits codec, std::span<const float> numbers, uint8_t *codes, float *scales) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i]))
      return i;
  for (size_t first = 0; first < numbers.size(); first += fewBitsBlock, codes += blockBytes(codec)) {
    std::span<const float> block = numbers.subspan(first, fewBitsBlock);
    *scales++ = encodeBlock(codec, block, codes);
  }
  return std::nullopt;
}

void decodeFewBits(FewBits codec, const uint8_t *codes, const float *scales, std::span<float> numbers) {
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = numberOf(codec, codes, i) * scales[i / fewBitsBlock];
}

} // namespace lowtide::rt
