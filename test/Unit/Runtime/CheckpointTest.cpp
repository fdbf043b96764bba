//===- CheckpointTest.cpp - runs that stop and go on -----------------------===//

#include "runtime/checkpoint/Checkpoint.h"
#include "SavedRuns.h"
#include "lowtide-rt/lowtide.hpp"
#include "runtime/Element.h"
#include "runtime/MappedFile.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/ExportOnnx.h"
#include "runtime/checkpoint/FrameworkTensor.h"
#include "runtime/checkpoint/OnnxWire.h"
#include "runtime/checkpoint/OutputFile.h"
#include "runtime/checkpoint/RunFolder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;
namespace fs = std::filesystem;

namespace {

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
      auto before = contents(directory);
      std::unique_ptr<Session> reader = bound();
      EXPECT_FALSE(loadCheckpoint(*reader, directory, true)) << name << kind;
      auto loaded = loadCheckpoint(*reader, directory, false);
      ASSERT_TRUE(loaded) << name << kind << loaded.status().str();
      EXPECT_EQ(loaded->state.step, 1);
      EXPECT_EQ(loaded->damaged, std::vector<std::string>{"step-00000002"});
      EXPECT_EQ(loaded->notes.size(), 1u);
      EXPECT_EQ(contents(directory), before) << "reading changes nothing";
      writeText(newest + name, content);
    }
  }
  EXPECT_EQ(session.resume(directory), 2);
}

TEST(Checkpoint, SaysWhyNoneIsLoaded) {
  std::string directory = fresh("refused");
  TrainingSession session(artifact());
  session.bind();
  session.save(directory, 1);
  session.save(directory, 2);
  auto refused = [&](Session &reader, StatusCode code, std::initializer_list<const char *> words) {
    auto before = contents(directory);
    auto loaded = loadCheckpoint(reader, directory, false);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.status().code(), code) << loaded.status().str();
    for (const char *word : words)
      EXPECT_NE(loaded.status().str().find(word), std::string::npos) << word << " in " << loaded.status().str();
    EXPECT_EQ(contents(directory), before);
  };
  auto another = [&](auto change) {
    plan::Plan plan = regressionPlan();
    for (plan::Entry &entry : *plan.mutable_entries())
      for (plan::Binding &binding : *entry.mutable_bindings())
        change(binding);
    auto loaded = Session::load(writeRegression(testing::TempDir() + "another.tide", plan));
    EXPECT_TRUE(loaded) << loaded.status().str();
    EXPECT_TRUE((*loaded)->bind({.threads = 1}).isOk());
    return std::move(*loaded);
  };
  std::unique_ptr<Session> renamed = another([](plan::Binding &binding) {
    if (binding.name() == "w")
      binding.set_name("model.w");
  });
  refused(*renamed, StatusCode::BadInput,
          {"holds no sound checkpoint", "step-00000002", "step-00000001", "has no tensor 'model.w'", "another model"});
  std::unique_ptr<Session> retyped = another([](plan::Binding &binding) {
    if (binding.name() == "w" || binding.name() == "w.m")
      binding.set_dtype(plan::I32);
  });
  refused(*retyped, StatusCode::BadInput, {"tensor 'w' is float32[1, 8] there, int32[1, 8]", "another precision"});

  // A later format is not damaged, whatever its digests; the one before is named, not taken.
  std::unique_ptr<Session> reader = bound();
  const std::string manifest = directory + "/step-00000002/MANIFEST.json", text = readFile(manifest);
  std::string later = text;
  later.replace(later.find("\"format\": 2"), 11, "\"format\": 3");
  writeText(manifest, later);
  refused(*reader, StatusCode::Unsupported, {"checkpoint format 3; this runtime reads 1 to 2", "--resume="});
  writeText(manifest, R"({"format": 1, "files": {"params.safetensors": {"sha256": 7}, "state.json": []}})");
  auto loaded = loadCheckpoint(*reader, directory, false);
  ASSERT_TRUE(loaded) << loaded.status().str();
  EXPECT_EQ(loaded->state.step, 1);
  writeText(manifest, text);

  // What cannot be opened may be sound.
  fs::rename(directory + "/step-00000002/state.json", directory + "/state");
  fs::create_symlink("elsewhere", directory + "/step-00000002/state.json");
  refused(*reader, StatusCode::Io, {"state.json", "cannot open", "sound is ", "step-00000001"});
}

