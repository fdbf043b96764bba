//===- CudaRegression.h - the hand-written regression for cuda-emulated ----===//
#ifndef LOWTIDE_TEST_UNIT_CUDA_CUDAREGRESSION_H
#define LOWTIDE_TEST_UNIT_CUDA_CUDAREGRESSION_H

#include "Regression.h"

#include "runtime/ExchangeBlocks.h"
#include "runtime/Session.h"
#include "runtime/devices/FakeCuda/FakeCuda.h"

#include <cmath>
#include <gtest/gtest.h>

namespace lowtide::rt::test {

/// The plan of the CPU with grids instead of ranges, and operands at multiples of 16 bytes.
inline plan::Plan cudaRegressionPlan() {
  plan::Plan plan = regressionPlan();
  plan.set_target("cuda-emulated");
  const uint32_t threads[] = {32, 64, 32}, shared[] = {0, 64, 0};
  for (int i = 0; i < 3; ++i) {
    plan.mutable_kernels(i)->set_threads_per_block(threads[i]);
    plan.mutable_kernels(i)->set_shared_bytes(shared[i]);
    plan.mutable_kernels(i)->mutable_footprints(0)->set_extent(1);
    plan.mutable_kernels(i)->mutable_footprints(0)->set_grain(1);
  }
  auto move = [](plan::Slice &slice) {
    if (slice.arena() == Io && slice.offset() == 580)
      slice.set_offset(592);
  };
  for (plan::Entry &entry : *plan.mutable_entries()) {
    for (plan::Binding &binding : *entry.mutable_bindings())
      move(*binding.mutable_slice());
    for (plan::Instruction &instruction : *entry.mutable_instructions())
      if (instruction.has_launch()) {
        plan::Launch &launch = *instruction.mutable_launch();
        for (plan::Slice &slice : *launch.mutable_writes())
          move(slice);
        launch.set_extent(1), launch.set_grain(1);
      }
  }
  addExchangeArenas(plan);
  return plan;
}

/// `cubin`: machine code that the device is asked to take first.
inline std::string writeCudaRegression(const plan::Plan &plan = cudaRegressionPlan(), const std::string &cubin = "") {
  auto writer = ArtifactWriter::create(testing::TempDir() + "cuda-regression.tide");
  std::vector<float> w(width, 0.25f);
  bool good = (*writer)->add("plan", plan.SerializeAsString()).isOk() &&
              (*writer)->add("params", {reinterpret_cast<const char *>(w.data()), w.size() * 4}).isOk() &&
              (*writer)->add("code", readFile(LOWTIDE_CUDA_TEST_KERNELS)).isOk() &&
              (cubin.empty() || (*writer)->add("cubin", cubin).isOk()) && (*writer)->finish().isOk();
  return good ? testing::TempDir() + "cuda-regression.tide" : "";
}

inline void writeBatch(Session &session, int step) {
  auto x = session.tensor("train", "x"), y = session.tensor("train", "y");
  for (int64_t i = 0; i < samples; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < width; ++j) {
      float value = std::sin(static_cast<float>(step * 131 + i * 17 + j * 5));
      std::memcpy(x->data + (i * width + j) * 4, &value, 4);
      sum += value * static_cast<float>(j + 1) / 8;
    }
    std::memcpy(y->data + i * 4, &sum, 4);
  }
}

/// Hands `steps` steps over and reads each loss with the given lag; stops at the first failure.
inline Status train(Session &session, int steps, unsigned lag, std::vector<double> &losses) {
  for (int step = 0; step < steps + static_cast<int>(lag); ++step) {
    if (step < steps) {
      writeBatch(session, step);
      LOWTIDE_TRY(session.writeScalars("train", {0.05, step, 0, step * samples}));
      LOWTIDE_TRY(session.step("train"));
    }
    if (step < static_cast<int>(lag))
      continue;
    LOWTIDE_TRY(session.settle(step < steps ? lag : static_cast<unsigned>(steps + static_cast<int>(lag) - 1 - step)));
    losses.push_back(*session.metric("train", "loss"));
  }
  return Status::ok();
}

/// Runs `life` once, and again for every call of CUDA that it makes with that call failing (every one of the first 40
/// of a function, samples after them): a message that names the call and a remedy, and nothing left.
template <typename Life> void failEveryCall(Life &&life) {
  cuda::fake::Options options;
  options.threads = 1;
  cuda::fake::configure(options);
  Status whole = life();
  ASSERT_TRUE(whole.isOk()) << whole.str();
  std::map<std::string, uint64_t> calls = cuda::fake::report().calls;
  for (const auto &[name, count] : calls)
    for (uint64_t n = 1; n <= count; n += n < 40 ? 1 : 37) {
      options.failCall = name, options.failAt = n;
      cuda::fake::configure(options);
      Status status = life();
      std::vector<std::string> live = cuda::fake::report().live;
      ASSERT_TRUE(live.empty()) << name << ", call " << n << ": " << status.str() << ": left: " << live[0];
      // What only describes a choice may fail without harm, and so may engines, after which there are others.
      bool harmless = name == "cublasLtMatmulAlgoConfigGetAttribute" || name == "cudnnBackendFinalize" ||
                      name == "cudnnBackendGetAttribute";
      if (status.isOk() && harmless)
        continue;
      ASSERT_FALSE(status.isOk()) << name << ", call " << n;
      EXPECT_TRUE(status.str().find(name) != std::string::npos || harmless) << "call " << n << ": " << status.str();
      EXPECT_NE(status.message().find("; "), std::string::npos) << "names no remedy: " << status.str();
    }
}

/// A product of an m × k and a k × n matrix.
inline plan::Call gemmCall(int64_t m, int64_t n, int64_t k) {
  plan::Call call;
  call.set_callee("gemm");
  set(call, "m", m), set(call, "n", n), set(call, "k", k);
  return call;
}

} // namespace lowtide::rt::test

#endif // LOWTIDE_TEST_UNIT_CUDA_CUDAREGRESSION_H
