//===- RunState.cpp - what a run needs besides its tensors -----------------===//

#include "runtime/checkpoint/RunState.h"

#include "runtime/Json.h"
#include "runtime/MappedFile.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/OutputFile.h"

#include <cmath>
#include <cstdio>
#include <random>
#include <sys/stat.h>

namespace lowtide::rt {

using Json = nlohmann::ordered_json;

std::string newRunName() {
  std::random_device random;
  char text[20];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

/// An integer of 64 bits with its sign, or nothing.
static std::optional<int64_t> integerOf(const nlohmann::json &object, const char *key) {
  if (!object.is_object())
    return std::nullopt;
  auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer())
    return std::nullopt;
  if (found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return std::nullopt;
  return found->get<int64_t>();
}

Expected<StateFile> readStateFile(const std::string &checkpoint) {
  const std::string path = checkpoint + "/state.json";
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeStatus();
  Expected<nlohmann::json> json = parseJson(file->text());
  if (!json)
    return json.takeStatus().at(path);
  if (!json->is_object())
    return badInput("is not an object", path);
  StateFile result;
  std::optional<int64_t> step = integerOf(*json, "step"), seed = integerOf(*json, "seed");
  if (!step || !seed)
    return badInput("has no step and seed", path);
  if (*step < 0 || *step > maxStep)
    return badInput("step " + std::to_string(*step) + " is out of range", path);
  result.state.step = *step, result.state.seed = *seed;
  auto shuffle = json->find("shuffle_seed");
  if (shuffle == json->end() || !(shuffle->is_null() || shuffle->is_number_unsigned()))
    return badInput("has no shuffle_seed that is null or a whole number: the order of the samples would be another",
                    path);
  if (!shuffle->is_null())
    result.state.shuffleSeed = shuffle->get<uint64_t>();
  auto text = [&](const char *key, std::string &to) {
    auto found = json->find(key);
    if (found == json->end())
      return Status::ok();
    if (!found->is_string())
      return badInput(std::string(key) + " is no text", path);
    to = found->get<std::string>();
    return Status::ok();
  };
  if (auto best = json->find("best"); best != json->end()) {
    std::optional<int64_t> at = integerOf(*best, "step"), waited = integerOf(*best, "waited");
    auto measure = best->find("measure"), value = best->find("value");
    if (!at || !waited || measure == best->end() || !measure->is_string() || value == best->end() ||
        !(value->is_null() || value->is_number()))
      return badInput("best is no evaluation with measure, step, value and waited", path);
    result.state.best = {measure->get<std::string>(), *at, value->is_null() ? NAN : value->get<double>(), *waited};
  }
  LOWTIDE_TRY(text("model_sha256", result.modelDigest));
  LOWTIDE_TRY(text("run", result.state.run));
  // Runs without a name (of the C interface, or older) are one if model and seed are.
  if (result.state.run.empty())
    result.state.run = "unnamed-" + result.modelDigest.substr(0, 12) + "-" + std::to_string(result.state.seed);
  if (std::optional<int64_t> written = integerOf(*json, "written_ns")) {
    result.written = *written;
  } else {
    struct stat info;
    if (::stat((checkpoint + "/" + manifestName).c_str(), &info) == 0)
      result.written = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
  }
  return result;
}

Status writeStateFile(const std::string &checkpoint, const Session &session, const RunState &state, int64_t written) {
  const plan::Plan &plan = session.plan();
  Json json = {{"format", checkpointFormat},
               {"step", state.step},
               {"seed", state.seed},
               {"shuffle_seed", state.shuffleSeed ? Json(*state.shuffleSeed) : Json(nullptr)},
               {"written_ns", written},
               {"optimizer", plan.optimizer().kind()},
               {"schedule", plan::Schedule::Kind_Name(plan.schedule().kind())},
               {"lr", plan.schedule().lr()},
               {"model_sha256", plan.model_digest()},
               {"plan_sha256", session.artifact().planDigest()},
               {"producer", plan.producer()},
               {"target", plan.target()}};
  if (!state.run.empty())
    json["run"] = state.run;
  if (state.best)
    json["best"] = {{"measure", state.best->measure},
                    {"step", state.best->step},
                    {"value", std::isfinite(state.best->value) ? Json(state.best->value) : Json(nullptr)},
                    {"waited", state.best->waited}};
  return writeFile(checkpoint + "/state.json", json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

} // namespace lowtide::rt
