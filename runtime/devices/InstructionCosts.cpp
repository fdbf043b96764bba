//===- InstructionCosts.cpp - what instructions of a step cost together ----===//

#include "runtime/devices/InstructionCosts.h"

#include <algorithm>
#include <map>

namespace lowtide::rt {
namespace {

/// "row" of "row: exp sum divide", "gemm" of "gemm 64×64×24", "batch" of "3 × loop: cast".
std::string kindOf(const InstructionTime &time) {
  if (!time.what.empty() && time.what[0] >= '0' && time.what[0] <= '9')
    return "batch";
  return time.what.substr(0, time.what.find_first_of(": "));
}

/// "loop_3: broadcast add" of the kernel @loop_3, which is "loop: broadcast add".
std::string nameOf(const InstructionTime &time) {
  if (time.symbol.empty() || time.symbol == time.what)
    return time.what;
  const std::string prefix = kindOf(time) + ": ";
  return time.symbol + ": " + (time.what.rfind(prefix, 0) == 0 ? time.what.substr(prefix.size()) : time.what);
}

std::vector<InstructionCosts> sumBy(const std::vector<InstructionTime> &times, double steps,
                                    std::string (*key)(const InstructionTime &)) {
  std::map<std::string, InstructionCosts> rows;
  for (const InstructionTime &time : times) {
    InstructionCosts &row = rows[key(time)];
    if (!row.count)
      row.location = time.location, row.generated = time.generated;
    row.add(time, steps);
  }
  std::vector<InstructionCosts> sorted;
  for (auto &[name, row] : rows) {
    row.name = name;
    sorted.push_back(std::move(row));
  }
  std::sort(sorted.begin(), sorted.end(), [](const InstructionCosts &a, const InstructionCosts &b) {
    return a.milliseconds != b.milliseconds ? a.milliseconds > b.milliseconds : a.name < b.name;
  });
  return sorted;
}

} // namespace

void InstructionCosts::add(const InstructionTime &time, double steps) {
  const double each = static_cast<double>(time.runs) / steps;
  ++count;
  runs += each;
  milliseconds += static_cast<double>(time.nanoseconds) / 1e6 / steps;
  bytes += static_cast<double>(time.bytes) * each;
  flops += static_cast<double>(time.flops) * each;
}

void InstructionCosts::add(const InstructionCosts &costs) {
  count += costs.count;
  runs += costs.runs;
  milliseconds += costs.milliseconds;
  bytes += costs.bytes;
  flops += costs.flops;
}

std::vector<InstructionCosts> sumByKernel(const std::vector<InstructionTime> &times, double steps) {
  return sumBy(times, steps, nameOf);
}

std::vector<InstructionCosts> sumByKind(const std::vector<InstructionTime> &times, double steps) {
  return sumBy(times, steps, kindOf);
}

InstructionCosts sumOf(const std::vector<InstructionCosts> &rows) {
  InstructionCosts all;
  all.name = "all";
  for (const InstructionCosts &row : rows)
    all.add(row);
  return all;
}

} // namespace lowtide::rt
