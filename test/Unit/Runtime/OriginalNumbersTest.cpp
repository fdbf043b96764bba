// f32 numbers of weights that lie in memory in 16 bits.
#include "runtime/OriginalNumbers.h"
#include "Regression.h"
#include "runtime/Element.h"
#include "runtime/Verify.h"

#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

plan::Binding weight(plan::DType type, uint64_t count) {
  plan::Binding binding;
  binding.set_name("w");
  binding.set_kind(plan::Binding::CONSTANT);
  binding.set_dtype(type);
  binding.add_dims(static_cast<int64_t>(count));
  binding.mutable_slice()->set_bytes(2 * count);
  return binding;
}

std::span<const uint8_t> bytesOf(const std::vector<float> &numbers) {
  return {reinterpret_cast<const uint8_t *>(numbers.data()), numbers.size() * sizeof(float)};
}

std::vector<float> numbersOf(std::span<const uint8_t> bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

struct OriginalNumbersOf : testing::TestWithParam<plan::DType> {
  // A third has no short form, 1e6 is beyond f16, 1e-30 below its smallest number.
  const std::vector<float> held{1.0f / 3, -2.0f / 3, 1e6f, 1e-30f, -0.0f};
  std::vector<uint8_t> narrow = std::vector<uint8_t>(2 * held.size());
  std::vector<uint8_t> room;

  void round(const std::vector<float> &numbers) {
    for (size_t i = 0; i < numbers.size(); ++i)
      storeElement(GetParam(), narrow.data() + 2 * i, numbers[i]);
  }
};

TEST_P(OriginalNumbersOf, AreReadWithoutACopyWhereMemoryHoldsThemRounded) {
  OriginalNumbers original(weight(GetParam(), held.size()), bytesOf(held));
  EXPECT_EQ(original.binding().dtype(), plan::F32);
  EXPECT_EQ(original.binding().slice().bytes(), 4 * held.size());
  round(held);
  EXPECT_EQ(original.read(narrow.data(), room).data(), bytesOf(held).data());
  EXPECT_TRUE(room.empty());
}

TEST_P(OriginalNumbersOf, FollowWhatSomethingElseWroteIntoMemory) {
  OriginalNumbers original(weight(GetParam(), held.size()), bytesOf(held));
  round(held);
  storeElement(GetParam(), narrow.data() + 2, 0.5);
  EXPECT_EQ(numbersOf(original.read(narrow.data(), room)),
            (std::vector<float>{held[0], 0.5f, held[2], held[3], held[4]}));
}

TEST_P(OriginalNumbersOf, TakeOthersAndGoBack) {
  OriginalNumbers original(weight(GetParam(), held.size()), bytesOf(held));
  const std::vector<float> others{0.1f, 0.2f, 0.3f, 0.4f, 0.5f};
  original.write(bytesOf(others).data(), narrow.data());
  std::vector<uint8_t> written = narrow;
  round(others);
  EXPECT_EQ(written, narrow);
  EXPECT_EQ(numbersOf(original.read(narrow.data(), room)), others);
  original.reset();
  round(held);
  EXPECT_EQ(numbersOf(original.read(narrow.data(), room)), held);
}

TEST_P(OriginalNumbersOf, TakeNoMemoryForNumbersThatAreHeld) {
  OriginalNumbers original(weight(GetParam(), held.size()), bytesOf(held));
  const std::vector<float> same = held;
  original.write(bytesOf(same).data(), narrow.data());
  EXPECT_EQ(original.read(narrow.data(), room).data(), bytesOf(held).data());
}

TEST_P(OriginalNumbersOf, AreTheRoundedOnesWhereNoneAreKnown) {
  OriginalNumbers original(weight(GetParam(), held.size()), {});
  round(held);
  const std::vector<float> read = numbersOf(original.read(narrow.data(), room));
  for (size_t i = 0; i < held.size(); ++i)
    EXPECT_EQ(double(read[i]), loadElement(GetParam(), narrow.data() + 2 * i));
}

INSTANTIATE_TEST_SUITE_P(Types, OriginalNumbersOf, testing::Values(plan::BF16, plan::F16));

TEST(KeptOriginals, AreOfConstantsInSixteenBits) {
  plan::Plan plan = regressionPlan();
  plan::ParameterSource &source = *plan.add_sources();
  source.set_name(plan.entries(0).bindings(0).name());
  EXPECT_TRUE(verifyPlan(plan).isOk()) << verifyPlan(plan).str();
  source.set_keeps_original(true);
  EXPECT_NE(verifyPlan(plan).str().find("keeps f32 numbers of what is no constant of bf16 or f16"), std::string::npos)
      << verifyPlan(plan).str();
}

} // namespace
