//===- Advice.cpp - what would make a measured step faster -----------------===//

#include "Advice.h"

#include <algorithm>
#include <cstdio>

namespace lowtide::bench {

using rt::InstructionCosts;

namespace {

/// What is worth a sentence: shares of a step's time.
constexpr double muchLost = 0.03, muchStarting = 0.1, muchWaiting = 0.1, muchMoved = 0.3;
constexpr size_t mostKernels = 3;
/// A kernel that is done sooner spends most of its time starting.
constexpr double shortMilliseconds = 0.01;

template <typename... Values> std::string format(const char *text, Values... values) {
  char line[400];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

double flopsMilliseconds(const InstructionCosts &costs, const Ceilings &ceilings) {
  return costs.generated ? 0 : costs.flops / 1e6 / std::max(ceilings.gemmGFlops, 1e-9);
}

bool isShort(const InstructionCosts &costs) { return costs.milliseconds < shortMilliseconds * costs.runs; }

std::string adviseOn(const InstructionCosts &costs, const Ceilings &ceilings, double lost) {
  const double floor = floorMilliseconds(costs, ceilings);
  const bool computes = flopsMilliseconds(costs, ceilings) >= floor;
  const char *remedy = isShort(costs) ? "a larger batch gives each launch more to do"
                       : computes     ? "larger products come nearer: a larger batch, or fewer micro-batches"
                       : costs.generated
                           ? "it waits for something other than memory: a larger batch gives it more rows at once"
                           : "it is small for a call: a larger batch, or fewer micro-batches";
  return format("%s (%llu in a step): %.0f %% of what the device %s at best, %.3f ms a step lost; %s",
                costs.name.c_str(), static_cast<unsigned long long>(costs.count), 100 * floor / costs.milliseconds,
                computes ? "multiplies" : "copies", lost, remedy);
}

} // namespace

double floorMilliseconds(const InstructionCosts &costs, const Ceilings &ceilings) {
  return std::max(costs.bytes / 1e6 / std::max(ceilings.copyGBPerSecond, 1e-9), flopsMilliseconds(costs, ceilings));
}

std::vector<std::string> advise(const MeasuredStep &step) {
  std::vector<std::string> lines;
  const InstructionCosts all = rt::sumOf(step.kernels);
  std::vector<std::pair<double, const InstructionCosts *>> lost;
  InstructionCosts brief, moving;
  for (const InstructionCosts &costs : step.kernels) {
    if (isShort(costs))
      brief.add(costs);
    // Near the speed of a copy: only fewer bytes help.
    else if (const double floor = floorMilliseconds(costs, step.ceilings);
             floor > costs.milliseconds / 2 && floor > flopsMilliseconds(costs, step.ceilings))
      moving.add(costs);
    if (double over = costs.milliseconds - floorMilliseconds(costs, step.ceilings); over > muchLost * all.milliseconds)
      lost.push_back({over, &costs});
  }
  std::sort(lost.begin(), lost.end(), [](const auto &a, const auto &b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second; // of one vector
  });
  for (size_t i = 0; i < std::min(lost.size(), mostKernels); ++i)
    lines.push_back(adviseOn(*lost[i].second, step.ceilings, lost[i].first));
  if (brief.milliseconds > muchStarting * all.milliseconds)
    lines.push_back(
        format("%llu of %llu instructions take less than 10 µs each, together %.0f %% of the time: starting "
               "them is most of it; a larger batch gives each more to do",
               static_cast<unsigned long long>(brief.count), static_cast<unsigned long long>(all.count),
               100 * brief.milliseconds / all.milliseconds));
  if (const plan::DType type = step.ceilings.gemmType;
      (type == plan::F32 || type == plan::F64) && moving.milliseconds > muchMoved * all.milliseconds)
    lines.push_back(
        format("%.0f %% of the time goes to kernels near the speed of a copy: --precision=mixed-bf16 halves "
               "most of what they move",
               100 * moving.milliseconds / all.milliseconds));
  if (double waits = step.milliseconds - all.milliseconds; waits > muchWaiting * step.milliseconds)
    lines.push_back(format("%.3f ms of a step (%.0f %%) pass between instructions: a larger batch, or data that comes "
                           "faster",
                           waits, 100 * waits / step.milliseconds));
  const double perSample = step.batch > 0 ? static_cast<double>(step.transientBytes) / double(step.batch) : 0;
  if (double samples = step.freeBytes && perSample > 0 ? static_cast<double>(*step.freeBytes) / perSample : 0;
      samples >= 1)
    lines.push_back(
        format("%.2f GiB of the device are free: room for about %.0f more samples in a step, or for a larger "
               "--device-budget if it recomputes",
               static_cast<double>(*step.freeBytes) / 0x1p30, samples));
  if (lines.empty())
    lines.push_back("no kernel is far from what the device can do: fewer bytes and operations are what helps");
  return lines;
}

} // namespace lowtide::bench
