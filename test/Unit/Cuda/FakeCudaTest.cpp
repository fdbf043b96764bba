//===- FakeCudaTest.cpp - sessions on the fake CUDA device -----------------===//

#include "CudaRegression.h"

#include "runtime/Element.h"
#include "runtime/FileStaging.h"
#include "runtime/KernelStatements.h"
#include "runtime/devices/Cuda/Resources.h"
#include "runtime/devices/Cuda/Survey.h"
#include "runtime/devices/FakeCuda/FakeCuda.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <thread>

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
  // Metrics, and after them the number of the step.
  EXPECT_EQ(counts["cuMemcpyDtoHAsync"], 2000);
  // Ordering of streams, and questions; nothing that waits or allocates.
  const std::set<std::string> allowed = {"cuGraphLaunch", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
                                         "cuEventRecord", "cuStreamWaitEvent", "cuStreamQuery"};
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
  for (Measuring how : {Measuring::Alone, Measuring::Lanes}) {
    fake::configure({});
    auto session = Session::load(writeCudaRegression());
    ASSERT_TRUE((*session)->bind({}).isOk());
    const plan::Entry &entry = *(*session)->artifact().entry("train");
    (*session)->device().measure(entry, how);
    std::vector<double> losses;
    ASSERT_TRUE(train(**session, 3, 0, losses).isOk());
    EXPECT_EQ((*session)->device().measuredRuns(entry), 3u);
    std::vector<InstructionTime> times = (*session)->device().times(entry);
    ASSERT_EQ(times.size(), 5u);
    uint64_t before = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      EXPECT_EQ(times[i].runs, 3u);
      EXPECT_EQ(times[i].number, i);
      EXPECT_EQ(times[i].spans.size(), how == Measuring::Lanes ? 1u : 0u);
      for (const InstructionSpan &span : times[i].spans) {
        EXPECT_LE(before, span.begin);
        EXPECT_LE(span.begin, span.end);
        before = span.end;
      }
    }
    EXPECT_EQ(losses, trainOnFake(3, 0, 0));
  }
}

TEST(FakeCuda, CountsWhatTheDriverGave) {
  fake::configure({});
  auto session = Session::load(writeCudaRegression());
  ASSERT_TRUE((*session)->bind({}).isOk());
  auto expect = [&](plan::Arena::Space space, const std::vector<uint64_t> &given) {
    std::vector<uint64_t> planned;
    uint64_t sum = 0;
    for (const plan::Arena &arena : (*session)->plan().arenas())
      if (arena.space() == space && arena.bytes())
        planned.push_back(arena.bytes()), sum += arena.bytes();
    EXPECT_THAT(given, testing::UnorderedElementsAreArray(planned));
    EXPECT_EQ((*session)->allocatedBytes(space), sum);
    EXPECT_EQ((*session)->plannedBytes(space), sum);
  };
  std::vector<double> losses;
  ASSERT_TRUE(train(**session, 3, 1, losses).isOk());
  expect(plan::Arena::DEVICE, fake::report().device);
  expect(plan::Arena::HOST_PINNED, fake::report().pinned);
  // x of 512 bytes, y and lr, and the number of the step; the loss and the number: two blocks of each.
  EXPECT_EQ((*session)->plannedBytes(), uint64_t(32 + 32 + 192 + 1024 + 2 * (256 + 512 + 256 + 256) + 2 * (256 + 256)));
  EXPECT_EQ((*session)->plannedBytes(plan::Arena::HOST_PINNED), uint64_t(2 * 1280 + 2 * 512 + stagingBytes));
  ASSERT_TRUE((*session)->close().isOk());
  EXPECT_EQ((*session)->allocatedBytes(), 0u);
  EXPECT_EQ((*session)->allocatedBytes(plan::Arena::HOST_PINNED), 0u);
}

