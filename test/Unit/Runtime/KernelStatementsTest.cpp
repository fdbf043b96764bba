// Plans whose kernels are not those of the machine code next to them.
#include "runtime/KernelStatements.h"
#include "Regression.h"
#include "runtime/Session.h"
#include "runtime/Verify.h"

#include <gtest/gtest.h>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

/// The plan loads with the code of the regression, or is refused in words.
std::string load(const plan::Plan &plan) {
  auto session = Session::load(writeRegression(testing::TempDir() + "statements.tide", plan));
  return session ? "" : session.status().str();
}

TEST(KernelStatements, TheCodeStatesWhatThePlanDoes) {
  EXPECT_EQ(load(regressionPlan()), "");
  const std::string code = readFile(LOWTIDE_TEST_KERNELS);
  std::span<const uint8_t> object(reinterpret_cast<const uint8_t *>(code.data()), code.size());
  EXPECT_TRUE(checkStatements(regressionPlan(), {object, {}, {}}).isOk());
}

TEST(KernelStatements, ExchangedSymbolsAreRefused) {
  plan::Plan plan = regressionPlan();
  std::swap(*plan.mutable_kernels(0)->mutable_symbol(), *plan.mutable_kernels(2)->mutable_symbol());
  const std::string said = load(plan);
  EXPECT_NE(said.find("the plan has 'momentum: 16 by 4, 16"), std::string::npos) << said;
  EXPECT_NE(said.find("the machine code 'momentum: 8 by 2, 8"), std::string::npos) << said;
}

TEST(KernelStatements, CodeForAnotherChipIsRefused) {
  // Of a plan for more processors, code with instructions that some of them lack.
  plan::Plan plan = regressionPlan();
  plan.set_target("cpu:x86-64-v4");
  ASSERT_TRUE(verifyPlan(plan).isOk());
  const std::string said = load(plan);
  EXPECT_NE(said.find("shared 0, for cpu:x86-64-v4', the machine code"), std::string::npos) << said;
  EXPECT_NE(said.find("shared 0, for cpu:x86-64-v3'"), std::string::npos) << said;
}

TEST(KernelStatements, APlaceThatTheCodeDoesNotTakeIsRefused) {
  plan::Plan plan = regressionPlan();
  addInPlace(*plan.mutable_kernels(0), 0, 0);
  ASSERT_TRUE(verifyPlan(plan).isOk());
  EXPECT_NE(load(plan).find("to 16x4 bytes, in place 0 on 0, scratch 0"), std::string::npos) << load(plan);
}

TEST(KernelStatements, AFootprintThatTheCodeHasNotIsRefused) {
  // Every launch is of the extent that the kernel states; its code would write beyond the result.
  plan::Plan plan = regressionPlan();
  plan.mutable_kernels(0)->mutable_footprints(0)->set_extent(2 * samples);
  for (plan::Entry &entry : *plan.mutable_entries())
    for (plan::Instruction &instruction : *entry.mutable_instructions())
      if (instruction.has_launch() && instruction.launch().kernel() == 0)
        instruction.mutable_launch()->set_extent(2 * samples);
  ASSERT_TRUE(verifyPlan(plan).isOk());
  EXPECT_NE(load(plan).find("subtract: 32 by 4"), std::string::npos) << load(plan);

  // A scratch that is too small for the code.
  plan = regressionPlan();
  plan.mutable_kernels(1)->set_scratch_bytes(0);
  for (plan::Entry &entry : *plan.mutable_entries())
    entry.mutable_instructions(2)->mutable_launch()->clear_scratch();
  ASSERT_TRUE(verifyPlan(plan).isOk());
  EXPECT_NE(load(plan).find("scratch 0"), std::string::npos) << load(plan);
}

TEST(KernelStatements, AKernelMayServeSeveralLaunchesAllOfThemStated) {
  plan::Plan plan = regressionPlan();
  addFootprint(*plan.mutable_kernels(0), 32, 4, {32, 32}, {32});
  EXPECT_NE(load(plan).find("subtract: 32 by 4"), std::string::npos);
  const std::string ptx = "// lowtide kernel subtract: 32 by 4, 32x4 32x4 to 32x4 bytes, scratch 0, threads 0, shared "
                          "0, for cpu:x86-64-v3\n"
                          "// lowtide kernel subtract: 16 by 4, 16x4 16x4 to 16x4 bytes, scratch 0, threads 0, shared "
                          "0, for cpu:x86-64-v3\n";
  std::span<const uint8_t> text(reinterpret_cast<const uint8_t *>(ptx.data()), ptx.size());
  plan.mutable_kernels()->DeleteSubrange(1, 2);
  EXPECT_TRUE(checkStatements(plan, {{}, {}, text}).isOk());
  EXPECT_FALSE(checkStatements(plan, {{}, {}, text.subspan(100)}).isOk());

  // A cubin has the same lines after its last byte, and has to have them whatever its PTX says: it is what runs.
  std::string image = readFile(LOWTIDE_TEST_KERNELS);
  std::span<const uint8_t> bare(reinterpret_cast<const uint8_t *>(image.data()), image.size());
  EXPECT_EQ(checkStatements(plan, {{}, bare, text}).where(), "section 'cubin'");
  image += "\n" + ptx;
  std::span<const uint8_t> cubin(reinterpret_cast<const uint8_t *>(image.data()), image.size());
  EXPECT_TRUE(checkStatements(plan, {{}, cubin, text}).isOk());
  EXPECT_TRUE(checkStatements(plan, {{}, cubin, {}}).isOk());
  EXPECT_EQ(checkStatements(plan, {{}, cubin, text.subspan(100)}).where(), "section 'ptx'");
  plan.mutable_kernels(0)->mutable_footprints(0)->set_extent(64);
  EXPECT_NE(checkStatements(plan, {{}, cubin, {}}).str().find("the machine code 'subtract: "), std::string::npos);
}

TEST(KernelStatements, AnyBytesAreNoMoreThanRefused) {
  const std::string code = readFile(LOWTIDE_TEST_KERNELS);
  // Cut anywhere, and every byte of header and section table set to what wraps.
  uint64_t table = 0;
  std::memcpy(&table, code.data() + 40, 8); // where the section headers begin
  ASSERT_LT(table, code.size());
  for (size_t bytes = 1; bytes <= table; bytes += 97) {
    std::vector<uint8_t> cut(code.begin(), code.begin() + static_cast<ptrdiff_t>(bytes));
    EXPECT_FALSE(checkStatements(regressionPlan(), {cut, {}, {}}).isOk());
  }
  for (size_t at = 0; at < 64; ++at) {
    std::vector<uint8_t> changed(code.begin(), code.end());
    changed[at] = 0xFF;
    (void)checkStatements(regressionPlan(), {changed, {}, {}}).isOk();
  }
  for (size_t at = code.size() - 1024; at < code.size(); ++at) {
    std::vector<uint8_t> changed(code.begin(), code.end());
    changed[at] = 0xFF;
    (void)checkStatements(regressionPlan(), {changed, {}, {}}).isOk();
  }
}

} // namespace
