//===- Dataset.cpp - the user's arrays, found and opened -------------------===//

#include "runtime/data/Dataset.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <glob.h>

namespace lowtide::rt {
namespace {

std::string stem(const std::string &path) {
  size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.find('.'));
}

Expected<std::vector<std::string>> expand(const std::string &pattern) {
  if (pattern.find('*') == std::string::npos)
    return std::vector<std::string>{pattern};
  glob_t found = {};
  int result = ::glob(pattern.c_str(), 0, nullptr, &found); // sorted
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (paths.empty())
    return ioError("no file matches", pattern);
  return paths;
}

Status addFile(Dataset &dataset, const std::string &name, const std::string &path) {
  Expected<MappedFile> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.takeStatus();
  auto file = std::make_shared<MappedFile>(std::move(*mapped));
  std::span<const uint8_t> bytes = file->bytes();
  auto put = [&](const std::string &key, HostArray array) {
    if (!dataset.arrays.try_emplace(key, std::move(array)).second)
      return badInput("array '" + printable(key) + "' is given twice", path);
    return Status::ok();
  };
  auto starts = [&](const char *magic, size_t size) {
    return bytes.size() >= size && std::memcmp(bytes.data(), magic, size) == 0;
  };
  if (starts("PK", 2)) {
    Expected<std::vector<NamedArray>> arrays = parseNpz(bytes, file);
    if (!arrays)
      return arrays.takeStatus().at(path);
    for (NamedArray &entry : *arrays)
      LOWTIDE_TRY(put(name.empty() ? entry.name : name + "." + entry.name, std::move(entry.array)));
    return Status::ok();
  }
  int32_t magic = 0;
  if (bytes.size() >= 4)
    std::memcpy(&magic, bytes.data(), 4);
  bool shard = magic == 20240520 || magic == 20240801;
  Expected<HostArray> array = starts("\x93NUMPY", 6) ? parseNpy(bytes, file)
                              : shard                ? parseTokenShard(bytes, file)
                              : starts("\0\0", 2)
                                  ? parseIdx(bytes, file)
                                  : Expected<HostArray>(badInput("is none of .npy, .npz, idx and token shard"));
  if (!array)
    return array.takeStatus().at(path);
  if (shard && name.empty()) {
    dataset.shards.push_back(std::move(*array));
    return Status::ok();
  }
  return put(name.empty() ? stem(path) : name, std::move(*array));
}

} // namespace

Expected<Dataset> Dataset::open(const std::string &spec) {
  Dataset dataset;
  for (size_t at = 0; at <= spec.size();) {
    size_t comma = std::min(spec.find(',', at), spec.size());
    std::string item = spec.substr(at, comma - at);
    at = comma + 1;
    if (item.empty())
      return Status(StatusCode::Usage, "empty name in --data=" + printable(spec));
    if (item == "synthetic" || item.rfind("synthetic:", 0) == 0) {
      uint64_t seed = 0;
      if (item.size() > 9) {
        auto [end, error] = std::from_chars(item.data() + 10, item.data() + item.size(), seed);
        if (error != std::errc() || end != item.data() + item.size())
          return Status(StatusCode::Usage, "'" + printable(item) + "' does not end in a seed");
      }
      dataset.synthetic = seed;
      continue;
    }
    std::string name;
    if (size_t equals = item.find('='); equals != std::string::npos) {
      name = item.substr(0, equals);
      item = item.substr(equals + 1);
    }
    Expected<std::vector<std::string>> paths = expand(item);
    if (!paths)
      return paths.takeStatus();
    for (const std::string &path : *paths)
      LOWTIDE_TRY(addFile(dataset, name, path));
  }
  if (dataset.synthetic && (!dataset.arrays.empty() || !dataset.shards.empty()))
    return Status(StatusCode::Usage, "synthetic data and files cannot be mixed");
  return dataset;
}

} // namespace lowtide::rt
