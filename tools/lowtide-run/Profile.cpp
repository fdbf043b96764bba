//===- Profile.cpp - where the time of a step goes -------------------------===//

#include "Profile.h"

#include "runtime/Json.h"
#include "runtime/checkpoint/OutputFile.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace lowtide::run {

using namespace rt;
using Json = nlohmann::ordered_json;

namespace {

/// Rows of the table; what comes behind them is one line.
constexpr size_t shownRows = 40;

/// What instructions cost together, per step.
struct Cost {
  double milliseconds = 0, bytes = 0, flops = 0;
  size_t count = 0;

  void add(const InstructionTime &time, double steps) {
    double each = static_cast<double>(time.runs) / steps;
    milliseconds += static_cast<double>(time.nanoseconds) / 1e6 / steps;
    bytes += static_cast<double>(time.bytes) * each;
    flops += static_cast<double>(time.flops) * each;
    ++count;
  }
  void print(double totalMilliseconds, const std::string &what) const {
    double seconds = milliseconds / 1e3;
    std::printf("%9.3f %5.1f %9.2f %7.1f %8.1f  %s\n", milliseconds,
                totalMilliseconds > 0 ? 100 * milliseconds / totalMilliseconds : 0, bytes / 1e6,
                seconds > 0 ? bytes / 1e9 / seconds : 0, seconds > 0 ? flops / 1e9 / seconds : 0, what.c_str());
  }
};

void printTable(const std::vector<InstructionTime> &times, uint64_t runs) {
  double steps = std::max<double>(1, static_cast<double>(runs));
  Cost total;
  std::map<std::string, Cost> kinds; // "row" of "row: exp sum divide", "gemm" of "gemm 64×64×24"
  for (const InstructionTime &time : times) {
    total.add(time, steps);
    kinds[time.what.substr(0, time.what.find_first_of(": "))].add(time, steps);
  }
  const char *head = "       ms     %        MB    GB/s  GFLOP/s  ";
  std::printf("\n%sinstruction\n", head);
  Cost rest;
  for (size_t i = 0; i < times.size(); ++i) {
    Cost cost;
    cost.add(times[i], steps);
    if (i < shownRows)
      cost.print(total.milliseconds,
                 times[i].what + (times[i].location.empty() ? "" : "  [" + times[i].location + "]"));
    else
      rest.add(times[i], steps);
  }
  if (rest.count)
    rest.print(total.milliseconds, std::to_string(rest.count) + " more");
  std::printf("\n%skind\n", head);
  std::vector<std::pair<std::string, Cost>> sorted(kinds.begin(), kinds.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return a.second.milliseconds != b.second.milliseconds ? a.second.milliseconds > b.second.milliseconds
                                                          : a.first < b.first;
  });
  for (const auto &[kind, cost] : sorted)
    cost.print(total.milliseconds, kind + " × " + std::to_string(cost.count));
  total.print(total.milliseconds, "all × " + std::to_string(total.count));
}

} // namespace

Status writeProfile(const Device &device, const plan::Entry &entry, const std::string &path) {
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
    list.push_back({{"what", time.what},
                    {"location", time.location},
                    {"microseconds", time.runs ? nanoseconds / 1e3 / runs : 0},
                    {"runs", time.runs},
                    {"bytes", time.bytes},
                    {"gb_per_s", time.nanoseconds ? static_cast<double>(time.bytes) * runs / nanoseconds : 0},
                    {"gflops", time.nanoseconds ? static_cast<double>(time.flops) * runs / nanoseconds : 0}});
  }
  return writeFile(path, list.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

} // namespace lowtide::run
