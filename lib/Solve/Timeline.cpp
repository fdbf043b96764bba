//===- Timeline.cpp - what a schedule of a step costs ---------------------===//
//
// Two walks: the first binds every read to the result that it sees and finds
// last uses, the second hands bytes from dying operands to results and sums up.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Timeline.h"

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

namespace {

constexpr uint32_t none = UINT32_MAX;

/// One result of one execution.
struct Instance {
  uint32_t value;
  uint32_t begin;
  uint32_t last; // instruction of the last read; begin if nothing reads it
  bool taken = false;
};

class Walk {
public:
  Walk(const StepGraph &graph, std::span<const uint32_t> schedule) : graph(graph), schedule(schedule) {}

  /// Binds reads to instances; false if the schedule is not valid.
  bool bind() {
    const size_t numValues = graph.values.size();
    current.assign(numValues, none);
    std::vector<bool> updated(numValues, false), ran(graph.operations.size() + graph.reruns.size(), false);
    const size_t primary = graph.operations.size();
    size_t distinct = 0;
    instances.reserve(schedule.size() + schedule.size() / 2);
    firstResult.reserve(schedule.size());
    for (uint32_t now = 0; now < schedule.size(); ++now) {
      const uint32_t op = schedule[now];
      const StepOperation &operation = graph.at(op);
      // A rerun repeats what has made its results before.
      if (op >= primary)
        for (uint32_t value : operation.writes)
          if (current[value] == none)
            return false;
      for (uint32_t value : operation.reads) {
        if (graph.values[value].producer < 0) {
          if (updated[value])
            return false;
          continue;
        }
        if (current[value] == none)
          return false;
        instances[current[value]].last = now;
      }
      if (ran[op] && !isRecomputable(graph, op))
        return false;
      distinct += op < primary && !ran[op];
      ran[op] = true;
      for (uint32_t argument : operation.updates)
        updated[argument] = true;
      firstResult.push_back(instances.size());
      for (uint32_t value : operation.writes) {
        current[value] = instances.size();
        instances.push_back({value, now, now});
      }
    }
    return distinct == graph.operations.size();
  }

  /// Sums up; lists the buffers if `buffers` is not null.
  Timeline sumUp(std::vector<Buffer> *buffers = nullptr) {
    std::vector<Buffer> workspaces;
    std::vector<uint32_t> bufferOf(buffers ? instances.size() : 0, none);
    Timeline timeline;
    timeline.live.assign(schedule.size() + 1, 0);
    std::vector<int64_t> change(schedule.size() + 2, 0);
    std::fill(current.begin(), current.end(), none);
    std::vector<bool> ran(graph.operations.size() + graph.reruns.size(), false);
    for (uint32_t now = 0; now < schedule.size(); ++now) {
      const uint32_t op = schedule[now];
      const StepOperation &operation = graph.at(op);
      timeline.seconds += operation.seconds;
      timeline.flops += operation.flops;
      timeline.recomputed += op >= graph.operations.size() || ran[op];
      timeline.loaded += (op >= graph.operations.size() || ran[op]) && operation.kind == StepOperation::Kind::Loads;
      ran[op] = true;
      for (size_t i = 0; i < operation.writes.size(); ++i) {
        const uint32_t result = firstResult[now] + i;
        const StepValue &value = graph.values[operation.writes[i]];
        if (value.placed)
          continue;
        auto isFree = [&](uint32_t read) {
          const uint32_t source = current[read];
          return source != none && instances[source].last == now && !instances[source].taken;
        };
        if (std::optional<uint32_t> read = findOverwritten(graph, operation, i, isFree)) {
          const uint32_t source = current[*read];
          instances[source].taken = true;
          if (buffers)
            bufferOf[result] = bufferOf[source];
          change[now] -= int64_t(graph.size(*read));
          change[now + 1] += int64_t(graph.size(*read));
        }
        const uint64_t bytes = graph.size(operation.writes[i]);
        const uint32_t end = value.kept ? schedule.size() + 1 : instances[result].last + 1;
        change[now] += int64_t(bytes);
        change[end] -= int64_t(bytes);
        if (buffers && bufferOf[result] == none) {
          bufferOf[result] = buffers->size();
          buffers->push_back({value.bytes, now, end});
        } else if (buffers) {
          (*buffers)[bufferOf[result]].end = end;
        }
      }
      if (buffers && operation.workspaceBytes)
        workspaces.push_back({operation.workspaceBytes, now, now + 1});
      const int64_t workspace = int64_t(graph.workspace(op));
      change[now] += workspace;
      change[now + 1] -= workspace;
      for (size_t i = 0; i < operation.writes.size(); ++i)
        current[operation.writes[i]] = firstResult[now] + i;
    }
    if (buffers)
      buffers->insert(buffers->end(), workspaces.begin(), workspaces.end());
    int64_t live = 0;
    for (uint32_t now = 0; now <= schedule.size(); ++now) {
      live += change[now];
      timeline.live[now] = uint64_t(live);
      if (timeline.live[now] > timeline.peakBytes) {
        timeline.peakBytes = timeline.live[now];
        timeline.peakAt = now;
      }
    }
    return timeline;
  }

private:
  const StepGraph &graph;
  std::span<const uint32_t> schedule;
  std::vector<Instance> instances;
  /// Per value, the last instance so far.
  std::vector<uint32_t> current;
  /// Per instruction, its first result's instance.
  std::vector<uint32_t> firstResult;
};

} // namespace

std::optional<Timeline> evaluate(const StepGraph &graph, std::span<const uint32_t> schedule) {
  Walk walk(graph, schedule);
  if (!walk.bind())
    return std::nullopt;
  return walk.sumUp();
}

std::vector<Buffer> listBuffers(const StepGraph &graph, std::span<const uint32_t> schedule) {
  std::vector<Buffer> buffers;
  if (Walk walk(graph, schedule); walk.bind())
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
