//===- FolderListing.cpp - the checkpoints in a folder ---------------------===//

#include "runtime/checkpoint/FolderListing.h"

#include "runtime/MappedFile.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace lowtide::rt {

namespace fs = std::filesystem;

std::string stepName(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

/// The step of a checkpoint's name; nothing if it is no such name.
static std::optional<int64_t> stepOf(const std::string &name) {
  int64_t step = 0, number = 0;
  const char *end = name.data() + name.size();
  if (name.rfind("step-", 0) != 0 || name.size() < 13)
    return std::nullopt;
  auto read = [&](const char *from, int64_t &to) {
    // No sign: from_chars would take a minus.
    if (from == end || *from < '0' || *from > '9')
      return from;
    auto [stop, error] = std::from_chars(from, end, to);
    return error == std::errc() ? stop : from;
  };
  const char *stop = read(name.data() + 5, step);
  if (stop - name.data() < 13 || step > maxStep)
    return std::nullopt;
  if (stop == end)
    return step;
  const char replaced[] = ".replaced-";
  const size_t length = sizeof replaced - 1;
  if (static_cast<size_t>(end - stop) <= length || std::memcmp(stop, replaced, length) != 0)
    return std::nullopt;
  return read(stop + length, number) == end ? std::optional(step) : std::nullopt;
}

Expected<std::vector<ListedCheckpoint>> listCheckpoints(const std::string &folder) {
  std::vector<ListedCheckpoint> list;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error)
    return error == std::errc::no_such_file_or_directory
               ? Expected<std::vector<ListedCheckpoint>>(list)
               : ioError("cannot read the folder: " + error.message(), folder);
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    ListedCheckpoint next;
    next.name = entries->path().filename().string();
    std::optional<int64_t> step = stepOf(next.name);
    if (!step)
      continue;
    next.step = *step;
    if (Expected<StateFile> facts = readStateFile(folder + "/" + next.name))
      next.facts = std::move(*facts);
    list.push_back(std::move(next));
    if (error)
      return ioError("cannot read the folder: " + error.message(), folder);
  }
  std::sort(list.begin(), list.end(), [](const ListedCheckpoint &a, const ListedCheckpoint &b) {
    const int64_t first = a.facts ? a.facts->written : INT64_MIN, second = b.facts ? b.facts->written : INT64_MIN;
    return std::tie(first, a.step, a.name) > std::tie(second, b.step, b.name);
  });
  return list;
}

std::string readPointer(const std::string &folder, const char *pointer, std::string *missing) {
  Expected<MappedFile> file = MappedFile::open(folder + "/" + pointer);
  if (!file)
    return {};
  std::string name(file->text().substr(0, 64));
  name = name.substr(0, name.find('\n'));
  std::error_code error;
  if (!stepOf(name))
    return {};
  if (fs::is_directory(folder + "/" + name, error))
    return name;
  if (missing)
    *missing = name;
  return {};
}

} // namespace lowtide::rt
