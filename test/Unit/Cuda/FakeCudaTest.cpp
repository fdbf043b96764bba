//===- FakeCudaTest.cpp - sessions on the fake CUDA device -----------------===//

#include "CudaRegression.h"

#include "runtime/devices/FakeCuda/FakeCuda.h"

#include <gmock/gmock.h>

#include <set>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;
namespace fake = lowtide::rt::cuda::fake;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

std::vector<double> trainOnCpu(int steps) {
  auto session = Session::load(writeRegression(testing::TempDir() + "cpu-regression.tide", regressionPlan()));
  std::vector<double> losses;
  EXPECT_TRUE((*session)->bind({}).isOk());
  EXPECT_TRUE(train(**session, steps, 0, losses).isOk());
  return losses;
}

std::vector<double> trainOnFake(int steps, unsigned lag, uint64_t seed) {
  auto session = Session::load(writeCudaRegression());
  BindOptions options;
  options.schedule = seed;
  options.threads = 2;
  std::vector<double> losses;
  Status status = (*session)->bind(options);
  EXPECT_TRUE(status.isOk()) << status.str();
  status = train(**session, steps, lag, losses);
  EXPECT_TRUE(status.isOk()) << status.str();
  EXPECT_EQ((*session)->plannedBytes(), (*session)->allocatedBytes());
  status = (*session)->close();
  EXPECT_TRUE(status.isOk()) << status.str();
  return losses;
}

TEST(FakeCuda, TrainsLikeTheCpu) {
  fake::configure({});
  std::vector<double> cpu = trainOnCpu(30), cuda = trainOnFake(30, 0, 0);
  ASSERT_EQ(cuda.size(), cpu.size());
  for (size_t i = 0; i < cpu.size(); ++i)
    EXPECT_NEAR(cuda[i], cpu[i], 1e-6 * (1 + std::fabs(cpu[i]))) << i;
  EXPECT_LT(cuda.back(), cuda.front() / 2);
  EXPECT_THAT(fake::report().live, IsEmpty());
}

TEST(FakeCuda, NoLossDependsOnScheduleOrLag) {
  fake::configure({});
  std::vector<double> truth = trainOnFake(20, 0, 0);
  for (uint64_t seed = 0; seed < 40; ++seed)
    EXPECT_EQ(trainOnFake(20, seed % 3 ? 1 : 0, seed), truth) << "seed " << seed;
}

TEST(FakeCuda, AStepIsAGraphLaunchAndAsynchronousCopies) {
  fake::Options options;
  options.trace = true;
  options.threads = 1;
  fake::configure(options);
  auto session = Session::load(writeCudaRegression());
  BindOptions bind;
  bind.threads = 1;
  ASSERT_TRUE((*session)->bind(bind).isOk());
  std::vector<double> losses;
  ASSERT_TRUE(train(**session, 1, 1, losses).isOk());
  size_t before = fake::report().trace.size();
  ASSERT_TRUE(train(**session, 1000, 1, losses).isOk());
  fake::Report report = fake::report();
  std::map<std::string, int> counts;
  for (size_t i = before; i < report.trace.size(); ++i)
    ++counts[report.trace[i]];
  EXPECT_EQ(counts["cuGraphLaunch"], 1000);
  EXPECT_EQ(counts["cuMemcpyHtoDAsync"], 1000);
  // Ordering of streams, and questions; nothing that waits or allocates.
  const std::set<std::string> allowed = {"cuGraphLaunch", "cuMemcpyHtoDAsync", "cuEventRecord", "cuStreamWaitEvent",
                                         "cuStreamQuery"};
  for (const auto &[name, count] : counts)
    EXPECT_TRUE(allowed.count(name)) << name << " × " << count;
}

TEST(FakeCuda, ParametersComeAndGo) {
  fake::configure({});
  auto session = Session::load(writeCudaRegression());
  ASSERT_TRUE((*session)->bind({}).isOk());
  std::vector<double> first, again;
  ASSERT_TRUE(train(**session, 5, 0, first).isOk());
  ASSERT_TRUE((*session)->download().isOk());
  auto w = (*session)->tensor("train", "w"), m = (*session)->tensor("train", "w.m");
  float weight, moment;
  std::memcpy(&weight, w->data, 4);
  std::memcpy(&moment, m->data, 4);
  EXPECT_NE(weight, 0.25f);
  EXPECT_NE(moment, 0.0f);
  // Back to the start: the same losses.
  for (int64_t i = 0; i < width; ++i) {
    float start = 0.25f, zero = 0;
    std::memcpy(w->data + i * 4, &start, 4);
    std::memcpy(m->data + i * 4, &zero, 4);
  }
  ASSERT_TRUE((*session)->upload().isOk());
  ASSERT_TRUE(train(**session, 5, 0, again).isOk());
  EXPECT_EQ(first, again);
}

