//===- Manifest.cpp - whether a checkpoint is what was written -------------===//

#include "runtime/checkpoint/Manifest.h"

#include "runtime/Json.h"
#include "runtime/MappedFile.h"
#include "runtime/Sha256.h"
#include "runtime/checkpoint/OutputFile.h"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace lowtide::rt {

using Json = nlohmann::ordered_json;

namespace {

/// Maps a file of a checkpoint, or says why not: one that is not there was lost, one that does not open may be sound.
Expected<MappedFile> openPart(const std::string &path, Unloadable &why) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file) {
    struct stat info;
    const bool isLost = ::lstat(path.c_str(), &info) != 0 && errno == ENOENT;
    why = file.status().code() == StatusCode::Io && !isLost ? Unloadable::Unreadable : Unloadable::Damaged;
  }
  return file;
}

/// All that a manifest may list.
std::vector<const char *> listFiles() {
  std::vector<const char *> names(std::begin(checkpointFiles), std::end(checkpointFiles));
  names.insert(names.end(), std::begin(adapterFiles), std::end(adapterFiles));
  return names;
}
bool isOptional(const char *name) {
  return std::find(std::begin(adapterFiles), std::end(adapterFiles), std::string_view(name)) != std::end(adapterFiles);
}

/// The SHA-256 that a manifest states of a file; empty if it states none.
std::string statedDigest(const nlohmann::json &manifest, const char *name) {
  auto files = manifest.is_object() ? manifest.find("files") : manifest.end();
  if (!manifest.is_object() || files == manifest.end() || !files->is_object())
    return {};
  auto file = files->find(name);
  if (file == files->end() || !file->is_object() || !file->contains("sha256") || !(*file)["sha256"].is_string())
    return {};
  return (*file)["sha256"].get<std::string>();
}

Expected<nlohmann::json> readManifest(const std::string &checkpoint, Unloadable &why) {
  Expected<MappedFile> file = openPart(checkpoint + "/" + manifestName, why);
  if (!file)
    return file.takeStatus();
  why = Unloadable::Damaged;
  Expected<nlohmann::json> json = parseJson(file->text());
  if (!json)
    return json.takeStatus().at(checkpoint + "/" + manifestName);
  return json;
}

} // namespace

std::optional<Refusal> checkManifest(const std::string &checkpoint) {
  Unloadable why = Unloadable::Damaged;
  const std::string path = checkpoint + "/" + manifestName;
  Expected<nlohmann::json> json = readManifest(checkpoint, why);
  if (!json)
    return Refusal{why, json.takeStatus()};
  if (!json->is_object() || !json->contains("format") || !(*json)["format"].is_number_integer())
    return Refusal{Unloadable::Damaged, badInput("is not a manifest", path)};
  if ((*json)["format"] < 1 || (*json)["format"] > checkpointFormat)
    return Refusal{Unloadable::NewerFormat,
                   {StatusCode::Unsupported,
                    "checkpoint format " + (*json)["format"].dump() + "; this runtime reads 1 to " +
                        std::to_string(checkpointFormat),
                    path}};
  for (const char *name : listFiles()) {
    std::string stated = statedDigest(*json, name);
    if (stated.empty() && isOptional(name))
      continue;
    if (stated.empty())
      return Refusal{Unloadable::Damaged, badInput(std::string("states no digest of ") + name, path)};
    Expected<MappedFile> file = openPart(checkpoint + "/" + name, why);
    if (!file)
      return Refusal{why, file.takeStatus()};
    const bool holds = stated == toHex(Sha256::of(file->bytes().data(), file->bytes().size()));
    if (!file->isWhole())
      return Refusal{Unloadable::Unreadable, ioError("cannot be read to its end", checkpoint + "/" + name)};
    if (!holds)
      return Refusal{Unloadable::Damaged,
                     badInput("damaged: its digest does not match the manifest", checkpoint + "/" + name)};
  }
  return std::nullopt;
}

int manifestFormat(const std::string &checkpoint) {
  Unloadable why;
  Expected<nlohmann::json> json = readManifest(checkpoint, why);
  return json && json->is_object() ? json->value("format", checkpointFormat) : checkpointFormat;
}

Status writeManifest(const std::string &checkpoint) {
  Json files = Json::object();
  for (const char *name : listFiles()) {
    struct stat info;
    if (isOptional(name) && ::lstat((checkpoint + "/" + name).c_str(), &info) != 0 && errno == ENOENT)
      continue;
    Expected<MappedFile> file = MappedFile::open(checkpoint + "/" + name);
    if (!file)
      return file.takeStatus();
    Digest digest = Sha256::of(file->bytes().data(), file->bytes().size());
    files[name] = {{"bytes", file->bytes().size()}, {"sha256", toHex(digest)}};
  }
  return writeFile(checkpoint + "/" + manifestName,
                   Json{{"format", checkpointFormat}, {"files", files}}.dump(1) + "\n");
}

bool statesSameTensors(const std::string &checkpoint, const std::string &other) {
  Unloadable why;
  Expected<nlohmann::json> one = readManifest(checkpoint, why), two = readManifest(other, why);
  if (!one || !two)
    return false;
  for (const char *name : {checkpointFiles[0], checkpointFiles[1]})
    if (std::string digest = statedDigest(*one, name); digest.empty() || digest != statedDigest(*two, name))
      return false;
  return true;
}

} // namespace lowtide::rt
