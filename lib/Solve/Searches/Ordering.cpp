//===- Ordering.cpp - in which order a step needs few bytes ---------------===//
//
// 1. List scheduling: among the ready operations the one after which the fewest
//    bytes are alive (XLA's list scheduler), with the loss as a fence or without.
// 2. Depth first from the results, larger operands first (Sethi and Ullman 1970).
// 3. Eager and lazy: each operation as early as it frees bytes, as late as it
//    only adds some; above all updates as soon as their gradient is final.
// The exact count picks one.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Searches/Ordering.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace lowtide::solve {

std::vector<std::vector<uint32_t>> listPredecessors(const StepGraph &graph) {
  const size_t numOps = graph.operations.size();
  std::vector<std::vector<uint32_t>> predecessors(numOps), readers(graph.values.size());
  for (uint32_t op = 0; op < numOps; ++op)
    for (uint32_t value : graph.operations[op].reads)
      if (graph.values[value].producer >= 0)
        predecessors[op].push_back(uint32_t(graph.values[value].producer));
      else
        readers[value].push_back(op);
  for (uint32_t op = 0; op < numOps; ++op) {
    for (uint32_t argument : graph.operations[op].updates)
      for (uint32_t reader : readers[argument])
        if (reader != op)
          predecessors[op].push_back(reader);
    auto &list = predecessors[op];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return predecessors;
}

namespace {

class Orderer {
public:
  explicit Orderer(const StepGraph &graph)
      : graph(graph), predecessors(listPredecessors(graph)), successors(graph.operations.size()),
        readers(graph.values.size()) {
    for (uint32_t op = 0; op < graph.operations.size(); ++op) {
      for (uint32_t before : predecessors[op])
        successors[before].push_back(op);
      for (uint32_t value : graph.operations[op].reads)
        readers[value].push_back(op);
    }
  }

  /// The order of the program, with each update of an argument after the argument's readers.
  Schedule updatesLast();
  Schedule list(bool fence);
  Schedule depthFirst();
  Schedule eager(const Schedule &order);
  Schedule lazy(const Schedule &order);
  Schedule sink(const Schedule &order);

private:
  /// Whether it is made of nothing in place of an argument: it stands in front of what needs it, after all that reads
  /// the argument, and several such stay together.
  bool isFill(uint32_t op) const {
    const StepOperation &operation = graph.operations[op];
    return operation.reads.empty() && !operation.updates.empty() && !successors[op].empty();
  }
  bool isCounted(uint32_t value) const { return !graph.values[value].placed && graph.values[value].producer >= 0; }
  /// Bytes that running `op` adds for good, given how many readers each value still has.
  int64_t growth(uint32_t op, const std::vector<uint32_t> &left) const;

  const StepGraph &graph;
  std::vector<std::vector<uint32_t>> predecessors, successors, readers;
};

Schedule Orderer::updatesLast() {
  Schedule order;
  std::vector<size_t> missing(predecessors.size());
  auto getPlace = [&](uint32_t op) {
    return isFill(op) ? std::tuple(*std::min_element(successors[op].begin(), successors[op].end()), false, op)
                      : std::tuple(op, true, op);
  };
  std::set<std::tuple<uint32_t, bool, uint32_t>> ready;
  for (uint32_t op = 0; op < predecessors.size(); ++op)
    if (!(missing[op] = predecessors[op].size()))
      ready.insert(getPlace(op));
  while (!ready.empty()) {
    order.push_back(std::get<2>(*ready.begin()));
    ready.erase(ready.begin());
    for (uint32_t after : successors[order.back()])
      if (!--missing[after])
        ready.insert(getPlace(after));
  }
  return order;
}

int64_t Orderer::growth(uint32_t op, const std::vector<uint32_t> &left) const {
  int64_t bytes = 0;
  for (uint32_t value : graph.operations[op].writes)
    if (isCounted(value) && (!readers[value].empty() || graph.values[value].kept))
      bytes += int64_t(graph.size(value));
  for (uint32_t value : graph.operations[op].reads)
    if (isCounted(value) && left[value] == 1 && !graph.values[value].kept)
      bytes -= int64_t(graph.size(value));
  return bytes;
}

Schedule Orderer::list(bool fence) {
  const uint32_t numOps = graph.operations.size();
  std::vector<uint32_t> missing(numOps), left(graph.values.size());
  for (uint32_t op = 0; op < numOps; ++op)
    missing[op] = predecessors[op].size();
  for (uint32_t value = 0; value < graph.values.size(); ++value)
    left[value] = readers[value].size();
  // Growth changes when a value is down to its last reader.
  using Key = std::tuple<bool, int64_t, uint32_t>;
  std::set<Key> ready;
  std::vector<Key> keys(numOps);
  std::vector<char> isReady(numOps, false);
  auto enter = [&](uint32_t op) {
    keys[op] = {fence && !graph.operations[op].isForward, growth(op, left), op};
    ready.insert(keys[op]);
    isReady[op] = true;
  };
  for (uint32_t op = 0; op < numOps; ++op)
    if (!missing[op])
      enter(op);
  Schedule schedule;
  while (!ready.empty()) {
    const uint32_t op = std::get<2>(*ready.begin());
    ready.erase(ready.begin());
    isReady[op] = false;
    schedule.push_back(op);
    for (uint32_t value : graph.operations[op].reads)
      if (--left[value] == 1)
        for (uint32_t reader : readers[value])
          if (isReady[reader]) {
            ready.erase(keys[reader]);
            enter(reader);
          }
    for (uint32_t next : successors[op])
      if (--missing[next] == 0)
        enter(next);
  }
  return schedule;
}

Schedule Orderer::depthFirst() {
  const uint32_t numOps = graph.operations.size();
  std::vector<char> state(numOps, 0);
  Schedule schedule;
  auto weigh = [&](uint32_t op) {
    uint64_t bytes = 0;
    for (uint32_t value : graph.operations[op].writes)
      if (isCounted(value))
        bytes += graph.size(value);
    return bytes;
  };
  std::vector<std::pair<uint32_t, uint32_t>> stack;
  std::vector<std::vector<uint32_t>> children = predecessors;
  for (auto &list : children)
    std::sort(list.begin(), list.end(),
              [&](uint32_t a, uint32_t b) { return std::pair(weigh(b), a) < std::pair(weigh(a), b); });
  for (uint32_t root = 0; root < numOps; ++root) {
    if (!successors[root].empty() || state[root])
      continue;
    stack.push_back({root, 0});
    state[root] = 1;
    while (!stack.empty()) {
      auto &[op, next] = stack.back();
      if (next == children[op].size()) {
        schedule.push_back(op);
        stack.pop_back();
        continue;
      }
      const uint32_t child = children[op][next++];
      if (!state[child]) {
        state[child] = 1;
        stack.push_back({child, 0});
      }
    }
  }
  return schedule;
}

/// Operations that free at least as much as they add come as early as they may.
Schedule Orderer::eager(const Schedule &order) {
  std::vector<uint32_t> left(graph.values.size()), missing(graph.operations.size());
  for (uint32_t value = 0; value < graph.values.size(); ++value)
    left[value] = readers[value].size();
  for (uint32_t op = 0; op < missing.size(); ++op)
    missing[op] = predecessors[op].size();
  std::vector<char> done(graph.operations.size(), false);
  Schedule schedule;
  std::vector<uint32_t> worklist;
  auto run = [&](uint32_t op) {
    done[op] = true;
    schedule.push_back(op);
    for (uint32_t value : graph.operations[op].reads) {
      --left[value];
      if (left[value] == 1)
        for (uint32_t reader : readers[value])
          if (!done[reader] && !missing[reader])
            worklist.push_back(reader);
    }
    for (uint32_t next : successors[op])
      if (--missing[next] == 0)
        worklist.push_back(next);
  };
  for (uint32_t op : order) {
    if (done[op])
      continue;
    run(op);
    while (!worklist.empty()) {
      const uint32_t next = worklist.back();
      worklist.pop_back();
      if (!done[next] && !missing[next] && growth(next, left) <= 0)
        run(next);
    }
  }
  return schedule;
}

/// Operations that only add bytes come as late as they may: just before their
/// first reader.
Schedule Orderer::lazy(const Schedule &order) {
  // Runs what must come before, deepest first, when something that frees or
  // must keep its place asks for it.
  std::vector<char> isLazy(graph.operations.size(), false), done(graph.operations.size(), false);
  std::vector<uint32_t> left(graph.values.size());
  for (uint32_t value = 0; value < graph.values.size(); ++value)
    left[value] = readers[value].size();
  for (uint32_t op = 0; op < graph.operations.size(); ++op) {
    // Reads nothing that it could free: arguments and what others read too.
    const StepOperation &operation = graph.operations[op];
    isLazy[op] =
        !successors[op].empty() && operation.updates.empty() &&
        std::all_of(operation.reads.begin(), operation.reads.end(), [&](uint32_t value) { return !isCounted(value); });
  }
  Schedule schedule;
  std::vector<std::pair<uint32_t, uint32_t>> stack;
  for (uint32_t root : order) {
    if (done[root] || isLazy[root])
      continue;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      auto &[op, next] = stack.back();
      if (done[op]) {
        stack.pop_back();
      } else if (next == predecessors[op].size()) {
        done[op] = true;
        schedule.push_back(op);
        stack.pop_back();
      } else {
        const uint32_t before = predecessors[op][next++];
        if (!done[before])
          stack.push_back({before, 0});
      }
    }
  }
  for (uint32_t op : order)
    if (!done[op])
      schedule.push_back(op);
  return schedule;
}

/// What only replaces arguments by what is made of arguments, as an update of the step before does, takes no part in
/// the bytes alive: it stands before the first operation that needs it, where what it reads may still be on its way.
Schedule Orderer::sink(const Schedule &order) {
  constexpr uint64_t numberBytes = 64;
  auto isSmall = [&](uint32_t value) { return !isCounted(value) || graph.size(value) <= numberBytes; };
  std::vector<char> waits(graph.operations.size(), false), done(graph.operations.size(), false);
  bool isAnyNeeded = false;
  for (uint32_t op = 0; op < graph.operations.size(); ++op) {
    const StepOperation &operation = graph.operations[op];
    const bool replaces = std::any_of(operation.writes.begin(), operation.writes.end(),
                                      [&](uint32_t value) { return !isCounted(value); });
    // What nothing needs, as a flag that is set, may replace what all updates read: it would ask for them.
    const bool isLast = successors[op].empty();
    waits[op] = replaces && std::all_of(operation.writes.begin(), operation.writes.end(), isSmall) &&
                std::all_of(operation.reads.begin(), operation.reads.end(),
                            [&](uint32_t value) { return isLast ? !isCounted(value) : isSmall(value); });
    isAnyNeeded |= waits[op] && !isLast;
  }
  // Updates of this step are the last that is done with what they replace.
  if (!isAnyNeeded)
    return order;
  Schedule schedule;
  std::vector<uint32_t> stack;
  auto run = [&](uint32_t first) {
    for (stack.push_back(first); !stack.empty();) {
      const uint32_t op = stack.back();
      const size_t depth = stack.size();
      for (bool fills : {true, false})
        for (uint32_t before : predecessors[op])
          if (!done[before] && isFill(before) == fills)
            stack.push_back(before);
      if (stack.size() > depth)
        continue;
      stack.pop_back();
      if (!std::exchange(done[op], true))
        schedule.push_back(op);
    }
  };
  for (uint32_t op : order)
    if (!waits[op])
      run(op);
  for (uint32_t op : order)
    if (!done[op])
      run(op);
  return schedule;
}

} // namespace

