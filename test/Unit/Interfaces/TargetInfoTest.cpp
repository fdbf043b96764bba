//===- TargetInfoTest.cpp - the table of targets ---------------------------===//

#include "lowtide/Interfaces/TargetInfo.h"
#include "runtime/Machines.h"

#include <gmock/gmock.h>

using namespace lowtide;
using testing::HasSubstr;

TEST(TargetInfo, EveryRowCanBeCompiledFor) {
  for (const std::string &name : listTargetNames()) {
    std::optional<TargetInfo> target = findTarget(name);
    ASSERT_TRUE(target) << name;
    EXPECT_EQ(target->findFault(), std::nullopt) << name;
    // What an artifact names is a row, and one for the same machines.
    std::optional<TargetInfo> named = findTarget(target->getArtifactTarget());
    ASSERT_TRUE(named) << name;
    EXPECT_EQ(named->kind, target->kind);
    EXPECT_EQ(named->chip, target->chip);
    EXPECT_NE(rt::describeMachines(target->getArtifactTarget()), "") << name;
    EXPECT_EQ(target->hasLibraries(), target->kind != TargetKind::Reference) << name;
  }
}

TEST(TargetInfo, NamesMeanWhatTheySay) {
  EXPECT_THAT(findTarget("cpu")->name, testing::AnyOf("cpu:x86-64-v3", "cpu:x86-64-v4")); // this machine
  EXPECT_EQ(getDefaultTarget().name, "cpu:x86-64-v3");
  EXPECT_EQ(findTarget("cuda")->name, "cuda:sm_90");
  EXPECT_EQ(findTarget("cuda:A100 80GB")->name, "cuda:a100-80gb");
  for (const char *none :
       {"", "tpu", "sm_90", "cuda:", "cuda:sm_70", "cpu:sm_90", "cuda:cuda:sm_90", "reference:x86-64-v3"})
    EXPECT_FALSE(findTarget(none)) << none;
  EXPECT_FALSE(findTarget("cuda-emulated")->chip.size());
  EXPECT_EQ(findTarget("cuda:h200")->getArtifactTarget(), "cuda:sm_90");
}

/// Plans of the default GPU were made with these figures: others would make other plans.
TEST(TargetInfo, TheUsualGpuIsAnH100) {
  for (const char *name : {"cuda:sm_90", "cuda:h100", "cuda:sm_86", "cuda-emulated"}) {
    const TargetInfo target = *findTarget(name);
    EXPECT_EQ(target.processors, 132u) << name;
    EXPECT_EQ(target.libraryFlops, 3e14);
    EXPECT_EQ(target.kernelFlops, 3e13);
    EXPECT_EQ(target.bytesPerSecond, 3e12);
    EXPECT_EQ(target.launchSeconds, 3e-6);
  }
  EXPECT_EQ(findTarget("cuda:sm_80")->processors, 108u);
  // Figures that were not looked up are not stated.
  EXPECT_TRUE(findTarget("cuda:sm_86")->memory.empty());
  EXPECT_TRUE(findTarget("cuda:sm_86")->rates.empty());
}

/// What the planner counts with is H100's in the proportion of the data sheets.
TEST(TargetInfo, EstimatesFollowTheSheets) {
  const Card &usual = *findCard("h100");
  for (const Card &card : listCards())
    if (card.processors) {
      EXPECT_NEAR(card.libraryFlops / usual.libraryFlops, card.bf16 / usual.bf16, 0.01) << card.name.str();
      EXPECT_NEAR(card.kernelFlops / usual.kernelFlops, card.f32 / usual.f32, 0.01) << card.name.str();
      EXPECT_NEAR(card.bytesPerSecond / usual.bytesPerSecond, card.memoryRate / usual.memoryRate, 0.01)
          << card.name.str();
    } else {
      EXPECT_EQ(card.libraryFlops, 0) << card.name.str();
    }
}

TEST(TargetInfo, MemoryOfACardIsWhatFitCounts) {
  const MemorySpace *memory = findTarget("cuda:h100")->findMemory("device");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->bytes - memory->reservedBytes, findCard("H100")->getBytes());
  EXPECT_EQ(memory->bytes, 85520809984u);
  EXPECT_FALSE(findTarget("cuda:h100")->findMemory("file"));
}

TEST(TargetInfo, SaysWhatIsWrongWithFigures) {
  TargetInfo target = *findTarget("cuda:h100");
  auto fault = [&](auto change) {
    TargetInfo wrong = target;
    change(wrong);
    return wrong.findFault().value_or("");
  };
  EXPECT_THAT(fault([](TargetInfo &t) { t.name = ""; }), HasSubstr("name is empty"));
  EXPECT_THAT(fault([](TargetInfo &t) { t.chip = "x86-64-v3"; }), HasSubstr("chip is 'x86-64-v3'; cuda has sm_80"));
  EXPECT_THAT(fault([](TargetInfo &t) { t.processors = 257; }), HasSubstr("a GPU has 1 to 256"));
  EXPECT_THAT(fault([](TargetInfo &t) { t.bytesPerSecond = 1e300 * 1e300; }), HasSubstr("memory_bytes_per_second"));
  EXPECT_THAT(fault([](TargetInfo &t) { t.memory.push_back(t.memory[0]); }), HasSubstr("'device' twice"));
  EXPECT_THAT(fault([](TargetInfo &t) { t.links[0].latencySeconds = -1; }), HasSubstr("latency_seconds"));
  EXPECT_EQ(fault([](TargetInfo &) {}), "");
}

TEST(Machines, AreSaidInWords) {
  EXPECT_EQ(rt::describeMachines("cuda:sm_90"), "NVIDIA GPUs of compute capability 9.0 and later");
  EXPECT_EQ(rt::describeMachines("cuda:sm_103"), "NVIDIA GPUs of compute capability 10.3 and later");
  EXPECT_EQ(rt::describeMachines("cuda:sm_90a"), "NVIDIA GPUs of compute capability 9.0, and no others");
  EXPECT_THAT(rt::describeMachines("cpu:x86-64-v4"), HasSubstr("AVX-512"));
  for (const char *unknown : {"", "cuda:", "cuda:sm_", "cuda:sm_90b", "cuda:sm_x", "tpu"})
    EXPECT_EQ(rt::describeMachines(unknown), "") << unknown;
}

TEST(Machines, RefusesOlderGpus) {
  EXPECT_EQ(rt::refuseGpu("cuda:sm_90", 80),
            "compiled for cuda:sm_90, which runs on NVIDIA GPUs of compute capability 9.0 and later; this GPU has 8.0: "
            "compile with --target=cuda:sm_80");
  EXPECT_THAT(rt::refuseGpu("cuda:sm_80", 75), HasSubstr("this GPU has 7.5, and no target is for one below 8.0"));
  EXPECT_THAT(rt::refuseGpu("cuda:sm_90a", 100), HasSubstr("9.0, and no others; this GPU has 10.0"));
  for (const char *target : {"cuda:sm_90", "cuda:sm_80", "cuda:sm_90a", "cuda-emulated", "cpu:x86-64-v3", "tpu"})
    EXPECT_EQ(rt::refuseGpu(target, 90), "") << target;
}
