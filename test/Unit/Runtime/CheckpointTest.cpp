//===- CheckpointTest.cpp - runs that stop and go on -----------------------===//

#include "runtime/checkpoint/Checkpoint.h"
#include "Regression.h"
#include "lowtide-rt/lowtide.hpp"
#include "runtime/Element.h"
#include "runtime/checkpoint/ExportOnnx.h"
#include "runtime/checkpoint/FrameworkTensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;
namespace fs = std::filesystem;

namespace {

std::string fresh(const char *name) {
  std::string path = testing::TempDir() + name;
  fs::remove_all(path);
  return path;
}
std::string artifact() { return writeRegression(testing::TempDir() + "checkpoint.tide", regressionPlan()); }

void step(TrainingSession &session, int64_t number) {
  lowtide_tensor x = session.tensor("train", "x"), y = session.tensor("train", "y");
  for (uint64_t i = 0; i < x.bytes / 4; ++i)
    static_cast<float *>(x.data)[i] = std::sin(static_cast<float>(number * 1000) + static_cast<float>(i));
  for (uint64_t i = 0; i < y.bytes / 4; ++i)
    static_cast<float *>(y.data)[i] = std::cos(static_cast<float>(i));
  session.writeScalars("train", session.learningRate(number), number);
  session.step();
}
std::string weights(TrainingSession &session) {
  lowtide_tensor w = session.tensor("train", "w"), m = session.tensor("train", "w.m");
  return std::string(static_cast<char *>(w.data), w.bytes) + std::string(static_cast<char *>(m.data), m.bytes);
}

TEST(Checkpoint, ResumesWithTheSameBits) {
  std::string directory = fresh("resume");
  TrainingSession through(artifact()), first(artifact()), second(artifact());
  through.bind({.threads = 2}), first.bind({.threads = 1}), second.bind({.threads = 2});
  for (int i = 0; i < 20; ++i)
    step(through, i);
  for (int i = 0; i < 9; ++i)
    step(first, i);
  first.save(directory, 9);
  int64_t next = second.resume(directory);
  EXPECT_EQ(next, 9);
  EXPECT_EQ(weights(first), weights(second));
  for (int64_t i = next; i < 20; ++i)
    step(second, i);
  EXPECT_EQ(weights(through), weights(second));
  EXPECT_EQ(readFile(directory + "/latest"), "step-00000009\n");
}

TEST(Checkpoint, KeepsFrameworkNamesAndLayout) {
  std::string directory = fresh("layout");
  TrainingSession session(artifact());
  session.bind();
  session.save(directory, 1);
  std::string text = readFile(directory + "/step-00000001/params.safetensors");
  EXPECT_NE(text.find(R"("w":{"dtype":"F32","shape":[1,8])"), std::string::npos) << text;
  EXPECT_NE(readFile(directory + "/step-00000001/optimizer.safetensors").find("w.m"), std::string::npos);
}

TEST(Checkpoint, TurnsPermutedTensorsBack) {
  plan::Plan plan;
  plan::Binding binding;
  binding.set_name("p");
  binding.set_dtype(plan::I32);
  for (int64_t dim : {3, 4, 2}) // stored
    binding.add_dims(dim);
  binding.mutable_slice()->set_bytes(96);
  plan::ParameterSource source;
  for (int64_t axis : {1, 2, 0}) // stored[i, j, k] = original[k, i, j]
    source.add_permutation(axis);
  EXPECT_EQ(originalDims(binding, &source), (std::vector<int64_t>{2, 3, 4}));
  std::vector<int32_t> stored(24), original, back(24);
  for (int i = 0; i < 24; ++i)
    stored[size_t(i)] = i;
  Tensor tensor{&binding, reinterpret_cast<uint8_t *>(stored.data())};
  SafetensorsEntry entry = frameworkEntry("p", tensor, &source);
  ASSERT_TRUE(entry
                  .write([&](const void *data, size_t bytes) {
                    original.assign(static_cast<const int32_t *>(data), static_cast<const int32_t *>(data) + bytes / 4);
                    return Status::ok();
                  })
                  .isOk());
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j)
        EXPECT_EQ(original[size_t((k * 3 + i) * 4 + j)], stored[size_t((i * 4 + j) * 2 + k)]);
  HostArray array;
  array.dtype = plan::I32, array.dims = {2, 3, 4};
  array.bytes = {reinterpret_cast<const uint8_t *>(original.data()), 96};
  Tensor target{&binding, reinterpret_cast<uint8_t *>(back.data())};
  ASSERT_TRUE(restore(array, target, &source).isOk());
  EXPECT_EQ(back, stored);
  array.dims = {3, 4, 2};
  EXPECT_FALSE(restore(array, target, &source).isOk());
}

