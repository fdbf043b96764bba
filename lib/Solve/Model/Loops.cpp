//===- Loops.cpp - loops as operations with an inner peak -----------------===//
//
// A step with loops becomes one without: a plan of each body says what the loop
// takes. Buffers are those of both, on one line of time.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Model/Timeline.h"

namespace lowtide::solve {

StepGraph withBodies(const StepGraph &graph, std::span<const FittedSchedule> bodies) {
  StepGraph plain;
  plain.values = graph.values;
  plain.operations = graph.operations;
  plain.reruns = graph.reruns;
  plain.alignment = graph.alignment;
  plain.memories = graph.memories;
  for (size_t i = 0; i < graph.loops.size(); ++i) {
    const StepLoop &loop = graph.loops[i];
    const Timeline &round = bodies[i].timeline;
    StepOperation &operation = plain.operations[loop.operation];
    operation.workspaceBytes = round.peakBytes;
    operation.seconds = double(loop.rounds) * round.seconds;
    operation.flops = loop.rounds * round.flops;
  }
  return plain;
}

namespace {

/// Appends a timeline's buffers from `start` on; returns how many units of time it takes. `bodies` may be empty.
uint32_t append(const StepGraph &graph, std::span<const uint32_t> schedule, std::span<const FittedSchedule> bodies,
                uint32_t start, std::vector<Buffer> &buffers) {
  constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> loopOf(graph.operations.size() + graph.reruns.size(), none);
  for (size_t i = 0; i < graph.loops.size(); ++i)
    loopOf[graph.loops[i].operation] = uint32_t(i);
  // A body has a buffer of its own for everything in a loop's workspace.
  std::vector<FittedSchedule> nothing(graph.loops.size());
  std::vector<uint32_t> begin(schedule.size() + 2);
  uint32_t now = start;
  for (size_t i = 0; i < schedule.size(); ++i) {
    begin[i] = now;
    const uint32_t number = loopOf[schedule[i]];
    if (number == none) {
      ++now;
      continue;
    }
    const StepGraph &body = graph.loops[number].body;
    // One unit more for what the round hands on at its end.
    now += 1 + (bodies.empty() ? append(body, originalSchedule(body), {}, now, buffers)
                               : append(body, bodies[number].schedule, bodies[number].bodies, now, buffers));
  }
  begin[schedule.size()] = now;
  begin[schedule.size() + 1] = now + 1;
  for (const Buffer &buffer : listBuffers(withBodies(graph, nothing), schedule))
    buffers.push_back({buffer.bytes, begin[buffer.begin], begin[buffer.end]});
  return now - start;
}

} // namespace

std::vector<Buffer> listBuffers(const StepGraph &graph, const FittedSchedule &plan) {
  std::vector<Buffer> buffers;
  append(graph, plan.schedule, plan.bodies, 0, buffers);
  return buffers;
}

} // namespace lowtide::solve
