//===- LaneRows.cpp - loads and lanes in the program of recomputation -----===//
//
// A column more: the time of the step beyond its operations (T). Rows, of which each holds for every schedule:
// 1. T is at least what runs again;
// 2. what is loaded after a program point begins when its instruction, and all before it, have ended, and passes the
//    lane of its memory: from then on the step takes at least as long. Values that may wait in one of several memories
//    pass one of the lanes: the step takes at least as long as any weighted mean of what the lanes take;
// 3. so does what is stored of values that are made later;
// 4. what is loaded was stored: once, as much as in the interval in which most of it is.
// What lies in the other memory from step to step passes the lanes once at least, at any time.
//
//===----------------------------------------------------------------------===//
#include "RecomputationProgram.h"

#include <algorithm>
#include <cmath>

namespace lowtide::solve {

using Kind = StepOperation::Kind;

void RecomputationProgram::addLoads(unsigned interval) {
  const int64_t before = previous(interval);
  for (uint32_t value : managed)
    if (loader[value] != UINT32_MAX && begins[value] < before && until[value] > before)
      at(back, interval, value) = program.addColumn(0, 0, 1);
}

void RecomputationProgram::addLaneRows() {
  const double one = secondsOfOne;
  // What costs so far is the time of what runs again.
  std::vector<double> costs(program.columns.size());
  double most = 1;
  for (size_t i = 0; i < costs.size(); ++i) {
    costs[i] = program.columns[i].cost;
    program.columns[i].cost = 0;
    most += costs[i];
  }
  // Two lanes for each memory.
  const size_t lanes = 2 * graph.memories.size();
  auto laneOf = [](uint32_t memory, bool isStore) { return 2 * size_t(memory) + isStore; };
  std::vector<double> always(lanes, 0);
  std::vector<char> isWaitedIn(graph.memories.size(), false);
  for (const StepOperation &operation : graph.operations)
    for (uint32_t load : operation.loads)
      isWaitedIn[graph.reruns[load].memory] = true;
  // By lane what a value takes of it that passes one of them; infinite: none that it can pass.
  auto listTimes = [&](uint32_t value, bool isStore) {
    std::vector<double> seconds(lanes, INFINITY);
    for (uint32_t memory = 0; memory < graph.memories.size(); ++memory)
      if (isWaitedIn[memory])
        seconds[laneOf(memory, isStore)] = (isStore ? graph.memories[memory].away : graph.memories[memory].back)
                                               .getSeconds(graph.values[value].bytes) /
                                           one;
    return seconds;
  };
  auto listTimesOf = [&](const StepOperation &copy) {
    std::vector<double> seconds(lanes, INFINITY);
    seconds[laneOf(copy.memory, copy.kind == Kind::Stores)] = graph.getCopySeconds(copy) / one;
    return seconds;
  };
  auto getMost = [](const std::vector<double> &seconds) {
    double most = 0;
    for (double each : seconds)
      most = std::max(most, std::isinf(each) ? 0 : each);
    return most;
  };
  for (uint32_t op : order)
    if (const StepOperation &copy = graph.operations[op]; copy.kind != Kind::Computes) {
      always[laneOf(copy.memory, copy.kind == Kind::Stores)] += graph.getCopySeconds(copy) / one;
      most += graph.getCopySeconds(copy) / one;
    }
  // What passes a lane in an interval: loads there, stores of what is made in it.
  struct Copy {
    int32_t column;
    std::vector<double> seconds;
  };
  std::vector<std::vector<Copy>> copies(points.size() + 1);
  std::vector<int32_t> storeOf(graph.values.size(), zero);
  auto intervalOf = [&](int64_t position) {
    return size_t(std::lower_bound(points.begin(), points.end(), uint32_t(position)) - points.begin());
  };
  for (unsigned interval = 0; interval <= points.size(); ++interval) {
    for (uint32_t value : managed) {
      const Term load = at(back, interval, value);
      if (load == zero)
        continue;
      copies[interval].push_back({load, listTimes(value, false)});
      most += getMost(copies[interval].back().seconds);
      if (storeOf[value] == zero) {
        storeOf[value] = program.addColumn(0, 0, 1);
        std::vector<Copy> &made = copies[intervalOf(begins[value])];
        made.push_back({storeOf[value], listTimes(value, true)});
        most += getMost(made.back().seconds);
      }
      program.addEntry(storeOf[value], 1);
      program.addEntry(load, -1);
      program.endRow(0, LinearProgram::infinity);
    }
    for (uint32_t op : reruns)
      if (const Term again_ = at(again, interval, op); again_ >= 0 && graph.at(op).kind == Kind::Loads) {
        copies[interval].push_back({again_, listTimesOf(graph.at(op))});
        most += getMost(copies[interval].back().seconds);
      }
  }
  const Term beyond = program.addColumn(1, 0, most);
  program.columns.back().isContinuous = true;
  auto addRerunsBefore = [&](int32_t end) {
    for (int32_t column = 0; column < end; ++column)
      if (costs[size_t(column)] != 0)
        program.addEntry(column, -costs[size_t(column)]);
  };
  // 1.
  program.addEntry(beyond, 1);
  addRerunsBefore(int32_t(costs.size()));
  program.endRow(0, LinearProgram::infinity);
  // Each lane by itself; those of one direction that values may pass, the more the faster they are.
  std::vector<std::vector<double>> weights;
  for (size_t lane = 0; lane < lanes; ++lane)
    weights.emplace_back(lanes, 0).at(lane) = 1;
  if (std::count(isWaitedIn.begin(), isWaitedIn.end(), true) > 1)
    for (bool isStore : {false, true}) {
      std::vector<double> &mean = weights.emplace_back(lanes, 0);
      double sum = 0;
      for (uint32_t memory = 0; memory < graph.memories.size(); ++memory)
        if (isWaitedIn[memory])
          sum += mean[laneOf(memory, isStore)] =
              (isStore ? graph.memories[memory].away : graph.memories[memory].back).bytesPerSecond;
      for (double &weight : mean)
        weight /= sum;
    }
  // 2 and 3: T + the operations' time ≥ what has run by then + what passes the lane from then on.
  double done = 0;
  size_t position = 0;
  for (unsigned interval = 0; interval <= points.size(); ++interval) {
    for (; interval && position <= points[interval - 1]; ++position)
      if (const StepOperation &operation = graph.operations[order[position]]; operation.kind == Kind::Computes)
        done += operation.seconds / one;
    for (const std::vector<double> &weight : weights) {
      program.addEntry(beyond, 1);
      addRerunsBefore(firstColumns[interval]);
      for (unsigned later = interval; later <= points.size(); ++later)
        for (const Copy &copy : copies[later]) {
          double least = INFINITY;
          for (size_t lane = 0; lane < lanes; ++lane)
            if (!std::isinf(copy.seconds[lane]))
              least = std::min(least, weight[lane] * copy.seconds[lane]);
          if (least > 0)
            program.addEntry(copy.column, -least);
        }
      double passes = 0;
      for (size_t lane = 0; lane < lanes; ++lane)
        passes += weight[lane] * always[lane];
      program.endRow(done + (interval ? 0 : passes) - 1, LinearProgram::infinity);
    }
  }
}

} // namespace lowtide::solve
