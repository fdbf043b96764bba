//===- Walk.cpp - a schedule, read by read ----------------------*- C++ -*-===//
#include "Walk.h"

#include <algorithm>

namespace lowtide::solve {

Walk::Walk(const StepGraph &graph) : graph(graph) {
  const uint32_t count = uint32_t(graph.operations.size() + graph.reruns.size());
  steps.reserve(count + 1);
  updatedAt.assign(graph.values.size(), none);
  for (uint32_t op = 0; op < count; ++op)
    for (uint32_t argument : graph.at(op).updates)
      updatedAt[argument] = 0;
  for (uint32_t op = 0; op < count; ++op)
    add(op);
  written.push_back({none, uint32_t(targets.size()), 0, false, false});
  steps.push_back({uint32_t(operands.size()), uint32_t(arguments.size()), uint32_t(updates.size()),
                   uint32_t(written.size() - 1), 0, 0, 0, false, false});
}

void Walk::add(uint32_t op) {
  const StepOperation &operation = graph.at(op);
  const uint32_t firstOperand = uint32_t(operands.size());
  steps.push_back({firstOperand, uint32_t(arguments.size()), uint32_t(updates.size()), uint32_t(written.size()),
                   operation.seconds, operation.flops, graph.workspace(op), isRecomputable(graph, op),
                   operation.kind == StepOperation::Kind::Loads});
  for (uint32_t value : operation.reads) {
    if (graph.values[value].producer >= 0)
      operands.push_back(value);
    else if (updatedAt[value] != none)
      arguments.push_back(value);
  }
  updates.insert(updates.end(), operation.updates.begin(), operation.updates.end());
  for (size_t i = 0; i < operation.writes.size(); ++i) {
    const uint32_t result = operation.writes[i];
    const StepValue &value = graph.values[result];
    written.push_back({result, uint32_t(targets.size()), int64_t(graph.size(result)), value.placed, value.kept});
    if (!value.placed)
      for (uint32_t operand : operation.overwrites[i])
        if (const auto at = std::find(operands.begin() + firstOperand, operands.end(), operand);
            at != operands.end() && mayTakeOver(graph, result, operand))
          targets.push_back(uint32_t(at - operands.begin()) - firstOperand);
  }
}

bool Walk::bind(std::span<const uint32_t> newSchedule) {
  schedule = newSchedule;
  const size_t primary = graph.operations.size();
  newest.assign(graph.values.size(), none);
  updatedAt.assign(graph.values.size(), none);
  ran.assign(primary + graph.reruns.size(), false);
  instances.clear();
  firstResult.clear();
  firstBound.clear();
  bound.clear();
  size_t distinct = 0;
  for (uint32_t now = 0; now < schedule.size(); ++now) {
    const uint32_t op = schedule[now];
    const Step &step = steps[op], &next = steps[op + 1];
    // A rerun repeats what has made its results before.
    if (op >= primary)
      for (uint32_t i = step.firstWritten; i < next.firstWritten; ++i)
        if (newest[written[i].value] == none)
          return false;
    for (uint32_t i = step.firstArgument; i < next.firstArgument; ++i)
      if (updatedAt[arguments[i]] != none)
        return false;
    firstBound.push_back(uint32_t(bound.size()));
    for (uint32_t i = step.firstOperand; i < next.firstOperand; ++i) {
      const uint32_t instance = newest[operands[i]];
      if (instance == none)
        return false;
      instances[instance].last = now;
      bound.push_back({instance, now});
    }
    if (ran[op] && !step.mayRunAgain)
      return false;
    distinct += op < primary && !ran[op];
    ran[op] = true;
    for (uint32_t i = step.firstUpdate; i < next.firstUpdate; ++i)
      updatedAt[updates[i]] = now;
    firstResult.push_back(uint32_t(instances.size()));
    for (uint32_t i = step.firstWritten; i < next.firstWritten; ++i) {
      const uint32_t value = written[i].value, previous = newest[value];
      newest[value] = uint32_t(instances.size());
      instances.push_back({value, now, now, previous, false});
    }
  }
  return distinct == primary;
}

Timeline Walk::sumUp(std::vector<Buffer> *buffers) {
  std::vector<Buffer> workspaces;
  std::vector<uint32_t> bufferOf(buffers ? instances.size() : 0, none);
  Timeline timeline;
  timeline.live.resize(schedule.size() + 1);
  change.assign(schedule.size() + 2, 0);
  ran.assign(ran.size(), false);
  for (uint32_t now = 0; now < schedule.size(); ++now) {
    const uint32_t op = schedule[now];
    const Step &step = steps[op], &next = steps[op + 1];
    timeline.seconds += step.seconds;
    timeline.flops += step.flops;
    const bool isRerun = op >= graph.operations.size() || ran[op];
    timeline.recomputed += isRerun;
    timeline.loaded += isRerun && step.isLoad;
    ran[op] = true;
    for (uint32_t i = step.firstWritten; i < next.firstWritten; ++i) {
      const Written &result = written[i];
      if (result.isPlaced)
        continue;
      const uint32_t made = firstResult[now] + (i - step.firstWritten);
      // The first operand that dies here and that no other result has hands its bytes on (findOverwritten).
      for (uint32_t target = result.firstTarget; target < written[i + 1].firstTarget; ++target) {
        const uint32_t source = bound[firstBound[now] + targets[target]].instance;
        if (instances[source].last != now || instances[source].taken)
          continue;
        instances[source].taken = true;
        if (buffers)
          bufferOf[made] = bufferOf[source];
        // It has as many bytes as the result.
        change[now] -= result.bytes;
        change[now + 1] += result.bytes;
        break;
      }
      const uint32_t end = result.isKept ? uint32_t(schedule.size()) + 1 : instances[made].last + 1;
      change[now] += result.bytes;
      change[end] -= result.bytes;
      if (buffers && bufferOf[made] == none) {
        bufferOf[made] = uint32_t(buffers->size());
        buffers->push_back({graph.values[result.value].bytes, now, end});
      } else if (buffers) {
        (*buffers)[bufferOf[made]].end = end;
      }
    }
    if (buffers && graph.at(op).workspaceBytes)
      workspaces.push_back({graph.at(op).workspaceBytes, now, now + 1});
    change[now] += int64_t(step.workspaceBytes);
    change[now + 1] -= int64_t(step.workspaceBytes);
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

void Walk::listReads() {
  firstRead.assign(instances.size() + 2, 0);
  for (const Read &read : bound)
    ++firstRead[read.instance + 2];
  for (size_t i = 2; i < firstRead.size(); ++i)
    firstRead[i] += firstRead[i - 1];
  reads.resize(bound.size());
  // Afterwards each stands where the next one begins.
  for (const Read &read : bound)
    reads[firstRead[read.instance + 1]++] = read.position;
}

} // namespace lowtide::solve