TEST(FakeCuda, GradientsAreBroughtByName) {
  fake::configure({});
  auto session = Session::load(writeCudaRegression());
  ASSERT_TRUE((*session)->bind({}).isOk());
  writeBatch(**session, 0);
  ASSERT_TRUE((*session)->step("gradient").isOk());
  ASSERT_TRUE((*session)->download("gradient").isOk());
  auto gradient = (*session)->tensor("gradient", "grad/w");
  float value;
  std::memcpy(&value, gradient->data, 4);
  EXPECT_TRUE(std::isfinite(value) && value != 0);
}

TEST(FakeCuda, MeasuresInstructions) {
  fake::configure({});
  auto session = Session::load(writeCudaRegression());
  ASSERT_TRUE((*session)->bind({}).isOk());
  const plan::Entry &entry = *(*session)->artifact().entry("train");
  (*session)->device().measure(entry, true);
  std::vector<double> losses;
  ASSERT_TRUE(train(**session, 3, 0, losses).isOk());
  EXPECT_EQ((*session)->device().measuredRuns(entry), 3u);
  std::vector<InstructionTime> times = (*session)->device().times(entry);
  ASSERT_EQ(times.size(), 5u);
  for (const InstructionTime &time : times)
    EXPECT_EQ(time.runs, 3u);
  EXPECT_EQ(losses, trainOnFake(3, 0, 0));
}

/// What can happen to a session from load to shutdown.
Status wholeLife() {
  auto session = Session::load(writeCudaRegression());
  if (!session)
    return session.takeStatus();
  BindOptions options;
  options.threads = 1;
  LOWTIDE_TRY((*session)->bind(options));
  std::vector<double> losses;
  LOWTIDE_TRY(train(**session, 3, 1, losses));
  LOWTIDE_TRY((*session)->download());
  return (*session)->close();
}

TEST(FakeCuda, EveryCallMayFailAtAnyTime) { failEveryCall(wholeLife); }

TEST(FakeCuda, OutOfMemoryShowsThePlan) {
  fake::Options options;
  options.failCall = "cuMemAlloc", options.failAt = 3;
  fake::configure(options);
  auto session = Session::load(writeCudaRegression());
  Status status = (*session)->bind({});
  EXPECT_EQ(status.code(), StatusCode::OverBudget);
  EXPECT_THAT(status.str(), HasSubstr("transient"));
  EXPECT_THAT(status.str(), HasSubstr("the plan takes params 32"));
  EXPECT_THAT(status.str(), HasSubstr("are free"));
}

TEST(FakeCuda, MissingEventBetweenStreamsShows) {
  // The gemm of the gradient moves to a second stream that nothing orders; the verifier refuses such a plan.
  plan::Plan plan = cudaRegressionPlan();
  plan.mutable_entries(0)->set_streams(2);
  plan.mutable_entries(0)->mutable_instructions(3)->set_stream(1);
  auto session = Session::load(writeCudaRegression(plan));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.status().code(), StatusCode::VerifyFailed);
}

TEST(FakeCuda, StreamsWithEventsAgree) {
  plan::Plan plan = cudaRegressionPlan();
  plan::Entry &entry = *plan.mutable_entries(0);
  entry.set_streams(2), entry.set_events(2);
  // difference → event 0 → stream 1: mean square, event 1 → joined at the end by stream 0.
  auto event = [&](bool record, uint32_t which, uint32_t stream) {
    plan::Instruction instruction;
    if (record)
      instruction.mutable_record()->set_event(which);
    else
      instruction.mutable_wait()->set_event(which);
    instruction.set_stream(stream);
    return instruction;
  };
  std::vector<plan::Instruction> old(entry.instructions().begin(), entry.instructions().end());
  entry.clear_instructions();
  old[2].set_stream(1);
  for (const plan::Instruction &instruction : {old[0], old[1], event(true, 0, 0), event(false, 0, 1), old[2],
                                               event(true, 1, 1), old[3], old[4], event(false, 1, 0)})
    *entry.add_instructions() = instruction;
  fake::configure({});
  std::vector<double> truth = trainOnFake(8, 0, 0);
  for (uint64_t seed = 1; seed < 30; ++seed) {
    auto session = Session::load(writeCudaRegression(plan));
    ASSERT_TRUE(session) << session.status().str();
    BindOptions options;
    options.schedule = seed;
    ASSERT_TRUE((*session)->bind(options).isOk());
    std::vector<double> losses;
    ASSERT_TRUE(train(**session, 8, 1, losses).isOk());
    EXPECT_EQ(losses, truth) << seed;
  }
}

} // namespace