TEST(Checkpoint, DoesNotGuessAState) {
  std::string directory = fresh("state");
  TrainingSession session(artifact());
  session.bind();
  session.save(directory, 1);
  const std::string checkpoint = directory + "/step-00000001", good = readFile(checkpoint + "/state.json");
  auto change = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    writeText(checkpoint + "/state.json", text);
    ASSERT_TRUE(writeManifest(checkpoint).isOk());
    std::unique_ptr<Session> reader = bound();
    auto loaded = loadCheckpoint(*reader, directory, false);
    EXPECT_FALSE(loaded) << to;
  };
  change("\"shuffle_seed\": null", "\"shuffle_seed\": \"7\"");
  change("\"shuffle_seed\": null", "\"shuffle_seed\": -7");
  change("\"shuffle_seed\": null", "\"shufle_seed\": 7");
  change("\"step\": 1", "\"step\": 1.5");
  change("\"step\": 1", "\"step\": 18446744073709551615");
  change("\"seed\": 0", "\"seed\": null");
  change("{", "[{");
}

TEST(Checkpoint, HoldsNothingThatIsNotFinite) {
  std::string directory = fresh("finite");
  std::unique_ptr<Session> session = bound();
  ASSERT_TRUE(saveCheckpoint(*session, at(1), directory));
  auto state = session->tensor("train", "w.m");
  const float before = reinterpret_cast<float *>(state->data)[5];
  for (float value : {std::nanf(""), INFINITY, -INFINITY}) {
    reinterpret_cast<float *>(state->data)[5] = value;
    auto saved = saveCheckpoint(*session, at(2), directory);
    ASSERT_FALSE(saved);
    EXPECT_EQ(saved.status().code(), StatusCode::NonFinite);
    EXPECT_NE(saved.status().str().find("state 'w.m' holds"), std::string::npos) << saved.status().str();
    EXPECT_NE(saved.status().str().find("(element 5)"), std::string::npos) << saved.status().str();
  }
  EXPECT_FALSE(fs::exists(directory + "/step-00000002"));
  // One that an earlier runtime wrote is passed over, and alone it is refused.
  reinterpret_cast<float *>(state->data)[5] = before;
  ASSERT_TRUE(saveCheckpoint(*session, at(2), directory));
  const std::string newest = directory + "/step-00000002/";
  std::string file = readFile(newest + "optimizer.safetensors");
  const float nan = std::nanf("");
  file.replace(file.size() - 4, 4, reinterpret_cast<const char *>(&nan), 4);
  writeText(newest + "optimizer.safetensors", file);
  ASSERT_TRUE(writeManifest(directory + "/step-00000002").isOk());
  auto loaded = loadCheckpoint(*session, directory, false);
  ASSERT_TRUE(loaded) << loaded.status().str();
  EXPECT_EQ(loaded->state.step, 1);
  EXPECT_TRUE(loaded->damaged.empty());
  fs::remove_all(directory + "/step-00000001");
  auto refused = loadCheckpoint(*session, directory, false);
  EXPECT_EQ(refused.status().code(), StatusCode::NonFinite) << refused.status().str();
}

TEST(Checkpoint, TakesTensorsOfAnyName) {
  plan::Plan plan = regressionPlan();
  for (plan::Entry &entry : *plan.mutable_entries())
    for (plan::Binding &binding : *entry.mutable_bindings())
      if (binding.name() == "w")
        binding.set_name("__metadata__");
      else if (binding.name() == "w.m")
        binding.set_name("__metadata___");
  for (plan::ParameterSource &source : *plan.mutable_sources())
    if (source.name() == "w")
      source.set_name("__metadata__");
  auto loaded = Session::load(writeRegression(testing::TempDir() + "metadata.tide", plan));
  ASSERT_TRUE((*loaded)->bind({.threads = 1}).isOk());
  auto w = (*loaded)->tensor("train", "__metadata__");
  ASSERT_TRUE(w) << w.status().str();
  std::string directory = fresh("metadata"), values(reinterpret_cast<char *>(w->data), w->bytes());
  auto saved = saveCheckpoint(**loaded, at(1), directory);
  ASSERT_TRUE(saved) << saved.status().str();
  std::memset(w->data, 0, w->bytes());
  auto back = loadCheckpoint(**loaded, directory, true);
  ASSERT_TRUE(back) << back.status().str();
  EXPECT_EQ(std::string(reinterpret_cast<char *>(w->data), w->bytes()), values);
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
  refused(external("absent.bin"), "absent.bin");
}

