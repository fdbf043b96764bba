//===- Timeline.cpp - what a schedule of a step costs -----------*- C++ -*-===//
#include "lowtide/Solve/Model/Timeline.h"
#include "Walk.h"

#include <algorithm>
#include <numeric>

namespace lowtide::solve {

Schedule originalSchedule(const StepGraph &graph) {
  Schedule schedule(graph.operations.size());
  std::iota(schedule.begin(), schedule.end(), 0);
  return schedule;
}

bool isRecomputable(const StepGraph &graph, uint32_t op) {
  const StepOperation &operation = graph.at(op);
  return !operation.runsOnce && operation.updates.empty() &&
         std::none_of(operation.writes.begin(), operation.writes.end(),
                      [&](uint32_t v) { return graph.values[v].kept || graph.values[v].placed; });
}

std::vector<uint32_t> listReruns(const StepGraph &graph, uint32_t op) {
  std::vector<uint32_t> all;
  for (uint32_t part : graph.operations[op].reruns)
    all.push_back(uint32_t(graph.operations.size()) + part);
  if (all.empty() && isRecomputable(graph, op))
    all.push_back(op);
  return all;
}

std::vector<uint32_t> listWholes(const StepGraph &graph) {
  std::vector<uint32_t> wholes(graph.operations.size() + graph.reruns.size());
  for (uint32_t op = 0; op < graph.operations.size(); ++op) {
    wholes[op] = op;
    for (uint32_t part : graph.operations[op].reruns)
      wholes[graph.operations.size() + part] = op;
  }
  return wholes;
}

std::optional<uint32_t> findMaker(const StepGraph &graph, uint32_t value) {
  if (graph.values[value].producer < 0)
    return std::nullopt;
  const uint32_t producer = uint32_t(graph.values[value].producer);
  for (uint32_t part : graph.operations[producer].reruns) {
    const std::vector<uint32_t> &writes = graph.reruns[part].writes;
    if (std::find(writes.begin(), writes.end(), value) != writes.end())
      return uint32_t(graph.operations.size()) + part;
  }
  if (graph.operations[producer].reruns.empty() && isRecomputable(graph, producer))
    return producer;
  return std::nullopt;
}

std::optional<Timeline> evaluate(const StepGraph &graph, std::span<const uint32_t> schedule) {
  return Walk(graph).evaluate(schedule);
}

std::vector<Buffer> listBuffers(const StepGraph &graph, std::span<const uint32_t> schedule) {
  std::vector<Buffer> buffers;
  if (Walk walk(graph); walk.bind(schedule))
    walk.sumUp(&buffers);
  return buffers;
}

std::vector<uint32_t> listOverwritten(const StepGraph &graph, uint32_t op) {
  const StepOperation &operation = graph.operations[op];
  std::vector<uint32_t> taken;
  for (size_t i = 0; i < operation.writes.size(); ++i) {
    if (graph.values[operation.writes[i]].placed)
      continue;
    if (std::optional<uint32_t> read = findOverwritten(graph, operation, i, [&](uint32_t operand) {
          return std::find(taken.begin(), taken.end(), operand) == taken.end();
        }))
      taken.push_back(*read);
  }
  return taken;
}

LowerBound findLowerBound(const StepGraph &graph) {
  if (!graph.loops.empty()) {
    std::vector<FittedSchedule> least(graph.loops.size());
    for (size_t i = 0; i < least.size(); ++i)
      least[i].timeline.peakBytes = findLowerBound(graph.loops[i].body).bytes;
    return findLowerBound(withBodies(graph, least));
  }
  LowerBound bound;
  uint64_t kept = 0;
  for (uint32_t v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].kept && !graph.values[v].placed)
      kept += graph.size(v);
  bound = {kept, uint32_t(graph.operations.size())};
  for (uint32_t op = 0; op < graph.operations.size(); ++op) {
    const StepOperation &operation = graph.operations[op];
    uint64_t bytes = graph.workspace(op);
    for (uint32_t value : operation.reads)
      if (!graph.values[value].placed)
        bytes += graph.size(value);
    for (uint32_t result : operation.writes)
      if (!graph.values[result].placed)
        bytes += graph.size(result);
    for (uint32_t read : listOverwritten(graph, op))
      bytes -= graph.size(read);
    if (bytes > bound.bytes)
      bound = {bytes, op};
  }
  return bound;
}

} // namespace lowtide::solve
