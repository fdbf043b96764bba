//===- FewBits.h - frozen matrices in codes of few bits --------------------===//
//
// Blocks of 64 numbers in row-major order; each has its codes and one f32 scale. Compiler and runtime share the rules.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_FEWBITS_H
#define LOWTIDE_RUNTIME_FEWBITS_H

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace lowtide::rt {

/// Int8: number = code · scale, code from −127 to 127. Nf4: number = nf4Numbers[code] · scale, two codes in a byte, the
/// first one in the high bits, as bitsandbytes packs them. Fp8: number = readE4M3(code) · scale.
enum class FewBits { Int8, Nf4, Fp8 };

inline constexpr uint64_t fewBitsBlock = 64;

/// What the codes of NF4 stand for (Dettmers et al., "QLoRA: Efficient Finetuning of Quantized LLMs", appendix E).
inline constexpr std::array<float, 16> nf4Numbers = {-1.0F,
                                                     -0.6961928009986877F,
                                                     -0.5250730514526367F,
                                                     -0.39491748809814453F,
                                                     -0.28444138169288635F,
                                                     -0.18477343022823334F,
                                                     -0.09105003625154495F,
                                                     0.0F,
                                                     0.07958029955625534F,
                                                     0.16093020141124725F,
                                                     0.24611230194568634F,
                                                     0.33791524171829224F,
                                                     0.44070982933044434F,
                                                     0.5626170039176941F,
                                                     0.7229568362236023F,
                                                     1.0F};

/// The codec of that name, "int8", "nf4" or "fp8"; nothing where there is none.
std::optional<FewBits> findFewBits(std::string_view name);
/// Bytes of the codes of a block.
inline uint64_t blockBytes(FewBits codec) { return codec == FewBits::Nf4 ? fewBitsBlock / 2 : fewBitsBlock; }

/// The number that a byte stands for as a float8_e4m3fn: a sign, four bits of exponent, three of fraction; all ones:
/// NaN.
inline float readE4M3(uint8_t code) {
  const int power = (code >> 3) & 15, fraction = code & 7;
  if (power == 15 && fraction == 7)
    return std::bit_cast<float>(code & 128 ? 0xFFC00000U : 0x7FC00000U);
  // Numbers of the smallest power have no leading one.
  const float size =
      power ? std::ldexp(static_cast<float>(8 + fraction), power - 10) : std::ldexp(static_cast<float>(fraction), -9);
  return code & 128 ? -size : size;
}

/// Fills codes (blockBytes a block) and scales (one a block). `numbers` are whole blocks. Returns the first number that
/// is not finite, for which there is no code; nothing where all were encoded.
///
/// Int8: scale = largest size / 127, code = number / scale to nearest even, as ONNX QuantizeLinear has it. Nf4: scale =
/// largest size, and the code whose number is nearest to number · (1 / scale), the lower one of two; code for code what
/// bitsandbytes' quantize_4bit makes on a CPU. Fp8: scale = largest size / 448, code = number / scale to nearest even,
/// as PyTorch casts to float8_e4m3fn. A block without a number of at least 2^-116 is zeros.
///
/// Numbers that were decoded get the codes and scales that they were decoded from.
std::optional<uint64_t> encodeFewBits(FewBits codec, std::span<const float> numbers, uint8_t *codes, float *scales);
/// The numbers that the step computes with, bit for bit.
void decodeFewBits(FewBits codec, const uint8_t *codes, const float *scales, std::span<float> numbers);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_FEWBITS_H
