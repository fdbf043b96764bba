//===- NvtxTest.cpp - names of ranges reach a profiler ---------------------===//
#include "runtime/devices/Cuda/Nvtx.h"
#include "CudaRegression.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace lowtide::rt;
using namespace lowtide::rt::cuda;
using namespace lowtide::rt::test;

namespace {

bool trains() {
  auto session = Session::load(writeCudaRegression());
  std::vector<double> losses;
  return session && (*session)->bind({}).isOk() && train(**session, 2, 0, losses).isOk() && losses.size() == 2 &&
         (*session)->close().isOk();
}

const char *namesSeen() {
  void *library = dlopen(LOWTIDE_NVTX_PROFILER, RTLD_LAZY | RTLD_NOLOAD);
  auto names = library ? reinterpret_cast<const char *(*)()>(dlsym(library, "namesOfRanges")) : nullptr;
  auto depth = library ? reinterpret_cast<int (*)()>(dlsym(library, "depthOfRanges")) : nullptr;
  return !names ? "not loaded" : depth() ? "a range does not end" : names();
}

TEST(NvtxDeathTest, NamesReachAProfiler) {
  // A process of its own: a profiler is looked for once.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto trained = [] {
    setenv("NVTX_INJECTION64_PATH", LOWTIDE_NVTX_PROFILER, 1);
    const bool isTrained = trains();
    std::fputs(namesSeen(), stderr);
    std::exit(!isTrained);
  };
  EXPECT_EXIT(trained(), testing::ExitedWithCode(0), "train\n");
  auto refused = [] {
    setenv("NVTX_INJECTION64_PATH", LOWTIDE_NVTX_PROFILER, 1);
    setenv("LOWTIDE_TEST_REFUSE", "1", 1);
    const NvtxApi api = loadNvtx();
    std::exit(api.nvtxRangePushA || api.nvtxRangePop || !trains());
  };
  EXPECT_EXIT(refused(), testing::ExitedWithCode(0), "");
  auto absent = [] {
    setenv("NVTX_INJECTION64_PATH", "/nowhere/libprofiler.so", 1);
    std::exit(loadNvtx().nvtxRangePushA || !trains());
  };
  EXPECT_EXIT(absent(), testing::ExitedWithCode(0), "");
}

} // namespace
