//===- LaneRows.cpp - loads and lanes in the program of recomputation -----===//
//
// A column more: the time of the step beyond its operations (T). Rows, of which each holds for every schedule:
// 1. T is at least what runs again;
// 2. what is loaded after a program point begins when its instruction, and all before it, have ended, and passes the
//    lane of its memory: from then on the step takes at least as long;
// 3. so does what is stored of values that are made later;
// 4. what is loaded was stored: once, as much as in the interval in which most of it is.
// What lies in the other memory from step to step passes the lanes once at least, at any time.
//
//===----------------------------------------------------------------------===//
#include "RecomputationProgram.h"

#include <algorithm>

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
  auto laneOf = [](uint32_t memory, bool isStore) { return 2 * size_t(memory) + isStore; };
  std::vector<double> always(2 * graph.memories.size(), 0);
  auto getBack = [&](uint32_t value) {
    return graph.memories.front().back.getSeconds(graph.values[value].bytes) / one;
  };
  auto getAway = [&](uint32_t value) { return graph.getStoreSeconds(value) / one; };
  for (uint32_t op : order)
    if (const StepOperation &copy = graph.operations[op]; copy.kind != Kind::Computes) {
      always[laneOf(copy.memory, copy.kind == Kind::Stores)] += graph.getCopySeconds(copy) / one;
      most += graph.getCopySeconds(copy) / one;
    }
  // What passes a lane in an interval: loads there, stores of what is made in it.
  struct Copy {
    int32_t column;
    double seconds;
    size_t lane;
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
      copies[interval].push_back({load, getBack(value), laneOf(0, false)});
      most += getBack(value);
      if (storeOf[value] == zero) {
        storeOf[value] = program.addColumn(0, 0, 1);
        copies[intervalOf(begins[value])].push_back({storeOf[value], getAway(value), laneOf(0, true)});
        most += getAway(value);
      }
      program.addEntry(storeOf[value], 1);
      program.addEntry(load, -1);
      program.endRow(0, LinearProgram::infinity);
    }
    for (uint32_t op : reruns)
      if (const Term again_ = at(again, interval, op); again_ >= 0 && graph.at(op).kind == Kind::Loads) {
        const double seconds = graph.getCopySeconds(graph.at(op)) / one;
        copies[interval].push_back({again_, seconds, laneOf(graph.at(op).memory, false)});
        most += seconds;
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
  // 2 and 3: T + the operations' time ≥ what has run by then + what passes the lane from then on.
  double done = 0;
  size_t position = 0;
  for (unsigned interval = 0; interval <= points.size(); ++interval) {
    for (; interval && position <= points[interval - 1]; ++position)
      if (const StepOperation &operation = graph.operations[order[position]]; operation.kind == Kind::Computes)
        done += operation.seconds / one;
    for (size_t lane = 0; lane < always.size(); ++lane) {
      program.addEntry(beyond, 1);
      addRerunsBefore(firstColumns[interval]);
      for (unsigned later = interval; later <= points.size(); ++later)
        for (const Copy &copy : copies[later])
          if (copy.lane == lane)
            program.addEntry(copy.column, -copy.seconds);
      program.endRow(done + (interval ? 0 : always[lane]) - 1, LinearProgram::infinity);
    }
  }
}

} // namespace lowtide::solve
