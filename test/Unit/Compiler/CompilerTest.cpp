//===- CompilerTest.cpp - the compiler inside another program -------------===//
//
// Two compilers in two threads, their artifacts in the runtime, and what is told of a refusal.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Compiler/Compiler.h"
#include "lowtide-rt/lowtide.hpp"
#include "lowtide/Compiler/OptionTable.h"
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>
#include <thread>

using namespace lowtide;
namespace fs = std::filesystem;

namespace {

struct Trained {
  std::vector<float> losses;
  uint64_t plannedBytes = 0, allocatedBytes = 0;
};

std::string pathOf(const std::string &model) { return std::string(LOWTIDE_TEST_MODELS "/") + model + "/model.onnx"; }

/// Fills the arrays of a batch with numbers that repeat after `period`, which labels stay below.
void fillBatch(TrainingSession &session, int period, const char *entry = "train") {
  for (size_t i = 0; i < lowtide_session_tensor_count(session.get(), entry); ++i) {
    lowtide_tensor tensor;
    ASSERT_EQ(lowtide_session_tensor_at(session.get(), entry, i, &tensor), nullptr);
    if (tensor.kind != LOWTIDE_BATCH)
      continue;
    const uint64_t size = tensor.dtype == LOWTIDE_F32 ? sizeof(float) : sizeof(int64_t);
    for (uint64_t k = 0; k < tensor.bytes / size; ++k)
      if (tensor.dtype == LOWTIDE_F32)
        static_cast<float *>(tensor.data)[k] = float(k * 5 % 7) / 7;
      else
        static_cast<int64_t *>(tensor.data)[k] = int64_t(k) % period;
  }
}

/// Compiles a model for a batch of 8 and trains it on one batch.
Trained compileAndTrain(Compiler &compiler, const std::string &model, const std::string &artifact) {
  Request request;
  request.batch = 8;
  request.optimizer = "sgd";
  request.lr = "0.1";
  Result step = compiler.compile(request, {pathOf(model)});
  if (!step.failure)
    step.failure = step.write(artifact);
  if (step.failure)
    throw std::runtime_error(step.failure.message);
  TrainingSession session(artifact);
  session.bind();
  fillBatch(session, 4);
  Trained trained;
  for (int64_t i = 0; i < 20; ++i) {
    session.writeScalars("train", session.learningRate(i), i);
    session.step();
    trained.losses.push_back(*static_cast<float *>(session.tensor("train", "loss").data));
  }
  trained.plannedBytes = step.getFigures().bytes;
  trained.allocatedBytes = session.allocatedBytes();
  return trained;
}

class CompilerTest : public testing::Test {
protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("lowtide-compiler-" + std::to_string(getpid()));
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string path(const std::string &name) const { return (folder / name).string(); }
  static std::string read(const std::string &path) {
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    return bytes.str();
  }

  fs::path folder;
};

/// Keeps the errors that it hears.
struct Errors : Listener {
  void hear(const Message &message) override {
    if (message.severity == Severity::Error)
      texts.push_back(message.text);
  }
  std::vector<std::string> texts;
};

} // namespace