/// A session of a plan that has neither kernels nor parameters.
Expected<std::unique_ptr<Session>> loadPlan(const plan::Plan &plan) {
  const std::string path = testing::TempDir() + "plan-alone.tide";
  auto writer = ArtifactWriter::create(path);
  if (!writer)
    return writer.takeStatus();
  LOWTIDE_TRY((*writer)->add("plan", plan.SerializeAsString()));
  LOWTIDE_TRY((*writer)->add("params", ""));
  LOWTIDE_TRY((*writer)->finish());
  return Session::load(path);
}

/// Runs `plan`, which gives "out", on the fake device.
Status runEviction(const plan::Plan &plan, uint64_t seed, int32_t &first) {
  auto session = loadPlan(plan);
  if (!session)
    return session.takeStatus();
  BindOptions options;
  options.threads = 1, options.schedule = seed, options.poison = true;
  LOWTIDE_TRY((*session)->bind(options));
  for (int step = 0; step < 3; ++step)
    LOWTIDE_TRY((*session)->step("run"));
  LOWTIDE_TRY((*session)->download("run"));
  std::memcpy(&first, (*session)->tensor("run", "out")->data, sizeof first);
  return (*session)->close();
}

TEST(FakeCuda, CopiesGoWhereTheSpacesSay) {
  fake::Options traced;
  traced.trace = true;
  fake::configure(traced);
  plan::Plan plan = evictionPlan(plan::Arena::HOST_PINNED, "cuda-emulated");
  addExchangeArenas(plan);
  int32_t first = 0;
  for (uint64_t seed : {0, 1, 2, 3}) {
    Status status = runEviction(plan, seed, first);
    ASSERT_TRUE(status.isOk()) << status.str();
    EXPECT_EQ(first, 1) << "seed " << seed;
  }
  EXPECT_THAT(fake::report().trace, testing::Contains("cuMemcpyDtoHAsync"));
  EXPECT_THAT(fake::report().live, IsEmpty());
  plan::Plan host = evictionPlan(plan::Arena::HOST, "cuda-emulated");
  addExchangeArenas(host);
  EXPECT_THAT(runEviction(host, 0, first).str(),
              HasSubstr("lies in space host; this runtime's CUDA device has device, host_pinned and file"));
}

/// Values of whole and broken pages, through pieces of a page: "out" holds what was written to the file.
TEST(FakeCuda, CopiesPassToAFileAndBack) {
  fake::Options traced;
  traced.trace = true;
  for (int64_t bytes : {64, 4096, 5 * 4096 + 64}) {
    fake::configure(traced);
    plan::Plan plan = evictionPlan(plan::Arena::FILE, "cuda-emulated", bytes);
    addExchangeArenas(plan);
    plan.mutable_arenas(plan.arenas_size() - 1)->set_bytes(2 * fileAlignment);
    int32_t first = 0;
    for (uint64_t seed : {0, 1, 2, 3}) {
      Status status = runEviction(plan, seed, first);
      ASSERT_TRUE(status.isOk()) << status.str();
      EXPECT_EQ(first, 1) << bytes << " bytes, seed " << seed;
    }
    // Of two graphs each: a piece there, a piece back, and what poisons the file.
    const uint64_t pieces = (static_cast<uint64_t>(bytes) + fileAlignment - 1) / fileAlignment;
    EXPECT_EQ(std::ranges::count(fake::report().trace, "cuLaunchHostFunc"), 4 * 2 * (2 * pieces + 1));
    EXPECT_THAT(fake::report().live, IsEmpty());
  }
  plan::Plan two = evictionPlan(plan::Arena::FILE, "cuda-emulated");
  addExchangeArenas(two);
  plan::Entry &entry = *two.mutable_entries(0);
  entry.set_streams(2), entry.set_events(1);
  plan::Instruction wait, record, again = entry.instructions(1);
  record.mutable_record()->set_event(0);
  wait.mutable_wait()->set_event(0), wait.set_stream(1);
  again.set_stream(1);
  again.mutable_copy()->mutable_source()->set_value(5), again.mutable_copy()->mutable_target()->set_value(6);
  again.mutable_copy()->mutable_source()->set_arena(2);
  for (const plan::Instruction &each : {record, wait, again})
    *entry.add_instructions() = each;
  int32_t first = 0;
  EXPECT_THAT(runEviction(two, 0, first).str(), HasSubstr("copies to a file are on streams 0 and 1"));
}

