//===- LaneRows.cpp - loads and lanes in the program of recomputation -----===//
//
// A column more: the time of the step beyond its operations (T). Rows, of which each holds for every schedule:
// 1. T is at least what runs again;
// 2. what is loaded after a program point begins when its instruction, and all before it, have ended, and passes one
//    lane: from then on the step takes at least as long;
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
  double most = 1, stored = 0, loaded = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    costs[i] = program.columns[i].cost;
    program.columns[i].cost = 0;
    most += costs[i];
  }
  auto getBack = [&](uint32_t value) { return graph.back.getSeconds(graph.values[value].bytes) / one; };
  auto getAway = [&](uint32_t value) { return graph.away.getSeconds(graph.values[value].bytes) / one; };
  for (uint32_t op : order) {
    const StepOperation &operation = graph.operations[op];
    stored += operation.kind == Kind::Stores ? getAway(operation.reads.front()) : 0;
    loaded += operation.kind == Kind::Loads ? getBack(operation.writes.front()) : 0;
  }
  // What passes a lane in an interval, and of what is made in it.
  struct Copy {
    int32_t column;
    double seconds;
  };
  std::vector<std::vector<Copy>> loads(points.size() + 1), stores(points.size() + 1);
  std::vector<int32_t> storeOf(graph.values.size(), zero);
  auto intervalOf = [&](int64_t position) {
    return size_t(std::lower_bound(points.begin(), points.end(), uint32_t(position)) - points.begin());
  };
  for (unsigned interval = 0; interval <= points.size(); ++interval) {
    for (uint32_t value : managed) {
      const Term load = at(back, interval, value);
      if (load == zero)
        continue;
      loads[interval].push_back({load, getBack(value)});
      most += getBack(value);
      if (storeOf[value] == zero) {
        storeOf[value] = program.addColumn(0, 0, 1);
        stores[intervalOf(begins[value])].push_back({storeOf[value], getAway(value)});
        most += getAway(value);
      }
      program.addEntry(storeOf[value], 1);
      program.addEntry(load, -1);
      program.endRow(0, LinearProgram::infinity);
    }
    for (uint32_t op : reruns)
      if (const Term again_ = at(again, interval, op); again_ >= 0 && graph.at(op).kind == Kind::Loads) {
        loads[interval].push_back({again_, getBack(graph.at(op).writes.front())});
        most += getBack(graph.at(op).writes.front());
      }
  }
  const Term beyond = program.addColumn(1, 0, most + stored + loaded);
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
    for (const auto *lane : {&loads, &stores}) {
      program.addEntry(beyond, 1);
      addRerunsBefore(firstColumns[interval]);
      for (unsigned later = interval; later <= points.size(); ++later)
        for (const Copy &copy : (*lane)[later])
          program.addEntry(copy.column, -copy.seconds);
      const double always = interval ? 0 : lane == &loads ? loaded : stored;
      program.endRow(done + always - 1, LinearProgram::infinity);
    }
  }
}

} // namespace lowtide::solve
