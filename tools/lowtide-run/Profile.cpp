//===- Profile.cpp - where the time of a step goes -------------------------===//

#include "Profile.h"

#include "runtime/Json.h"
#include "runtime/checkpoint/OutputFile.h"
#include "runtime/devices/InstructionCosts.h"

#include <algorithm>
#include <cstdio>

namespace lowtide::run {

using namespace rt;
using Json = nlohmann::ordered_json;

namespace {

/// Rows of the table; what comes after them is one line.
constexpr size_t shownRows = 40;

void print(const InstructionCosts &costs, double totalMilliseconds, const std::string &what) {
  const double seconds = costs.milliseconds / 1e3;
  std::printf("%9.3f %5.1f %9.2f %7.1f %8.1f  %s\n", costs.milliseconds,
              totalMilliseconds > 0 ? 100 * costs.milliseconds / totalMilliseconds : 0, costs.bytes / 1e6,
              seconds > 0 ? costs.bytes / 1e9 / seconds : 0, seconds > 0 ? costs.flops / 1e9 / seconds : 0,
              what.c_str());
}

void printTable(const std::vector<InstructionTime> &times, uint64_t runs) {
  const double steps = std::max<double>(1, static_cast<double>(runs));
  const std::vector<InstructionCosts> kinds = sumByKind(times, steps);
  const InstructionCosts total = sumOf(kinds);
  const char *head = "       ms     %        MB    GB/s  GFLOP/s  ";
  std::printf("\n%sinstruction\n", head);
  InstructionCosts rest;
  for (size_t i = 0; i < times.size(); ++i) {
    InstructionCosts one;
    one.add(times[i], steps);
    if (i < shownRows)
      print(one, total.milliseconds,
            times[i].what + (times[i].location.empty() ? "" : "  [" + times[i].location + "]"));
    else
      rest.add(one);
  }
  if (rest.count)
    print(rest, total.milliseconds, std::to_string(rest.count) + " more");
  std::printf("\n%skind\n", head);
  for (const InstructionCosts &kind : kinds)
    print(kind, total.milliseconds, kind.name + " × " + std::to_string(kind.count));
  print(total, total.milliseconds, "all × " + std::to_string(total.count));
}

} // namespace

Measuring getMeasuring(const std::string &path) {
  return path.empty() ? Measuring::None : path == "-" ? Measuring::Alone : Measuring::Lanes;
}

Status writeProfile(const Session &session, const plan::Entry &entry, const std::string &path) {
  const Device &device = session.device();
  std::vector<InstructionTime> times = device.times(entry);
  std::sort(times.begin(), times.end(), [](const InstructionTime &a, const InstructionTime &b) {
    return a.nanoseconds != b.nanoseconds ? a.nanoseconds > b.nanoseconds : a.location < b.location;
  });
  if (path == "-") {
    printTable(times, device.measuredRuns(entry));
    return Status::ok();
  }
  Json list = Json::array();
  for (const InstructionTime &time : times) {
    double nanoseconds = static_cast<double>(time.nanoseconds), runs = static_cast<double>(time.runs);
    Json spans = Json::array();
    for (const InstructionSpan &span : time.spans)
      spans.push_back({static_cast<double>(span.begin) / 1e3, static_cast<double>(span.end) / 1e3});
    list.push_back({{"instruction", time.number},
                    {"lane", time.lane},
                    {"what", time.what},
                    {"location", time.location},
                    {"microseconds", time.runs ? nanoseconds / 1e3 / runs : 0},
                    {"runs", time.runs},
                    {"bytes", time.bytes},
                    {"gb_per_s", time.nanoseconds ? static_cast<double>(time.bytes) * runs / nanoseconds : 0},
                    {"gflops", time.nanoseconds ? static_cast<double>(time.flops) * runs / nanoseconds : 0},
                    {"spans", std::move(spans)}});
  }
  Json profile = {{"lowtide_profile", 1},
                  {"plan_sha256", session.artifact().planDigest()},
                  {"entry", entry.name()},
                  {"steps", device.measuredRuns(entry)},
                  {"instructions", std::move(list)}};
  return writeFile(path, profile.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

} // namespace lowtide::run