TEST(FakeCuda, FunctionsOfTheHostMayNotCallTheDriver) {
  fake::configure({});
  const rt::cuda::Api api = fake::api();
  rt::cuda::Resources resources(api);
  ASSERT_TRUE(resources.open().isOk());
  auto stream = resources.stream();
  ASSERT_TRUE(stream);
  rt::cuda::CUresult result = rt::cuda::CUDA_SUCCESS;
  auto call = [](void *to) {
    size_t free = 0, total = 0;
    *static_cast<rt::cuda::CUresult *>(to) = fake::api().driver.cuMemGetInfo(&free, &total);
  };
  ASSERT_EQ(api.driver.cuLaunchHostFunc(*stream, call, &result), rt::cuda::CUDA_SUCCESS);
  ASSERT_EQ(api.driver.cuStreamSynchronize(*stream), rt::cuda::CUDA_SUCCESS);
  EXPECT_EQ(result, rt::cuda::CUDA_ERROR_NOT_PERMITTED);
}

TEST(FakeCuda, AFileThatFailsEndsTheRun) {
  fake::configure({});
  plan::Plan plan = evictionPlan(plan::Arena::FILE, "cuda-emulated");
  addExchangeArenas(plan);
  auto session = loadPlan(plan);
  ASSERT_TRUE(session) << session.status().str();
  ASSERT_TRUE((*session)->bind({.threads = 1}).isOk());
  EXPECT_EQ((*session)->allocatedBytes(plan::Arena::FILE), fileAlignment);
  // As a disk that is full: nothing can be written any more.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  Status status = (*session)->step("run");
  if (status.isOk())
    status = (*session)->settle();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), StatusCode::Io);
  EXPECT_THAT(status.str(), HasSubstr("of the file in which values wait failed: File too large"));
  // What the step computed is worth nothing, and no other runs.
  EXPECT_EQ((*session)->step("run").code(), StatusCode::Io);
  EXPECT_EQ((*session)->download("run").code(), StatusCode::Io);
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

/// Fills of every width, a copy after an event of another stream, and a product.
plan::Plan busyPlan() {
  plan::Plan plan;
  plan.set_format_version(planFormatVersion);
  plan.set_target("cuda-emulated");
  plan.set_threads_max(2);
  plan::Entry &entry = *plan.add_entries();
  entry.set_name("run");
  entry.set_streams(2), entry.set_events(1);
  struct Pattern {
    uint64_t bits;
    uint32_t bytes;
    plan::DType dtype;
  };
  const Pattern patterns[] = {
      {0, 4, plan::F32}, {0x3c00, 2, plan::F16}, {0x3f813f82, 4, plan::F32}, {0x3ff123456789abcd, 8, plan::F64}};
  uint64_t at = 0, value = 0;
  auto output = [&](plan::DType dtype) {
    plan::Slice where = slice(0, at, 64, 0);
    std::string name = "out" + std::to_string(++value);
    bind(entry, name.c_str(), plan::Binding::OUTPUT, dtype, {static_cast<int64_t>(64 / elementBytes(dtype))}, where,
         value);
    where.set_value(value);
    at += 64;
    return where;
  };
  plan::Slice last;
  for (const Pattern &pattern : patterns) {
    plan::Instruction &instruction = *entry.add_instructions();
    instruction.set_stream(1);
    plan::Fill &fill = *instruction.mutable_fill();
    *fill.mutable_target() = last = output(pattern.dtype);
    fill.set_pattern(pattern.bits), fill.set_pattern_bytes(pattern.bytes);
  }
  plan::Instruction &record = *entry.add_instructions();
  record.set_stream(1);
  record.mutable_record()->set_event(0);
  entry.add_instructions()->mutable_wait()->set_event(0);
  plan::Copy &copy = *entry.add_instructions()->mutable_copy();
  *copy.mutable_source() = last, *copy.mutable_target() = output(plan::F64);
  plan::Slice factor = last;
  factor.set_offset(128), factor.set_value(3);
  plan::Call &product = gemm(entry, 4, 4, 4, false, {factor, factor}, output(plan::F32));
  *product.mutable_workspace() = slice(1, 0, 64, 0);
  addArena(plan, "io", plan::Arena::IO, at);
  addArena(plan, "transient", plan::Arena::TRANSIENT, 64);
  addExchangeArenas(plan);
  return plan;
}