TEST(Checkpoint, FallsBackToTheLastSoundOne) {
  std::string directory = fresh("damaged");
  TrainingSession session(artifact());
  session.bind();
  step(session, 0);
  session.save(directory, 1);
  std::string one = weights(session);
  step(session, 1);
  session.save(directory, 2);
  const std::string newest = directory + "/step-00000002/";
  for (const char *name : {"params.safetensors", "optimizer.safetensors", "state.json", "MANIFEST.json"}) {
    std::string content = readFile(newest + name);
    for (int kind = 0; kind < 3; ++kind) {
      if (kind == 0)
        writeText(newest + name, content.substr(0, content.size() / 2));
      else if (kind == 1)
        fs::remove(newest + name);
      else {
        std::string damaged = content;
        damaged[damaged.size() / 3] ^= 4;
        writeText(newest + name, damaged);
      }
      auto loaded = Session::load(artifact());
      ASSERT_TRUE((*loaded)->bind({.threads = 1}).isOk());
      std::vector<std::string> notes;
      auto strict = loadCheckpoint(**loaded, directory, true, notes);
      EXPECT_FALSE(strict) << name << kind;
      auto state = loadCheckpoint(**loaded, directory, false, notes);
      ASSERT_TRUE(state) << name << kind << state.status().str();
      EXPECT_EQ(state->step, 1);
      EXPECT_EQ(notes.size(), 1u);
      ASSERT_TRUE(fs::exists(directory + "/step-00000002.corrupt"));
      fs::rename(directory + "/step-00000002.corrupt", directory + "/step-00000002");
      writeText(newest + name, content);
    }
  }
  EXPECT_EQ(session.resume(directory), 2);
}

TEST(Checkpoint, KeepsTheNewestAndReplacesTheSameStep) {
  std::string directory = fresh("keep");
  auto loaded = Session::load(artifact());
  ASSERT_TRUE((*loaded)->bind({.threads = 1}).isOk());
  for (int64_t i : {1, 2, 3, 4, 4}) {
    RunState state;
    state.step = i;
    auto saved = saveCheckpoint(**loaded, state, directory, 2);
    ASSERT_TRUE(saved) << saved.status().str();
  }
  EXPECT_FALSE(fs::exists(directory + "/step-00000002"));
  EXPECT_TRUE(fs::exists(directory + "/step-00000003"));
  int entries = 0;
  for (const auto &entry : fs::directory_iterator(directory))
    entries += !entry.path().empty();
  EXPECT_EQ(entries, 3) << "two checkpoints and 'latest', nothing temporary";
  RunState state;
  EXPECT_FALSE(saveCheckpoint(**loaded, state, "/proc/none", 2));
  std::vector<std::string> notes;
  EXPECT_FALSE(loadCheckpoint(**loaded, fresh("empty"), false, notes));
}

/// Protobuf by hand: tag and length.
std::string field(int number, const std::string &content) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  size_t length = content.size();
  for (; length >= 128; length >>= 7)
    text += static_cast<char>(length | 128);
  return text + static_cast<char>(length) + content;
}

