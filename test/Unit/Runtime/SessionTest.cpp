//===- SessionTest.cpp - load, bind, step on a hand-written artifact -------===//

#include "runtime/Session.h"
#include "Regression.h"
#include "runtime/Element.h"
#include "runtime/ExchangeBlocks.h"
#include "runtime/devices/Cpu/Memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <new>
#include <numeric>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

static std::atomic<uint64_t> heapAllocations = 0;
void *operator new(size_t bytes) {
  ++heapAllocations;
  if (void *memory = std::malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {

std::string artifactPath(const plan::Plan &plan = regressionPlan()) {
  return writeRegression(testing::TempDir() + "regression.tide", plan);
}

void writeBatch(Session &session, const char *entry, int step) {
  auto x = session.tensor(entry, "x"), y = session.tensor(entry, "y");
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

std::vector<double> train(Session &session, int steps) {
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    writeBatch(session, "train", step);
    EXPECT_TRUE(session.writeScalars("train", {0.05, step, 0, step * samples}).isOk());
    EXPECT_TRUE(session.step("train").isOk());
    losses.push_back(*session.metric("train", "loss"));
  }
  return losses;
}

TEST(Session, TrainsAndAllocatesNothingAfterBind) {
  auto session = Session::load(artifactPath());
  ASSERT_TRUE(session) << session.status().str();
  ASSERT_TRUE((*session)->bind({.threads = 2}).isOk());
  EXPECT_EQ((*session)->plannedBytes(), (*session)->allocatedBytes());
  EXPECT_EQ((*session)->plannedBytes(), uint64_t(32 + 32 + 128 + 64 + 1024));
  writeBatch(**session, "train", 0);
  const std::string entry = "train";
  uint64_t before = heapAllocations, arenas = (*session)->allocations();
  for (int step = 0; step < 5; ++step) {
    (void)(*session)->writeScalars(entry, {0.05, step, 0, 0});
    (void)(*session)->writeScalar(entry, "lr", 0.05);
    (void)(*session)->writeScalar(entry, "step", int64_t(step));
    (void)(*session)->step(entry);
  }
  EXPECT_EQ(heapAllocations, before);
  EXPECT_EQ((*session)->allocations(), arenas);
  std::vector<double> losses = train(**session, 200);
  EXPECT_LT(losses.back(), losses.front() / 100);
}

TEST(Session, CountsEachMemoryApart) {
  for (plan::Arena::Space space : {plan::Arena::HOST_PINNED, plan::Arena::HOST, plan::Arena::FILE}) {
    const plan::Plan plan = evictionPlan(space);
    const std::string path = testing::TempDir() + "eviction.tide";
    auto writer = ArtifactWriter::create(path);
    ASSERT_TRUE((*writer)->add("plan", plan.SerializeAsString()).isOk());
    ASSERT_TRUE((*writer)->add("params", "").isOk());
    ASSERT_TRUE((*writer)->finish().isOk());
    auto session = Session::load(path);
    ASSERT_TRUE(session) << session.status().str();
    Status status = (*session)->bind({.threads = 2, .poison = true});
    ASSERT_TRUE(status.isOk()) << status.str();
    const bool isFile = space == plan::Arena::FILE;
    EXPECT_EQ((*session)->allocatedBytes(), 128u + (isFile ? 2 * fileAlignment : 0));
    EXPECT_EQ((*session)->allocatedBytes(space), isFile ? fileAlignment : 64u);
    EXPECT_EQ((*session)->plannedBytes(space), isFile ? fileAlignment : 64u);
    ASSERT_TRUE((*session)->step("run").isOk());
    int32_t first = 0;
    std::memcpy(&first, (*session)->tensor("run", "out")->data, sizeof first);
    EXPECT_EQ(first, 1);
    EXPECT_EQ((*session)->device().transfers().fromDevice, 64u);
    EXPECT_EQ((*session)->device().transfers().toDevice, 64u);
  }
}

struct FileParameters : testing::TestWithParam<const char *> {};

TEST_P(FileParameters, AreReadAndWritten) {
  plan::Plan plan = fileParameterPlan(GetParam());
  if (isGpu(GetParam()))
    addExchangeArenas(plan);
  std::vector<int32_t> image(16);
  std::iota(image.begin(), image.end(), 100);
  const std::string path = testing::TempDir() + "parameters.tide";
  auto writer = ArtifactWriter::create(path);
  ASSERT_TRUE((*writer)->add("plan", plan.SerializeAsString()).isOk());
  ASSERT_TRUE((*writer)->add("params", {reinterpret_cast<const char *>(image.data()), 64}).isOk());
  ASSERT_TRUE((*writer)->finish().isOk());
  auto session = Session::load(path);
  ASSERT_TRUE(session) << session.status().str();
  Status status = (*session)->bind({.threads = 2, .poison = true});
  ASSERT_TRUE(status.isOk()) << status.str();
  auto read = [&](const char *name) {
    std::vector<int32_t> numbers(16);
    const Tensor tensor = *(*session)->tensor("run", name);
    EXPECT_TRUE(tensor.bring(HostAccess::Read).isOk());
    std::memcpy(numbers.data(), tensor.data, 64);
    return numbers;
  };
  const std::vector<int32_t> sevens(16, 7), nines(16, 9);
  EXPECT_EQ(read("w"), image);
  auto step = [&] {
    ASSERT_TRUE((*session)->step("run").isOk());
    ASSERT_TRUE((*session)->download("run").isOk());
  };
  step();
  EXPECT_EQ(read("out"), image);
  EXPECT_EQ(read("w"), sevens);
  // What the host writes there is what the next step reads.
  const Tensor weight = *(*session)->tensor("run", "w");
  ASSERT_TRUE(weight.bring(HostAccess::Overwrite).isOk());
  weight.write(reinterpret_cast<const uint8_t *>(nines.data()));
  step();
  EXPECT_EQ(read("out"), nines);
  EXPECT_EQ(read("w"), sevens);
  // Steps that the host does not look at between them.
  ASSERT_TRUE((*session)->step("run").isOk());
  step();
  EXPECT_EQ(read("out"), sevens);
  ASSERT_TRUE((*session)->restart({}).isOk());
  EXPECT_EQ(read("w"), image);
}

INSTANTIATE_TEST_SUITE_P(Targets, FileParameters, testing::Values("reference", "cuda-emulated"));

TEST(Session, CountsOnlyWhatWasGiven) {
  Memory memory;
  ASSERT_TRUE(memory.allocate(100, 64, "a block"));
  EXPECT_EQ(memory.allocatedBytes(), 100u);
  EXPECT_FALSE(memory.allocate(uint64_t(1) << 60, 64, "a block"));
  EXPECT_EQ(memory.allocatedBytes(), 100u);
  EXPECT_EQ(memory.allocations(), 2u);
}

TEST(Session, BitsDoNotDependOnThreadsOrPoison) {
  std::vector<std::vector<double>> runs;
  for (unsigned threads : {1u, 2u, 3u, 8u})
    for (bool poison : {false, true}) {
      auto session = Session::load(artifactPath());
      ASSERT_TRUE(session);
      ASSERT_TRUE((*session)->bind({.threads = threads, .poison = poison}).isOk());
      EXPECT_EQ((*session)->threads(), threads);
      runs.push_back(train(**session, 20));
    }
  for (const auto &run : runs)
    EXPECT_EQ(run, runs[0]);
}

TEST(Session, EvalAndGradientLeaveParametersAlone) {
  auto session = Session::load(artifactPath());
  ASSERT_TRUE(session && (*session)->bind({}).isOk());
  writeBatch(**session, "gradient", 3);
  ASSERT_TRUE((*session)->step("gradient").isOk());
  ASSERT_TRUE((*session)->step("eval").isOk());
  EXPECT_EQ(*(*session)->metric("gradient", "loss"), *(*session)->metric("eval", "loss"));
  auto w = (*session)->tensor("eval", "w");
  for (int i = 0; i < width; ++i)
    EXPECT_EQ(loadElement(plan::F32, w->data + 4 * i), 0.25);
}

TEST(Session, RefusesInWords) {
  auto absent = Session::load(testing::TempDir() + "absent.tide");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.status().code(), StatusCode::Io);
  auto session = Session::load(artifactPath());
  ASSERT_TRUE(session);
  EXPECT_EQ((*session)->step("train").code(), StatusCode::Usage);
  ASSERT_TRUE((*session)->bind({}).isOk());
  EXPECT_EQ((*session)->bind({}).code(), StatusCode::Usage);
  EXPECT_EQ((*session)->step("test").code(), StatusCode::Usage);
  EXPECT_FALSE((*session)->tensor("train", "v"));

  plan::Plan plan = regressionPlan();
  plan.set_target("abacus");
  EXPECT_EQ(Session::load(artifactPath(plan)).status().code(), StatusCode::VerifyFailed) << "its kernels are for a CPU";
  plan.clear_kernels();
  for (plan::Entry &entry : *plan.mutable_entries())
    entry.clear_instructions(), entry.clear_bindings();
  auto foreign = Session::load(artifactPath(plan));
  ASSERT_TRUE(foreign);
  EXPECT_EQ((*foreign)->bind({}).code(), StatusCode::Unsupported);

  plan = regressionPlan();
  plan.mutable_kernels(0)->set_symbol("absent");
  auto incomplete = Session::load(artifactPath(plan));
  ASSERT_FALSE(incomplete);
  EXPECT_NE(incomplete.status().str().find("absent"), std::string::npos) << incomplete.status().str();

  plan = regressionPlan();
  for (plan::Entry &entry : *plan.mutable_entries())
    for (plan::Binding &binding : *entry.mutable_bindings())
      if (binding.name() == "lr")
        binding.set_name("temperature");
  auto unknown = Session::load(artifactPath(plan));
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.status().str().find("temperature"), std::string::npos);
}

TEST(Session, StartsFromRandomNumbersOnlyWhenAsked) {
  plan::Plan plan = regressionPlan();
  for (plan::Entry &entry : *plan.mutable_entries())
    for (plan::Binding &binding : *entry.mutable_bindings())
      binding.set_from_image(false);
  plan.mutable_sources(0)->set_random_init("uniform:0.5");
  std::string path = artifactPath(plan);
  auto refused = Session::load(path);
  ASSERT_TRUE(refused);
  EXPECT_NE((*refused)->bind({}).str().find("--init=random"), std::string::npos);
  std::vector<std::string> contents;
  for (uint64_t seed : {1, 1, 2}) {
    auto session = Session::load(path);
    ASSERT_TRUE((*session)->bind({.randomInit = true, .randomSeed = seed}).isOk());
    auto w = (*session)->tensor("train", "w");
    contents.emplace_back(reinterpret_cast<const char *>(w->data), w->bytes());
    for (int i = 0; i < width; ++i)
      EXPECT_LT(std::fabs(loadElement(plan::F32, w->data + 4 * i)), 0.5);
  }
  EXPECT_EQ(contents[0], contents[1]);
  EXPECT_NE(contents[0], contents[2]);
}

TEST(Session, StartsAsNormsOnlyOfAWeightThatFits) {
  plan::Plan plan = regressionPlan();
  for (plan::Entry &entry : *plan.mutable_entries())
    for (plan::Binding &binding : *entry.mutable_bindings())
      binding.set_from_image(false);
  plan.mutable_sources(0)->set_random_init("norm");
  auto bind = [&] {
    auto session = Session::load(artifactPath(plan));
    return session ? (*session)->bind({.randomInit = true}).str() : session.status().str();
  };
  EXPECT_NE(bind().find("initialization 'norm' is unknown"), std::string::npos) << bind();
  plan::Adapter &adapter = *plan.add_adapters();
  adapter.set_module("fc");
  adapter.set_magnitude("w");
  adapter.set_a("w"), adapter.set_b("w"), adapter.set_norm("w");
  EXPECT_NE(bind().find("the plan's adapter of 'fc' names '', which is no float tensor"), std::string::npos) << bind();
  adapter.set_norm_of("w");
  EXPECT_NE(bind().find("the plan's adapter of 'fc' is no pair of one rank"), std::string::npos) << bind();
}

TEST(Element, RoundsHalfPrecisionToNearestEven) {
  uint16_t bits = 0;
  auto store = [&](plan::DType dtype, double value) {
    storeElement(dtype, &bits, value);
    return bits;
  };
  EXPECT_EQ(store(plan::F16, 1.0), 0x3c00);
  EXPECT_EQ(store(plan::F16, -2.0), 0xc000);
  EXPECT_EQ(store(plan::F16, 65504.0), 0x7bff);
  EXPECT_EQ(store(plan::F16, 65520.0), 0x7c00);
  EXPECT_EQ(store(plan::F16, 1 + 0x1p-11), 0x3c00);
  EXPECT_EQ(store(plan::F16, 1 + 3 * 0x1p-11), 0x3c02);
  EXPECT_EQ(store(plan::F16, 0x1p-24), 0x0001);
  EXPECT_EQ(store(plan::F16, 0x1.ff8p-15), 0x03ff);
  EXPECT_EQ(store(plan::BF16, 1.0), 0x3f80);
  EXPECT_EQ(store(plan::BF16, 1 + 0x1p-8), 0x3f80);
  EXPECT_EQ(store(plan::BF16, 1 + 3 * 0x1p-8), 0x3f82);
  for (uint32_t pattern = 0; pattern < 0x7c00; ++pattern) {
    auto half = static_cast<uint16_t>(pattern);
    ASSERT_EQ(store(plan::F16, loadElement(plan::F16, &half)), pattern);
  }
}

#if defined(__FLT16_MAX__)
TEST(Element, ConvertsHalfPrecisionAsTheCompilerDoes) {
  for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    auto half = static_cast<uint16_t>(pattern);
    auto value = static_cast<double>(std::bit_cast<_Float16>(half)), read = loadElement(plan::F16, &half);
    ASSERT_TRUE(std::isnan(value) ? std::isnan(read) : std::bit_cast<uint64_t>(read) == std::bit_cast<uint64_t>(value));
    if (!std::isfinite(value))
      continue;
    // The value, and on either side of the middle between it and the next one: ties, and what is nearly one.
    ++half;
    double next = loadElement(plan::F16, &half), middle = std::isfinite(next) ? (value + next) / 2 : 65520.0;
    for (double number : {value, middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e9), value * 0.9999}) {
      auto expected = std::bit_cast<uint16_t>(static_cast<_Float16>(number));
      storeElement(plan::F16, &half, number);
      ASSERT_EQ(half, expected) << number;
    }
  }
}
#endif

} // namespace
