//===- NvtxTest.cpp - names of ranges reach a profiler ---------------------===//
#include "runtime/devices/Cuda/Nvtx.h"
#include "CudaRegression.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::cuda;
using namespace lowtide::rt::test;

namespace {

/// Every instruction says which layer of the ONNX file is responsible for it.
plan::Plan planWithLayers() {
  plan::Plan plan = cudaRegressionPlan();
  const char *layers[] = {"/model/linear/MatMul", "/loss/Sub", "/loss/MSE", "/model/linear/MatMul", "/model/linear/w"};
  for (int i = 0; i < 5; ++i)
    plan.mutable_entries(0)->mutable_instructions(i)->set_location(layers[i]);
  return plan;
}

bool trains() {
  auto session = Session::load(writeCudaRegression(planWithLayers()));
  std::vector<double> losses;
  if (!session || !(*session)->bind({}).isOk() || !train(**session, 2, 0, losses).isOk())
    return false;
  (*session)->device().measure((*session)->plan().entries(0), Measuring::Alone);
  return train(**session, 1, 0, losses).isOk() && losses.size() == 3 && (*session)->close().isOk();
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
  // A step is one graph: its layers show where they are recorded, and in a step of which each is timed.
  EXPECT_EXIT(trained(), testing::ExitedWithCode(0),
              "^/model/linear/MatMul\n/loss/Sub\n/loss/MSE\n/model/linear/MatMul\n/model/linear/w\n(.*\n)*"
              "train\ntrain\ntrain\n"
              ">/model/linear/MatMul\n>/loss/Sub\n>/loss/MSE\n>/model/linear/MatMul\n>/model/linear/w\n$");
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