TEST(ExportOnnx, WritesWeightsWhereTheyLay) {
  auto loaded = Session::load(artifact());
  ASSERT_TRUE((*loaded)->bind({.threads = 1}).isOk());
  std::vector<std::string> notes;
  std::string values(32, '\x11');
  std::string tensor = std::string("\x08\x08\x08\x01\x10\x01", 6) + field(8, "w_init") + field(9, values);
  std::string model = field(2, "producer") + field(7, field(2, "graph") + field(5, tensor) + field(1, "node"));
  std::string path = fresh("model.onnx"), target = fresh("trained.onnx");
  writeText(path, model);
  ASSERT_TRUE(exportOnnx(**loaded, path, target, notes).isOk());
  std::string trained = readFile(target), expected = model;
  auto w = (*loaded)->tensor("train", "w");
  expected.replace(expected.find(values), 32, std::string(reinterpret_cast<char *>(w->data), 32));
  EXPECT_EQ(trained, expected);

  auto refused = [&](const std::string &content, const char *words) {
    writeText(path, content);
    Status status = exportOnnx(**loaded, path, target, notes);
    EXPECT_FALSE(status.isOk());
    EXPECT_NE(status.str().find(words), std::string::npos) << status.str();
  };
  refused(field(7, field(5, field(8, "other") + field(9, values))), "no values");
  refused(field(7, field(5, std::string("\x10\x01", 2) + field(8, "w_init") + field(9, "short"))), "5 bytes");
  refused(model.substr(0, 40), "damaged");
  auto external = [&](const char *location) {
    return field(7, field(5, std::string("\x10\x01", 2) + field(8, "w_init") +
                                 field(13, field(1, "location") + field(2, location))));
  };
  refused(external("../weights"), "plain file name");
  refused(external("/etc/passwd"), "plain file name");
  refused(external("weights.bin"), "another directory");
}

TEST(CInterface, GivesStatusesInWords) {
  lowtide_session *session = nullptr;
  lowtide_status *status = lowtide_session_load("/no/such/file.tide", &session);
  ASSERT_NE(status, nullptr);
  EXPECT_EQ(lowtide_status_code(status), LOWTIDE_IO);
  EXPECT_STREQ(lowtide_status_where(status), "/no/such/file.tide");
  EXPECT_NE(std::string(lowtide_status_message(status)), "");
  lowtide_status_free(status);
  status = lowtide_session_load(nullptr, &session);
  EXPECT_EQ(lowtide_status_code(status), LOWTIDE_USAGE);
  lowtide_status_free(status);
  EXPECT_EQ(lowtide_status_code(nullptr), LOWTIDE_OK);

  ASSERT_EQ(lowtide_session_load(artifact().c_str(), &session), nullptr);
  EXPECT_EQ(lowtide_session_entry_count(session), 3u);
  EXPECT_STREQ(lowtide_session_entry_name(session, 1), "gradient");
  EXPECT_EQ(lowtide_session_entry_name(session, 3), nullptr);
  ASSERT_EQ(lowtide_session_bind(session, nullptr), nullptr);
  EXPECT_EQ(lowtide_session_tensor_count(session, "train"), 6u);
  lowtide_tensor tensor;
  ASSERT_EQ(lowtide_session_tensor_at(session, "train", 0, &tensor), nullptr);
  EXPECT_STREQ(tensor.name, "x");
  EXPECT_EQ(tensor.rank, 2u);
  EXPECT_EQ(tensor.dims[1], width);
  status = lowtide_session_tensor_at(session, "train", 6, &tensor);
  EXPECT_EQ(lowtide_status_code(status), LOWTIDE_USAGE);
  lowtide_status_free(status);
  EXPECT_EQ(lowtide_session_planned_bytes(session), lowtide_session_allocated_bytes(session));
  lowtide_session_free(session);
}

} // namespace
