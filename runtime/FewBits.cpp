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
  return std::nullopt;
}

uint64_t blockBytes(FewBits codec) { return codec == FewBits::Int8 ? fewBitsBlock : fewBitsBlock / 2; }

namespace {

float largestSize(std::span<const float> block) {
  float largest = 0.0F;
  for (float number : block)
    largest = std::max(largest, std::fabs(number));
  return largest;
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
  const float scale = largestSize(block), factor = 1.0F / std::max(scale, 1e-38F);
  for (size_t i = 0; i < block.size(); ++i) {
    const float number = std::clamp(block[i] * factor, -1.0F, 1.0F);
    // A number in the middle of two has the lower code: the first middle that is not below it.
    const auto code = static_cast<uint8_t>(std::lower_bound(middles.begin(), middles.end(), number) - middles.begin());
    codes[i / 2] = i % 2 ? static_cast<uint8_t>(codes[i / 2] | code) : static_cast<uint8_t>(code << 4);
  }
  return scale;
}

} // namespace

std::optional<uint64_t> encodeFewBits(FewBits codec, std::span<const float> numbers, uint8_t *codes, float *scales) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i]))
      return i;
  for (size_t first = 0; first < numbers.size(); first += fewBitsBlock, codes += blockBytes(codec)) {
    std::span<const float> block = numbers.subspan(first, fewBitsBlock);
    *scales++ = codec == FewBits::Int8 ? encodeInt8(block, codes) : encodeNf4(block, codes);
  }
  return std::nullopt;
}

void decodeFewBits(FewBits codec, const uint8_t *codes, const float *scales, std::span<float> numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    const float scale = scales[i / fewBitsBlock];
    if (codec == FewBits::Int8)
      numbers[i] = static_cast<float>(static_cast<int8_t>(codes[i])) * scale;
    else
      numbers[i] = nf4Numbers[i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4] * scale;
  }
}

} // namespace lowtide::rt