Status busyLife() {
  auto session = loadPlan(busyPlan());
  if (!session)
    return session.takeStatus();
  BindOptions options;
  options.threads = 1;
  LOWTIDE_TRY((*session)->bind(options));
  const plan::Entry &entry = *(*session)->artifact().entry("run");
  for (Measuring how : {Measuring::None, Measuring::Alone, Measuring::Lanes, Measuring::None}) {
    (*session)->device().measure(entry, how);
    LOWTIDE_TRY((*session)->step("run"));
  }
  LOWTIDE_TRY((*session)->download("run"));
  auto number = [&](const char *name, uint64_t index) {
    auto tensor = (*session)->tensor("run", name);
    plan::DType dtype = tensor->binding->dtype();
    return loadElement(dtype, tensor->data + index * elementBytes(dtype));
  };
  const double wide = std::bit_cast<double>(uint64_t(0x3ff123456789abcd));
  const double narrow = static_cast<double>(std::bit_cast<float>(uint32_t(0x3f813f82)));
  EXPECT_EQ(number("out1", 15), 0);
  EXPECT_EQ(number("out2", 31), 1);
  EXPECT_EQ(number("out3", 0), narrow);
  EXPECT_EQ(number("out4", 7), wide);
  EXPECT_EQ(number("out5", 0), wide);
  EXPECT_NEAR(number("out6", 15), 4 * narrow * narrow, 1e-5);
  return (*session)->close();
}

TEST(FakeCuda, EveryFunctionOfTheDriverMayFail) {
  failEveryCall(busyLife);
  auto describe = [] {
    auto text = rt::cuda::describeGpu(fake::api());
    return text ? Status::ok() : text.takeStatus();
  };
  failEveryCall(describe);
  auto fileLife = [] {
    plan::Plan plan = evictionPlan(plan::Arena::FILE, "cuda-emulated");
    addExchangeArenas(plan);
    int32_t first = 0;
    LOWTIDE_TRY(runEviction(plan, 0, first));
    return first == 1 ? Status::ok() : Status(StatusCode::Internal, "out is " + std::to_string(first));
  };
  failEveryCall(fileLife);
  // No function that the runtime knows is left out.
  fake::configure({});
  EXPECT_TRUE(busyLife().isOk());
  EXPECT_TRUE(wholeLife().isOk());
  EXPECT_TRUE(fileLife().isOk());
  EXPECT_TRUE(describe().isOk());
  std::set<std::string> missing = {
#define LOWTIDE_CUDA_NAME(name, symbol, parameters) #name,
      LOWTIDE_CUDA_DRIVER(LOWTIDE_CUDA_NAME)
#undef LOWTIDE_CUDA_NAME
  };
  for (const auto &[name, count] : fake::report().calls)
    missing.erase(name);
  // These only describe.
  EXPECT_THAT(missing, testing::UnorderedElementsAre("cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString"));
}

TEST(FakeCuda, ThreadsMayChangeBetweenSteps) {
  fake::configure({});
  auto session = Session::load(writeCudaRegression());
  ASSERT_TRUE((*session)->bind({}).isOk());
  std::vector<double> losses;
  Status status;
  auto elsewhere = [&](auto &&work) { std::thread(work).join(); };
  elsewhere([&] { status = train(**session, 2, 1, losses); });
  EXPECT_TRUE(status.isOk()) << status.str();
  elsewhere([&] { status = (*session)->download(); });
  EXPECT_TRUE(status.isOk()) << status.str();
  ASSERT_TRUE((*session)->step("train").isOk());
  ASSERT_TRUE((*session)->settle().isOk());
  elsewhere([&] { status = (*session)->close(); });
  EXPECT_TRUE(status.isOk()) << status.str();
  EXPECT_THAT(fake::report().live, IsEmpty());
}

