//===- Checkpoint.cpp - a training run on disk -----------------------------===//

#include "runtime/checkpoint/Checkpoint.h"

#include "runtime/Json.h"
#include "runtime/MappedFile.h"
#include "runtime/Sha256.h"
#include "runtime/checkpoint/FrameworkTensor.h"
#include "runtime/checkpoint/OutputFile.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <unistd.h>

namespace lowtide::rt {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr int formatVersion = 1;
const char *const fileNames[] = {"params.safetensors", "optimizer.safetensors", "state.json"};

/// Which file a tensor goes to: 0 parameters and buffers, 1 optimizer state, nothing for constants.
std::optional<int> fileOf(const Session &session, const Tensor &tensor) {
  if (tensor.binding->kind() == plan::Binding::CONSTANT)
    return std::nullopt;
  if (tensor.binding->kind() == plan::Binding::PARAM || findSource(session.plan(), tensor.binding->name()))
    return 0;
  return 1;
}

Status writeManifest(const std::string &directory) {
  Json files = Json::object();
  for (const char *name : fileNames) {
    Expected<MappedFile> file = MappedFile::open(directory + "/" + name);
    if (!file)
      return file.takeStatus();
    Digest digest = Sha256::of(file->bytes().data(), file->bytes().size());
    files[name] = {{"bytes", file->bytes().size()}, {"sha256", toHex(digest)}};
  }
  return writeFile(directory + "/MANIFEST.json", Json{{"format", formatVersion}, {"files", files}}.dump(1) + "\n");
}

/// Numbers of the checkpoints in a directory, newest first.
std::vector<int64_t> listSteps(const std::string &directory) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    if (name.size() >= 13 && name.rfind("step-", 0) == 0 &&
        std::all_of(name.begin() + 5, name.end(), [](char c) { return c >= '0' && c <= '9'; }) && name.size() < 24)
      steps.push_back(std::stoll(name.substr(5)));
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

std::string stepName(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

Status checkManifest(const std::string &directory) {
  Expected<MappedFile> manifest = MappedFile::open(directory + "/MANIFEST.json");
  if (!manifest)
    return manifest.takeStatus();
  Expected<nlohmann::json> json = parseJson(manifest->text());
  if (!json)
    return json.takeStatus().at("MANIFEST.json");
  if (!json->is_object() || !json->contains("format") || !(*json)["format"].is_number_integer() ||
      !json->contains("files") || !(*json)["files"].is_object())
    return badInput("is not a manifest", "MANIFEST.json");
  if ((*json)["format"] != formatVersion)
    return {StatusCode::Unsupported, "checkpoint format " + (*json)["format"].dump() + "; this runtime reads 1"};
  for (const char *name : fileNames) {
    const nlohmann::json &files = (*json)["files"];
    if (!files.contains(name) || !files[name].is_object())
      return badInput(std::string("does not list ") + name, "MANIFEST.json");
    Expected<MappedFile> file = MappedFile::open(directory + "/" + name);
    if (!file)
      return file.takeStatus();
    Digest digest = Sha256::of(file->bytes().data(), file->bytes().size());
    if (files[name].value("sha256", std::string()) != toHex(digest))
      return badInput("damaged: its digest does not match the manifest", name);
  }
  return Status::ok();
}

Expected<RunState> readState(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeStatus();
  Expected<nlohmann::json> json = parseJson(file->text());
  if (!json)
    return json.takeStatus().at(path);
  RunState state;
  if (!json->is_object() || !json->contains("step") || !(*json)["step"].is_number_integer() ||
      !json->contains("seed") || !(*json)["seed"].is_number_integer())
    return badInput("has no step and seed", path);
  state.step = (*json)["step"].get<int64_t>();
  state.seed = (*json)["seed"].get<int64_t>();
  if (json->contains("shuffle_seed") && (*json)["shuffle_seed"].is_number_unsigned())
    state.shuffleSeed = (*json)["shuffle_seed"].get<uint64_t>();
  if (state.step < 0)
    return badInput("step " + std::to_string(state.step) + " is negative", path);
  return state;
}

Expected<RunState> loadOne(Session &session, const std::string &directory) {
  LOWTIDE_TRY(checkManifest(directory));
  std::map<std::string, HostArray> arrays[2];
  for (int i = 0; i < 2; ++i) {
    std::string path = directory + "/" + fileNames[i];
    Expected<MappedFile> mapped = MappedFile::open(path);
    if (!mapped)
      return mapped.takeStatus();
    auto file = std::make_shared<MappedFile>(std::move(*mapped));
    Expected<std::vector<NamedArray>> parsed = parseSafetensors(file->bytes(), file);
    if (!parsed)
      return parsed.takeStatus().at(path);
    for (NamedArray &entry : *parsed)
      arrays[i].emplace(entry.name, std::move(entry.array));
  }
  Expected<RunState> state = readState(directory + "/state.json");
  if (!state)
    return state;
  LOWTIDE_TRY(session.download());
  // Everything is looked at before anything is changed.
  for (int round = 0; round < 2; ++round)
    for (const Tensor &tensor : session.persistent()) {
      std::optional<int> file = fileOf(session, tensor);
      if (!file)
        continue;
      auto it = arrays[*file].find(tensor.binding->name());
      if (it == arrays[*file].end())
        return badInput("has no tensor '" + printable(tensor.binding->name()) + "'",
                        directory + "/" + fileNames[*file]);
      const plan::ParameterSource *source = findSource(session.plan(), tensor.binding->name());
      if (round == 0 &&
          (it->second.dtype != tensor.binding->dtype() || it->second.dims != originalDims(*tensor.binding, source)))
        return badInput("tensor '" + printable(tensor.binding->name()) + "' is " +
                            describe(it->second.dtype, it->second.dims) + " there, another shape in the artifact",
                        directory + "/" + fileNames[*file]);
      if (round == 1)
        LOWTIDE_TRY(restore(it->second, tensor, source));
    }
  LOWTIDE_TRY(session.upload());
  return state;
}

} // namespace

Expected<std::string> saveCheckpoint(const Session &session, const RunState &state, const std::string &directory,
                                     unsigned keep) {
  LOWTIDE_TRY(session.download());
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    return ioError("cannot create: " + error.message(), directory);
  std::string temporary = directory + "/.tmp-" + std::to_string(state.step) + "-" + std::to_string(::getpid());
  fs::remove_all(temporary, error);
  fs::create_directory(temporary, error);
  if (error)
    return ioError("cannot create: " + error.message(), temporary);

  auto write = [&]() -> Status {
    std::vector<SafetensorsEntry> entries[2];
    for (const Tensor &tensor : session.persistent())
      if (std::optional<int> file = fileOf(session, tensor))
        entries[*file].push_back(
            frameworkEntry(tensor.binding->name(), tensor, findSource(session.plan(), tensor.binding->name())));
    for (int i = 0; i < 2; ++i)
      LOWTIDE_TRY(writeSafetensors(temporary + "/" + fileNames[i], entries[i], {{"format", "pt"}}));
    const plan::Plan &plan = session.plan();
    Json json = {{"format", formatVersion},
                 {"step", state.step},
                 {"seed", state.seed},
                 {"shuffle_seed", state.shuffleSeed ? Json(*state.shuffleSeed) : Json(nullptr)},
                 {"optimizer", plan.optimizer().kind()},
                 {"schedule", plan::Schedule::Kind_Name(plan.schedule().kind())},
                 {"lr", plan.schedule().lr()},
                 {"model_sha256", plan.model_digest()},
                 {"plan_sha256", session.artifact().planDigest()},
                 {"producer", plan.producer()},
                 {"target", plan.target()}};
    LOWTIDE_TRY(writeFile(temporary + "/state.json", json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"));
    LOWTIDE_TRY(writeManifest(temporary));
    return syncDirectory(temporary);
  };
  std::string target = directory + "/" + stepName(state.step);
  Status status = write();
  if (status.isOk()) {
    // A checkpoint of the same step is replaced: it is moved aside first, a directory cannot be renamed over another.
    if (fs::exists(target, error)) {
      fs::rename(target, temporary + ".old", error);
      fs::remove_all(temporary + ".old", error);
    }
    fs::rename(temporary, target, error);
    if (error)
      status = ioError("cannot rename to its final name: " + error.message(), target);
  }
  if (!status.isOk()) {
    fs::remove_all(temporary, error);
    return status;
  }
  LOWTIDE_TRY(syncDirectory(directory));
  std::string latest = directory + "/.latest-" + std::to_string(::getpid());
  LOWTIDE_TRY(writeFile(latest, stepName(state.step) + "\n"));
  fs::rename(latest, directory + "/latest", error);
  if (error)
    return ioError("cannot rename to its final name: " + error.message(), directory + "/latest");
  std::vector<int64_t> steps = listSteps(directory);
  for (size_t i = keep; keep && i < steps.size(); ++i)
    fs::remove_all(directory + "/" + stepName(steps[i]), error);
  LOWTIDE_TRY(syncDirectory(directory));
  return target;
}

Expected<RunState> loadCheckpoint(Session &session, const std::string &directory, bool strict,
                                  std::vector<std::string> &notes) {
  std::error_code error;
  if (fs::exists(directory + "/MANIFEST.json", error))
    return loadOne(session, directory);
  std::vector<int64_t> steps = listSteps(directory);
  for (int64_t step : steps) {
    std::string path = directory + "/" + stepName(step);
    Expected<RunState> state = loadOne(session, path);
    if (state)
      return state;
    if (strict)
      return state.takeStatus().at(path);
    notes.push_back(path + ": " + state.status().str() + "; moved to " + path + ".corrupt, the one before is taken");
    fs::rename(path, path + ".corrupt", error);
  }
  return badInput(steps.empty() ? "holds no checkpoint (step-<number>)" : "holds no sound checkpoint", directory);
}

} // namespace lowtide::rt
