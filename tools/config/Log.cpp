//===- Log.cpp - what a tool says of its own work ---------------*- C++ -*-===//
//
// One table of areas for all tools, so that one LOWTIDE_LOG serves compiler and runtime.
//
//===----------------------------------------------------------------------===//

#include "Log.h"
#include "Config.h"
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <sstream>
#include <vector>

using namespace lowtide::config;

/// The compiler's stages in order, then what lowtide-run does.
static const std::vector<std::string> areas = {"import",   "nn",      "train", "fitted",    "plan",
                                               "artifact", "runtime", "data",  "checkpoint"};
static const std::vector<std::string> levelNames = {"off", "info", "debug"};

static std::string unknown(const char *what, const std::string &word, const std::vector<std::string> &known) {
  std::string list, nearest;
  size_t best = 3;
  for (const std::string &name : known) {
    list += (list.empty() ? "" : ", ") + name;
    if (size_t distance = editDistance(word, name); distance < best)
      best = distance, nearest = name;
  }
  return std::string("unknown ") + what + " '" + word + "'" +
         (nearest.empty() ? "" : "; did you mean '" + nearest + "'?") + " (" + what + "s: " + list +
         "; for example plan=debug,runtime=info)";
}

bool Log::configure(const std::string &text, std::string &error) {
  std::map<std::string, LogLevel> result = levels;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    if (item.empty())
      continue;
    const size_t equal = item.find('=');
    const std::string area = equal == std::string::npos ? "" : item.substr(0, equal), name = item.substr(equal + 1);
    auto level = std::find(levelNames.begin(), levelNames.end(), name);
    if (level == levelNames.end()) {
      error = unknown("level", name, levelNames);
      return false;
    }
    if (!area.empty() && std::find(areas.begin(), areas.end(), area) == areas.end()) {
      error = unknown("area", area, areas);
      return false;
    }
    for (const std::string &each : areas)
      if (area.empty() || area == each)
        result[each] = static_cast<LogLevel>(level - levelNames.begin());
  }
  levels = std::move(result);
  return true;
}

bool Log::shows(LogLevel level, const std::string &area) const {
  auto found = levels.find(area);
  return found != levels.end() && level <= found->second;
}

/// "2026-03-01T09:15:02.417Z".
static std::string timeText() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  const auto millis = duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32], whole[40];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(whole, sizeof whole, "%s.%03dZ", text, static_cast<int>(millis));
  return whole;
}

std::string Stopwatch::text() const {
  char text[48];
  std::snprintf(text, sizeof text, "%.1f ms", milliseconds());
  return text;
}

void Log::write(LogLevel level, const std::string &area, const std::string &message) const {
  if (!shows(level, area))
    return;
  if (beforeLine)
    beforeLine();
  std::fprintf(stderr, "%s %s %s %s\n", timeText().c_str(), levelNames[static_cast<size_t>(level)].c_str(),
               area.c_str(), message.c_str());
}