TEST(ExportOnnx, IsRefusedBeforeTraining) {
  auto loaded = Session::load(artifact());
  ASSERT_TRUE((*loaded)->bind({.threads = 1}).isOk());
  const std::string folder = fresh("refused/"), path = folder + "model.onnx";
  std::filesystem::create_directories(folder);
  writeText(path, "model");
  auto refusal = [&](const std::string &model, const std::string &target) {
    return checkExport(**loaded, model, target).str();
  };
  EXPECT_EQ(refusal(path, folder + "trained.onnx"), "");
  EXPECT_EQ(refusal(path, folder + "absent/trained.onnx"),
            folder + "absent/trained.onnx: cannot create: folder '" + folder + "absent' does not exist");
  EXPECT_EQ(refusal(path, folder), folder + ": cannot create: it is a folder");
  EXPECT_NE(refusal(folder + "other.onnx", folder + "trained.onnx").find("other.onnx: cannot open"), std::string::npos);
  // A file that cannot take its name leaves nothing.
  const Status failed = replaceFile(folder + "absent/x", "content");
  EXPECT_EQ(failed.str(), folder + "absent/x: cannot create: folder '" + folder + "absent' does not exist");
  ASSERT_TRUE(replaceFile(folder + "x", "content").isOk());
  EXPECT_EQ(readFile(folder + "x"), "content");
  EXPECT_FALSE(std::filesystem::exists(folder + "x.tmp"));
}

/// Two tensors in files of their own, of which the step has one.
std::string externalModel(const std::string &held, const std::string &other) {
  auto tensor = [](const char *name, const std::string &location) {
    return field(5, std::string("\x08\x08\x08\x01\x10\x01", 6) + field(8, name) +
                        field(13, field(1, "location") + field(2, location)) +
                        field(13, field(1, "length") + field(2, "32")));
  };
  return field(7, field(1, field(1, "w_init")) + tensor("w_init", held) + tensor("other", other));
}

TEST(ExportOnnx, WritesExternalFilesUnderOtherNames) {
  auto loaded = Session::load(artifact());
  ASSERT_TRUE((*loaded)->bind({.threads = 1}).isOk());
  auto w = (*loaded)->tensor("train", "w");
  const std::string trained(reinterpret_cast<char *>(w->data), 32), values(32, '\x11'), rest(32, '\x22');
  const std::string folder = fresh("external/"), path = folder + "model.onnx";
  ASSERT_NE(trained, values);
  std::filesystem::create_directories(folder + "elsewhere");
  writeText(path, externalModel("model.onnx.data", "other.bin"));
  writeText(folder + "model.onnx.data", values);
  writeText(folder + "other.bin", rest);
  std::vector<std::string> notes;
  // Next to the model: what changes goes into a file of another name, and the rest stays where it is.
  Status status = exportOnnx(**loaded, path, folder + "trained.onnx", notes);
  ASSERT_TRUE(status.isOk()) << status.str();
  EXPECT_EQ(readFile(folder + "trained.onnx"), externalModel("trained.onnx.data", "other.bin"));
  EXPECT_EQ(readFile(folder + "trained.onnx.data"), trained);
  EXPECT_EQ(readFile(folder + "model.onnx.data"), values);
  // A name that the model has for a file is not taken.
  writeText(path, externalModel("again.onnx.data", "other.bin"));
  writeText(folder + "again.onnx.data", values);
  status = exportOnnx(**loaded, path, folder + "again.onnx", notes);
  ASSERT_TRUE(status.isOk()) << status.str();
  EXPECT_EQ(readFile(folder + "again.onnx"), externalModel("again.onnx.data.data", "other.bin"));
  EXPECT_EQ(readFile(folder + "again.onnx.data.data"), trained);
  EXPECT_EQ(readFile(folder + "again.onnx.data"), values);
  // Elsewhere: all files, under their names.
  status = exportOnnx(**loaded, path, folder + "elsewhere/model.onnx", notes);
  ASSERT_TRUE(status.isOk()) << status.str();
  EXPECT_EQ(readFile(folder + "elsewhere/model.onnx"), readFile(path));
  EXPECT_EQ(readFile(folder + "elsewhere/again.onnx.data"), trained);
  EXPECT_EQ(readFile(folder + "elsewhere/other.bin"), rest);
  // Into the model itself.
  const std::string model = readFile(path);
  status = exportOnnx(**loaded, path, path, notes);
  ASSERT_TRUE(status.isOk()) << status.str();
  EXPECT_EQ(readFile(path), model);
  EXPECT_EQ(readFile(folder + "again.onnx.data"), trained);
}