TEST(FakeCuda, EventsOfAnEarlierCaptureAreRefused) {
  fake::configure({});
  rt::cuda::Api api = fake::api();
  rt::cuda::Resources resources(api);
  ASSERT_TRUE(resources.open().isOk());
  auto stream = resources.stream(), other = resources.stream();
  auto event = resources.event();
  ASSERT_TRUE(stream && other && event);
  auto capture = [&](bool record) {
    EXPECT_EQ(api.driver.cuStreamBeginCapture(*stream, rt::cuda::CU_STREAM_CAPTURE_MODE_RELAXED),
              rt::cuda::CUDA_SUCCESS);
    if (record)
      EXPECT_EQ(api.driver.cuEventRecord(*event, *stream), rt::cuda::CUDA_SUCCESS);
    auto waited = api.driver.cuStreamWaitEvent(*stream, *event, 0);
    rt::cuda::CUgraph graph = nullptr;
    EXPECT_EQ(api.driver.cuStreamEndCapture(*stream, &graph), rt::cuda::CUDA_SUCCESS);
    EXPECT_EQ(api.driver.cuGraphDestroy(graph), rt::cuda::CUDA_SUCCESS);
    return waited;
  };
  EXPECT_EQ(capture(true), rt::cuda::CUDA_SUCCESS);
  EXPECT_NE(capture(false), rt::cuda::CUDA_SUCCESS);
  EXPECT_NE(api.driver.cuStreamWaitEvent(*other, *event, 0), rt::cuda::CUDA_SUCCESS);
  EXPECT_TRUE(resources.close().isOk());
  EXPECT_THAT(fake::report().live, IsEmpty());
}

TEST(FakeCuda, WhatIsThereBesideARefusedCubinIsTaken) {
  fake::configure({});
  const std::vector<double> truth = trainOnFake(2, 0, 0);
  const uint64_t before = fake::report().calls["cuModuleLoadDataEx"];
  // It states what it would be.
  std::string cubin = std::string(4096, '?') + "\n", line;
  for (std::istringstream lines(stateKernels(cudaRegressionPlan())); std::getline(lines, line);)
    cubin += statementMark + line + "\n";
  auto session = Session::load(writeCudaRegression(cudaRegressionPlan(), cubin));
  ASSERT_TRUE(session && (*session)->bind({}).isOk());
  EXPECT_EQ(fake::report().calls["cuModuleLoadDataEx"], before + 2);
  std::vector<double> losses;
  ASSERT_TRUE(train(**session, 2, 0, losses).isOk());
  EXPECT_EQ(losses, truth);
  EXPECT_TRUE((*session)->close().isOk());
  EXPECT_THAT(fake::report().live, IsEmpty());
}

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

TEST(FakeCuda, OutOfMemoryBesideTheArenasShowsThePlan) {
  for (const char *call :
       {"cuDevicePrimaryCtxRetain", "cuMemHostAlloc", "cuModuleLoadDataEx", "cuStreamCreate", "cuEventCreate",
        "cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul", "cuGraphInstantiate"}) {
    fake::Options options;
    options.failCall = call, options.failAt = 1, options.failsForMemory = true;
    fake::configure(options);
    auto session = Session::load(writeCudaRegression());
    Status status = (*session)->bind({});
    EXPECT_EQ(status.code(), StatusCode::OverBudget) << call;
    EXPECT_THAT(status.str(), HasSubstr(std::string(call) + " failed"));
    EXPECT_THAT(status.str(), HasSubstr("--device-budget")) << call;
    EXPECT_THAT(status.str(), HasSubstr("; the plan takes params 32")) << call;
  }
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