Ordering findOrder(const StepGraph &graph) {
  if (!graph.loops.empty()) {
    std::vector<FittedSchedule> bodies;
    for (const StepLoop &loop : graph.loops)
      bodies.push_back(findOrder(loop.body));
    Ordering best = findOrder(withBodies(graph, bodies));
    best.bodies = std::move(bodies);
    return best;
  }
  Orderer orderer(graph);
  Ordering best;
  auto consider = [&](Schedule schedule, const char *method) {
    std::optional<Timeline> timeline = evaluate(graph, schedule);
    if (timeline && (best.schedule.empty() || timeline->peakBytes < best.timeline.peakBytes))
      best = {std::move(schedule), std::move(*timeline), method};
  };
  Schedule given = originalSchedule(graph);
  consider(given, "as given");
  if (best.schedule.empty()) {
    given = orderer.updatesLast();
    consider(given, "updates after readers");
  }
  const uint64_t givenBytes = best.timeline.peakBytes;
  consider(orderer.eager(given), "eager");
  consider(orderer.lazy(given), "lazy");
  consider(orderer.eager(orderer.lazy(given)), "lazy, eager");
  for (bool fence : {true, false}) {
    Schedule list = orderer.list(fence);
    consider(list, "list");
    consider(orderer.lazy(list), "list, lazy");
  }
  Schedule depthFirst = orderer.depthFirst();
  consider(depthFirst, "depth first");
  consider(orderer.eager(depthFirst), "depth first, eager");
  // The numbers that such updates read live longer then, which is worth nothing to speak of.
  constexpr uint64_t mostNumberBytes = 4096;
  Schedule sunk = orderer.sink(best.schedule);
  if (sunk != best.schedule)
    if (std::optional<Timeline> timeline = evaluate(graph, sunk);
        timeline && timeline->peakBytes <= std::min(best.timeline.peakBytes + mostNumberBytes, givenBytes))
      best.schedule = std::move(sunk), best.timeline = std::move(*timeline);
  return best;
}

} // namespace lowtide::solve
