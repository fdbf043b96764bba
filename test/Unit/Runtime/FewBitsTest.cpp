// Frozen matrices in codes of few bits: codes of bitsandbytes, numbers between two codes, blocks of zeros, what has no
// code.
#include "runtime/FewBits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace lowtide::rt;

namespace {

struct Coded {
  std::vector<uint8_t> codes;
  std::vector<float> scales, decoded;
  std::optional<uint64_t> fault;
};

Coded encode(FewBits codec, const std::vector<float> &numbers) {
  const uint64_t blocks = numbers.size() / fewBitsBlock;
  Coded result{std::vector<uint8_t>(blocks * blockBytes(codec)), std::vector<float>(blocks),
               std::vector<float>(numbers.size()), std::nullopt};
  result.fault = encodeFewBits(codec, numbers, result.codes.data(), result.scales.data());
  decodeFewBits(codec, result.codes.data(), result.scales.data(), result.decoded);
  return result;
}

/// -29/7, -28/7, …, 34/7.
std::vector<float> ramp() {
  std::vector<float> numbers;
  for (int i = 0; i < 64; ++i)
    numbers.push_back(static_cast<float>(i - 29) / 7.0F);
  return numbers;
}

TEST(FewBits, HasTheCodesOfBitsandbytes) {
  // bitsandbytes 0.50.2 on a CPU: functional.quantize_4bit(ramp, blocksize=64, quant_type="nf4").
  const std::vector<uint8_t> wanted = {0x01, 0x11, 0x11, 0x11, 0x12, 0x22, 0x22, 0x33, 0x33, 0x44, 0x44,
                                       0x55, 0x56, 0x66, 0x77, 0x78, 0x88, 0x99, 0xAA, 0xAB, 0xBB, 0xBC,
                                       0xCC, 0xCD, 0xDD, 0xDE, 0xEE, 0xEE, 0xEE, 0xEF, 0xFF, 0xFF};
  const Coded coded = encode(FewBits::Nf4, ramp());
  EXPECT_EQ(coded.codes, wanted);
  EXPECT_EQ(coded.scales, std::vector<float>{34.0F / 7.0F});
  EXPECT_EQ(coded.decoded[63], 34.0F / 7.0F);
  EXPECT_EQ(coded.decoded[0], -34.0F / 7.0F);
  EXPECT_FALSE(coded.fault);
}

TEST(FewBits, GivesTheMiddleOfTwoNumbersTheLowerCode) {
  std::vector<float> numbers(64, 0.0F);
  for (size_t i = 0; i < 15; ++i)
    numbers[i] = (nf4Numbers[i] + nf4Numbers[i + 1]) / 2.0F;
  numbers[15] = 1.0F;
  const Coded coded = encode(FewBits::Nf4, numbers);
  const std::vector<uint8_t> first(coded.codes.begin(), coded.codes.begin() + 8);
  EXPECT_EQ(first, (std::vector<uint8_t>{0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF}));
}

TEST(FewBits, RoundsInt8ToNearestEven) {
  std::vector<float> numbers(64, 0.0F);
  numbers[0] = -127.0F;
  const float halves[] = {0.5F, 1.5F, -0.5F, -2.5F, 126.49F, 126.5F};
  for (size_t i = 0; i < std::size(halves); ++i)
    numbers[i + 1] = halves[i];
  const Coded coded = encode(FewBits::Int8, numbers);
  EXPECT_EQ(coded.scales, std::vector<float>{1.0F});
  const std::vector<float> first(coded.decoded.begin(), coded.decoded.begin() + 7);
  EXPECT_EQ(first, (std::vector<float>{-127, 0, 2, 0, -2, 126, 126}));
}

TEST(FewBits, RoundsFp8ToTheNearestNumber) {
  // torch.tensor(numbers).to(torch.float8_e4m3fn).view(torch.uint8): ties, what rounds up into the next power and to
  // the largest, the smallest powers, halves of the smallest number.
  const float chosen[] = {-448.0F,  1.0F,   1.0625F,    1.1875F,    1.96875F,  -3.9F,   447.0F,
                          432.0F,   431.9F, 0x1p-6F,    0x1.ep-7F,  0x1.fp-7F, 0x1p-9F, 0x1p-10F,
                          0x3p-10F, -0.0F,  0x1.1p-10F, -0x1p-149F, 0x1.7p-8F};
  const std::vector<uint8_t> wanted = {0xFE, 0x38, 0x38, 0x3A, 0x40, 0xC8, 0x7E, 0x7E, 0x7D, 0x08,
                                       0x08, 0x08, 0x01, 0x00, 0x02, 0x80, 0x01, 0x80, 0x03};
  std::vector<float> numbers(64, 0.0F);
  std::copy(std::begin(chosen), std::end(chosen), numbers.begin());
  const Coded coded = encode(FewBits::Fp8, numbers);
  EXPECT_EQ(coded.scales, std::vector<float>{1.0F});
  EXPECT_EQ(std::vector<uint8_t>(coded.codes.begin(), coded.codes.begin() + wanted.size()), wanted);
  EXPECT_EQ(coded.decoded[1], 1.0F);
  EXPECT_EQ(coded.decoded[12], 0x1p-9F);
  EXPECT_TRUE(std::isnan(readE4M3(0x7F)));
}

TEST(FewBits, KeepsBlocksOfZerosAndOfTheSmallest) {
  for (FewBits codec : {FewBits::Int8, FewBits::Nf4, FewBits::Fp8}) {
    std::vector<float> numbers(128, 0.0F);
    numbers[64] = std::numeric_limits<float>::denorm_min();
    const Coded coded = encode(codec, numbers);
    EXPECT_FALSE(coded.fault);
    for (size_t i = 0; i < 128; ++i)
      EXPECT_TRUE(std::fabs(coded.decoded[i]) <= numbers[64]) << i;
    EXPECT_EQ(coded.scales[0], 0.0F);
  }
}

// A checkpoint holds decoded numbers, and a run that goes on from it computes with them.
TEST(FewBits, GivesDecodedNumbersTheirCodesAgain) {
  std::mt19937 random(1);
  // From the smallest numbers, where a scale has few bits, to the largest.
  std::uniform_int_distribution<int> powers(-149, 124);
  std::normal_distribution<float> sizes;
  for (FewBits codec : {FewBits::Int8, FewBits::Nf4, FewBits::Fp8}) {
    std::vector<float> numbers;
    for (int block = 0; block < 20000; ++block) {
      const int power = block % 2 ? powers(random) : -5;
      for (uint64_t i = 0; i < fewBitsBlock; ++i)
        numbers.push_back(std::ldexp(sizes(random), power));
    }
    const Coded once = encode(codec, numbers), again = encode(codec, once.decoded);
    ASSERT_FALSE(once.fault || again.fault);
    EXPECT_TRUE(once.codes == again.codes && once.scales == again.scales) << "codec " << static_cast<int>(codec);
    const auto isSame = [](float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); };
    EXPECT_TRUE(std::ranges::equal(once.decoded, again.decoded, isSame)) << "codec " << static_cast<int>(codec);
  }
}

TEST(FewBits, NamesTheNumberThatHasNoCode) {
  for (FewBits codec : {FewBits::Int8, FewBits::Nf4, FewBits::Fp8})
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      std::vector<float> numbers = ramp();
      numbers[17] = bad;
      EXPECT_EQ(encode(codec, numbers).fault, 17U);
    }
}

TEST(FewBits, KnowsItsNames) {
  EXPECT_EQ(findFewBits("int8"), FewBits::Int8);
  EXPECT_EQ(findFewBits("nf4"), FewBits::Nf4);
  EXPECT_EQ(findFewBits("fp8"), FewBits::Fp8);
  EXPECT_FALSE(findFewBits("fp4"));
}

} // namespace
