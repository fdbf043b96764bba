//===- LaneTest.cpp - ways between the memories of a target ---------------===//

#include "lowtide/Analysis/CostModel.h"

#include <gtest/gtest.h>

using namespace lowtide;

namespace {

constexpr uint64_t bytes = uint64_t(1) << 30;

double getSeconds(const TargetInfo &target, llvm::StringRef from, llvm::StringRef to) {
  return getLane(target, from, to).getSeconds(bytes);
}

TEST(Lane, IsThatOfTheRowOrOfTheUsualOne) {
  TargetInfo cpu = *findTarget("cpu"), gpu = *findTarget("cuda"), bare = gpu;
  EXPECT_EQ(getLane(cpu, "device", "file").bytesPerSecond, cpu.links.front().bytesPerSecond);
  bare.links.clear();
  EXPECT_EQ(getLane(bare, "host", "device"), getLane(gpu, "host", "device"));
  bare.links.push_back({"host", "device", 1e9, 1e-3});
  EXPECT_DOUBLE_EQ(getSeconds(bare, "host", "device"), 1e-3 + double(bytes) / 1e9);
}

TEST(Lane, BetweenAGpuAndAFileTakesBothTimes) {
  TargetInfo cpu = *findTarget("cpu"), gpu = *findTarget("cuda");
  EXPECT_NEAR(getSeconds(gpu, "device", "file"), getSeconds(gpu, "device", "host") + getSeconds(cpu, "device", "file"),
              1e-9);
  EXPECT_NEAR(getSeconds(gpu, "file", "device"), getSeconds(gpu, "host", "device") + getSeconds(cpu, "file", "device"),
              1e-9);
  EXPECT_GT(getSeconds(gpu, "file", "device"), getSeconds(cpu, "file", "device"));
  // What a row says of its own.
  gpu.links.push_back({"device", "file", 5e9, 1e-5});
  EXPECT_DOUBLE_EQ(getSeconds(gpu, "device", "file"), 1e-5 + double(bytes) / 5e9);
}

} // namespace