TEST(ExportOnnx, WritesWeightsWithinGraphsAndAttributes) {
  auto loaded = Session::load(artifact());
  ASSERT_TRUE((*loaded)->bind({.threads = 1}).isOk());
  std::vector<std::string> notes;
  const std::string path = fresh("model.onnx"), target = fresh("trained.onnx"), values(32, '\x11');
  auto w = (*loaded)->tensor("train", "w");
  const std::string trained(reinterpret_cast<char *>(w->data), 32);
  auto attribute = [](const std::string &content) { return field(5, field(1, "value") + content); };
  auto constant = [&](const char *name, const std::string &floats) {
    return field(1, field(2, name) + field(4, "Constant") + attribute(floats));
  };
  auto withTags = [](const std::string &floats, const std::string &between) {
    std::string text;
    for (size_t i = 0; i < floats.size(); i += 4)
      text += (text.empty() ? "" : between) + "\x3d" + floats.substr(i, 4);
    return text;
  };
  // A graph with the initializer, within a node's attribute.
  auto inner = [&](const char *graph, const char *name, const std::string &floats) {
    std::string tensor = std::string("\x08\x08\x08\x01\x10\x01", 6) + field(8, name) + field(9, floats);
    return field(1, field(2, "result") + field(4, "If") + attribute(field(6, field(2, graph) + field(5, tensor))));
  };
  auto writes = [&](auto graphOf) {
    writeText(path, field(7, graphOf(values)));
    Status status = exportOnnx(**loaded, path, target, notes);
    ASSERT_TRUE(status.isOk()) << status.str();
    EXPECT_EQ(readFile(target), field(7, graphOf(trained)));
  };
  auto refused = [&](const std::string &graph, const char *words) {
    writeText(path, field(7, graph));
    Status status = exportOnnx(**loaded, path, target, notes);
    EXPECT_NE(status.str().find(words), std::string::npos) << status.str();
  };
  writes([&](const std::string &floats) { return constant("w_init", withTags(floats, "")); });
  writes([&](const std::string &floats) { return constant("w_init", field(7, floats)); });
  writes([&](const std::string &floats) { return inner("yes", "w_init", floats); });
  refused(constant("w_init", withTags(values, field(1, "between"))), "no values for initializer 'w_init'");
  // What goes by the name of its graph is another tensor, and of two in graphs of one name nothing tells which is
  // meant.
  refused(inner("yes", "w_init", values) + inner("no", "w_init", values), "no values for initializer 'w_init'");
  auto places = [&](const std::string &graph) {
    const std::string text = field(7, graph);
    return *findInitializers({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
  };
  auto apart = places(inner("yes", "w", values) + inner("no", "w", values));
  EXPECT_TRUE(apart["w@yes"].found && apart["w@no"].found && apart["w@yes"].offset < apart["w@no"].offset);
  EXPECT_FALSE(places(inner("yes", "w", values) + inner("yes", "w", values))["w@yes"].found);
}

TEST(ExportOnnx, ImagesAreWhatEntriesCompute) {
  plan::Plan plan = regressionPlan();
  plan::Entry &entry = *plan.add_entries();
  entry.set_name("export");
  const plan::Slice w = slice(Params, 0, width * 4, 3);
  plan::Slice image = slice(Io, 640, width * 4, 0);
  bind(entry, "w", plan::Binding::PARAM, plan::F32, {width, 1}, w, 3).set_from_image(true);
  bind(entry, "image@image", plan::Binding::OUTPUT, plan::F32, {1, width}, image, 20);
  image.set_value(20);
  plan::Copy &copy = *entry.add_instructions()->mutable_copy();
  *copy.mutable_source() = w, *copy.mutable_target() = image;
  plan.mutable_sources(0)->add_image_initializers("image");
  auto load = [&] {
    auto loaded = Session::load(writeRegression(testing::TempDir() + "images.tide", plan));
    EXPECT_TRUE(loaded) << loaded.status().str();
    EXPECT_TRUE((*loaded)->bind({.threads = 1}).isOk());
    return std::move(*loaded);
  };
  const std::string before(32, '\x11');
  auto tensor = [&](const char *name) {
    return field(5, std::string("\x08\x08\x08\x01\x10\x01", 6) + field(8, name) + field(9, before));
  };
  std::string path = fresh("model.onnx"), target = fresh("trained.onnx");
  std::vector<std::string> notes;
  std::unique_ptr<Session> session = load();
  const std::string values = [&] {
    auto held = session->tensor("train", "w");
    return std::string(reinterpret_cast<char *>(held->data), held->bytes());
  }();
  auto trained = [&](std::string model) {
    for (size_t at = 0; (at = model.find(before, at)) != std::string::npos; at += values.size())
      model.replace(at, before.size(), values);
    return model;
  };
  // Next to the parameter, and in its place.
  for (const std::string &model : {field(7, tensor("w_init") + tensor("image")), field(7, tensor("image"))}) {
    writeText(path, model);
    Status status = exportOnnx(*session, path, target, notes);
    ASSERT_TRUE(status.isOk()) << status.str();
    EXPECT_EQ(readFile(target), trained(model));
  }
  writeText(path, field(7, tensor("w_init")));
  EXPECT_NE(exportOnnx(*session, path, target, notes).str().find("no values for initializer 'image'"),
            std::string::npos);

  // One that no entry computes would stay as it was.
  plan.mutable_sources(0)->add_image_initializers("other");
  session = load();
  writeText(path, field(7, tensor("w_init") + tensor("image") + tensor("other")));
  Status status = exportOnnx(*session, path, target, notes);
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  EXPECT_NE(status.str().find("also holds 'other'"), std::string::npos) << status.str();
}

TEST(ExportOnnx, WhatElseReadsAnInitializerKeepsItsNumbers) {
  // A constant of the graph that was merged with the parameter is no tensor of the plan.
  plan::Plan plan = regressionPlan();
  plan.mutable_sources(0)->add_use_nodes("y");
  plan.mutable_sources(0)->add_use_operands(1);
  auto session = Session::load(writeRegression(testing::TempDir() + "shared.tide", plan));
  ASSERT_TRUE((*session)->bind({.threads = 1}).isOk());
  const std::string tensor =
      field(5, std::string("\x08\x08\x08\x01\x10\x01", 6) + field(8, "w_init") + field(9, std::string(32, '\x11')));
  auto node = [](const char *read) {
    return field(1, field(1, "w_init") + field(1, read) + field(2, "y") + field(4, "Mul"));
  };
  std::string path = fresh("model.onnx"), target = fresh("trained.onnx");
  writeText(path, field(7, node("w_init") + tensor));
  std::vector<std::string> notes;
  Status status = exportOnnx(**session, path, target, notes);
  ASSERT_TRUE(status.isOk()) << status.str();
  const std::string trained = readFile(target);
  auto w = (*session)->tensor("train", "w");
  EXPECT_NE(trained.find(tensor), std::string::npos);
  EXPECT_NE(trained.find(node("w")), std::string::npos);
  EXPECT_NE(trained.find(std::string(reinterpret_cast<char *>(w->data), w->bytes())), std::string::npos);
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

TEST(CInterface, RefusesWhatCannotBe) {
  lowtide_session *session = nullptr;
  ASSERT_EQ(lowtide_session_load(artifact().c_str(), &session), nullptr);
  auto code = [](lowtide_status *status) {
    lowtide_code result = lowtide_status_code(status);
    lowtide_status_free(status);
    return result;
  };
  std::string directory = fresh("c-interface");
  int64_t next = 0, seed = 0;
  EXPECT_EQ(code(lowtide_session_save(session, directory.c_str(), 1, 0)), LOWTIDE_USAGE) << "before bind";
  EXPECT_EQ(code(lowtide_session_resume(session, directory.c_str(), &next, &seed)), LOWTIDE_USAGE) << "before bind";
  EXPECT_FALSE(fs::exists(directory));
  ASSERT_EQ(lowtide_session_bind(session, nullptr), nullptr);
  EXPECT_EQ(code(lowtide_session_save(session, directory.c_str(), -3, 0)), LOWTIDE_USAGE);
  EXPECT_EQ(code(lowtide_session_save(session, "/proc/none", 1, 0)), LOWTIDE_IO);
  EXPECT_EQ(code(lowtide_session_resume(session, "/nowhere", &next, &seed)), LOWTIDE_BAD_INPUT);
  EXPECT_EQ(code(lowtide_session_download(session, "nope")), LOWTIDE_USAGE);
  // Sessions that save the same step again and again leave one checkpoint.
  for (int cycle = 0; cycle < 3; ++cycle) {
    lowtide_session *other = nullptr;
    ASSERT_EQ(lowtide_session_load(artifact().c_str(), &other), nullptr);
    ASSERT_EQ(lowtide_session_bind(other, nullptr), nullptr);
    EXPECT_EQ(code(lowtide_session_save(other, directory.c_str(), 1, 0)), LOWTIDE_OK);
    EXPECT_EQ(code(lowtide_session_resume(other, directory.c_str(), &next, &seed)), LOWTIDE_OK);
    lowtide_session_free(other);
  }
  EXPECT_EQ(next, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 2) << "it and 'latest'";
  lowtide_session_free(session);
}

} // namespace