TEST_F(CompilerTest, TwoCompilersTrainInTwoThreads) {
  const std::vector<std::string> models = {"mlp-digits", "moe-tiny"};
  std::vector<Trained> trained(models.size());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < models.size(); ++i)
      threads.emplace_back([&, i] {
        Compiler compiler;
        trained[i] = compileAndTrain(compiler, models[i], path(models[i]));
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  for (size_t i = 0; i < models.size(); ++i) {
    SCOPED_TRACE(models[i]);
    ASSERT_EQ(trained[i].losses.size(), 20u);
    EXPECT_TRUE(std::isfinite(trained[i].losses.front()));
    EXPECT_LT(trained[i].losses.back(), 0.9f * trained[i].losses.front());
    EXPECT_GT(trained[i].plannedBytes, 0u);
    EXPECT_EQ(trained[i].plannedBytes, trained[i].allocatedBytes);
    // Alone, and after another model, a compiler writes the same bytes.
    Compiler compiler;
    for (size_t k : {1 - i, i})
      EXPECT_EQ(compileAndTrain(compiler, models[k], path("again")).losses, trained[k].losses);
    EXPECT_TRUE(read(path("again")) == read(path(models[i])));
  }
}

TEST_F(CompilerTest, OneCompilerServesTwoThreads) {
  Compiler compiler;
  std::vector<Trained> trained(2);
  std::thread other([&] { trained[1] = compileAndTrain(compiler, "moe-tiny", path("b")); });
  trained[0] = compileAndTrain(compiler, "moe-tiny", path("a"));
  other.join();
  EXPECT_EQ(trained[0].losses, trained[1].losses);
  EXPECT_TRUE(read(path("a")) == read(path("b")));
}

TEST_F(CompilerTest, ARefusalNamesTheBudgetThatDoes) {
  Compiler compiler;
  Request request;
  request.batch = 8;
  request.deviceBudget = "1";
  const Sources model{pathOf("moe-tiny")};
  Errors errors;
  Result refused = compiler.compile(request, model, &errors);
  EXPECT_EQ(refused.failure.kind, FailureKind::Budget);
  ASSERT_EQ(errors.texts.size(), 1u);
  EXPECT_EQ(refused.failure.message, errors.texts.front());
  ASSERT_TRUE(refused.getFigures().refusal);
  const RefusedBudget figures = *refused.getFigures().refusal;
  EXPECT_EQ(figures.budgetBytes, 1u);
  EXPECT_LE(figures.leastBytes, figures.smallestBytes);
  EXPECT_LE(figures.smallestBytes, figures.largestBytes);
  EXPECT_THAT(figures.advice, testing::Contains("--device-budget=" + std::to_string(figures.smallestBytes)));
  request.deviceBudget = std::to_string(figures.smallestBytes);
  Result fitted = compiler.compile(request, model);
  ASSERT_FALSE(fitted.failure) << fitted.failure.message;
  EXPECT_LE(fitted.getFigures().bytes, figures.smallestBytes);
  EXPECT_EQ(fitted.getFigures().budgetBytes, figures.smallestBytes);
  request.deviceBudget = std::to_string(figures.smallestBytes - 1);
  EXPECT_EQ(compiler.compile(request, model).failure.kind, FailureKind::Budget);
}

TEST_F(CompilerTest, VariantsShareParameters) {
  Compiler compiler;
  Request request;
  request.batch = 8;
  request.entries = {"train"};
  request.optimizer = "sgd";
  Result alone = compiler.compile(request, {pathOf("moe-tiny")});
  request.variants = {{"last", 3}, {"half", 4}, {"parts", 0, 4}, {"narrow", 0, 0, "mixed-bf16"}};
  Result step = compiler.compile(request, {pathOf("moe-tiny")});
  ASSERT_FALSE(step.failure) << step.failure.message;
  EXPECT_THAT(step.listEntries(),
              testing::UnorderedElementsAre("train", "train_last", "train_half", "train_parts", "train_narrow"));
  EXPECT_EQ(step.getFigures().parameterBytes, alone.getFigures().parameterBytes);
  EXPECT_EQ(step.getFigures().stateBytes, alone.getFigures().stateBytes);
  for (const EntryFigures &entry : step.getFigures().entries)
    EXPECT_EQ(entry.batch, entry.name == "train_last" ? 3 : entry.name == "train_half" ? 4 : 8) << entry.name;
  ASSERT_FALSE(step.write(path("step.tide")));
  // One batch, at a rate of 0: parts sum in another order, bf16 rounds.
  TrainingSession session(path("step.tide"));
  session.bind();
  std::map<std::string, float> losses;
  for (const char *entry : {"train", "train_parts", "train_narrow"}) {
    fillBatch(session, 4, entry);
    session.writeScalars(entry, /*lr=*/0, /*step=*/0);
    session.step(entry);
    losses[entry] = *static_cast<float *>(session.tensor(entry, "loss").data);
  }
  EXPECT_NEAR(losses["train_parts"], losses["train"], 1e-6 * losses["train"]);
  EXPECT_NEAR(losses["train_narrow"], losses["train"], 2e-2 * losses["train"]);
  EXPECT_NE(losses["train_narrow"], losses["train"]);
}

TEST_F(CompilerTest, ModelsInMemoryAreTheSame) {
  Compiler compiler;
  Request request;
  request.batch = 8;
  Sources file{pathOf("moe-tiny")}, memory = file;
  memory.bytes = read(file.model);
  for (auto [sources, name] : {std::pair(&file, "file"), std::pair(&memory, "memory")}) {
    Result step = compiler.compile(request, *sources);
    ASSERT_FALSE(step.failure) << step.failure.message;
    EXPECT_FALSE(step.write(path(name)));
  }
  EXPECT_TRUE(read(path("file")) == read(path("memory")));
}

TEST_F(CompilerTest, WatchedValuesAreNoLosses) {
  // The loss goes by no name of its own: it is the file's only scalar, next to which others are looked at.
  std::string bytes = read(pathOf("moe-tiny"));
  for (size_t at = bytes.find("loss"); at != std::string::npos; at = bytes.find("loss", at))
    bytes.replace(at, 4, "cost");
  Sources sources{pathOf("moe-tiny")};
  sources.bytes = bytes;
  Request request;
  request.batch = 8;
  request.emit = "nn";
  Compiler compiler;
  std::string text;
  llvm::raw_string_ostream os(text);
  request.watched = {"sum_3", "mul_2"};
  Result step = compiler.compile(request, sources);
  ASSERT_FALSE(step.failure) << step.failure.message;
  ASSERT_FALSE(step.print(os));
  EXPECT_THAT(text, testing::HasSubstr("train.metric<\"loss\">"));
  EXPECT_THAT(text, testing::HasSubstr("train.output<\"sum_3\">"));
}

TEST_F(CompilerTest, StagesAreText) {
  Request request;
  request.batch = 8;
  request.emit = "nn";
  request.emitLocations = "off";
  std::string text;
  llvm::raw_string_ostream os(text);
  Compiler compiler;
  ASSERT_FALSE(compiler.compile(request, {pathOf("mlp-digits")}).print(os));
  EXPECT_THAT(text, testing::HasSubstr("func.func @forward"));
  EXPECT_EQ(compiler.compile(request, {path("absent.onnx")}).failure.kind, FailureKind::Io);
  request.target = "cuda:h200";
  EXPECT_EQ(compiler.compile(request, {pathOf("mlp-digits")}).getFigures().target, "cuda:sm_90");
  request.target = "cuda:sm_70";
  EXPECT_EQ(compiler.compile(request, {pathOf("mlp-digits")}).failure.kind, FailureKind::Usage);
}

TEST(OptionTable, SetsWhatFlagsSet) {
  Request request;
  const std::pair<const char *, const char *> options[] = {
      {"micro-batches", "4"}, {"fuse", "false"},   {"dim", "n=2"},   {"dim", "t=3"},      {"weight-decay", "0.1"},
      {"params", "*.bias"},   {"outputs", "a,b"},  {"power", "2"},   {"nesterov", "1"},   {"last-batch", "3"},
      {"entries", "train"},   {"dropout", "0.25"}, {"mode", "eval"}, {"schedule", "wsd"}, {"threads-max", "8"}};
  for (auto [name, value] : options)
    EXPECT_EQ(setOption(request, name, value), "");
  EXPECT_EQ(request.microBatches, 4);
  EXPECT_FALSE(request.fuse);
  EXPECT_THAT(request.dims, testing::ElementsAre("n=2", "t=3"));
  EXPECT_EQ(request.optimizerOptions["weight_decay"], "0.1");
  EXPECT_EQ(request.optimizerOptions["nesterov"], "1");
  EXPECT_EQ(request.scheduleOptions["power"], "2");
  ASSERT_EQ(request.selections.size(), 1u);
  EXPECT_TRUE(request.selections[0].trains);
  EXPECT_THAT(request.outputs, testing::ElementsAre("a", "b"));
  EXPECT_THAT(request.entries, testing::ElementsAre("train"));
  ASSERT_EQ(request.variants.size(), 1u);
  EXPECT_EQ(request.variants[0].batch, 3);
  EXPECT_EQ(request.dropout, 0.25);
  EXPECT_TRUE(request.givesThreads);
  EXPECT_FALSE(request.givesTarget);
  EXPECT_EQ(setOption(request, "target", "cuda:h200"), "");
  EXPECT_TRUE(request.givesTarget);
  request.givesTarget = false;
  EXPECT_EQ(setOption(request, "target-file", "machine.json"), "");
  EXPECT_TRUE(request.givesTarget);
  EXPECT_EQ(request.forwardFlags.count("mode") + request.updateFlags.count("nesterov") +
                request.rateFlags.count("schedule"),
            3u);
}

TEST(OptionTable, RefusesWhatFlagsRefuse) {
  const std::pair<const char *, const char *> faults[] = {
      {"micro-batches", "0"}, {"micro-batches", "1.5"},     {"threads-max", "1025"}, {"dropout", "1.5"},
      {"mode", "evaluate"},   {"loss-head-chunks", "none"}, {"clip-norm", "-1"},     {"clip-norm", "nan"},
      {"fuse", "perhaps"},    {"no-such-option", "1"},      {"schedule", "linea"},   {"sparse-updates", "yes"}};
  for (auto [name, value] : faults) {
    Request request;
    EXPECT_THAT(setOption(request, name, value), testing::HasSubstr(name)) << value;
    EXPECT_EQ(request.microBatches, 1);
    EXPECT_EQ(request.mode, "train");
  }
  std::set<std::string> names;
  for (const OptionRow &row : listOptions()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.stage.empty() || getStageNumber(row.stage) >= 0) << row.name;
    EXPECT_FALSE(row.text.empty()) << row.name;
  }
}
