//===- Offload.cpp - values that wait in another memory -------------------===//
//
// Loads are moved up from the last to the first. Each is to end when the first reader of its value begins, and before
// the load after it begins: where it would have to begin for that, or as far as there is room, is where it goes.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Portfolio/Offload.h"
#include "Lanes.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace lowtide::solve {
static constexpr uint32_t none = UINT32_MAX;
using Kind = StepOperation::Kind;

void addLoads(StepGraph &graph, uint32_t memories) {
  for (StepOperation &operation : graph.operations)
    for (uint32_t result : operation.kind == Kind::Computes ? operation.writes : std::vector<uint32_t>()) {
      const StepValue &value = graph.values[result];
      if (value.placed || value.kept || !value.bytes)
        continue;
      for (uint32_t memory = 0; memory < memories; ++memory) {
        StepOperation load;
        load.writes = {result};
        load.overwrites.resize(1);
        load.isForward = operation.isForward;
        load.kind = Kind::Loads;
        load.memory = memory;
        load.seconds = graph.getCopySeconds(load);
        operation.loads.push_back(uint32_t(graph.reruns.size()));
        graph.reruns.push_back(std::move(load));
      }
    }
}

/// The loads of an operation from one memory.
static std::vector<uint32_t> listLoads(const StepGraph &graph, const StepOperation &operation, uint32_t memory) {
  std::vector<uint32_t> loads;
  for (uint32_t load : operation.loads)
    if (graph.reruns[load].memory == memory)
      loads.push_back(load);
  return loads;
}

std::vector<StepGraph> listOffloadGraphs(const StepGraph &graph) {
  struct Prices {
    /// What a second of a lane costs, in seconds of the step.
    double share;
    /// Whatever can be loaded is loaded; otherwise what takes longer to compute.
    bool always;
  };
  constexpr Prices all[] = {{1, false}, {0.1, false}, {0.1, true}};
  std::vector<StepGraph> graphs;
  for (const Prices &prices : all) {
    StepGraph &offload = graphs.emplace_back(graph);
    bool isChanged = false;
    for (StepOperation &operation : offload.operations) {
      if (operation.kind == Kind::Loads && !operation.runsOnce) {
        operation.seconds = prices.share * graph.getCopySeconds(operation);
        isChanged |= prices.share != 1;
      }
      if (operation.loads.empty())
        continue;
      for (uint32_t load : operation.loads) {
        const StepOperation &copy = graph.reruns[load];
        offload.reruns[load].seconds =
            prices.share * (graph.getStoreSeconds(copy.writes.front(), copy.memory) + graph.getCopySeconds(copy));
      }
      std::vector<uint32_t> loads = listLoads(graph, operation, 0);
      double price = 0;
      for (uint32_t load : loads)
        price += offload.reruns[load].seconds;
      // What cannot run again has no other way.
      const bool isOnlyWay = operation.reruns.empty() && (operation.runsOnce || !operation.updates.empty());
      if (!prices.always && !isOnlyWay && price > operation.seconds)
        continue;
      operation.reruns = std::move(loads);
      isChanged = true;
    }
    if (!isChanged || std::find(graphs.begin(), graphs.end() - 1, graphs.back()) != graphs.end() - 1)
      graphs.pop_back();
  }
  return graphs;
}

StepGraph restrictLoads(const StepGraph &given, const StepGraph &offload, const FittedSchedule &plan,
                        uint64_t roomBytes) {
  struct Gain {
    uint32_t operation;
    uint64_t bytes;
    size_t number;
  };
  std::vector<Gain> gains;
  std::vector<uint32_t> gainOf(given.operations.size(), none);
  for (const Stay &stay : listStays(offload, plan.schedule)) {
    const auto producer = uint32_t(offload.values[stay.value].producer);
    if (gainOf[producer] == none) {
      gainOf[producer] = uint32_t(gains.size());
      gains.push_back({producer, 0, gains.size()});
    }
    gains[gainOf[producer]].bytes += offload.values[stay.value].bytes;
  }
  std::sort(gains.begin(), gains.end(), [&](const Gain &a, const Gain &b) {
    const double first = given.operations[a.operation].seconds * double(b.bytes),
                 second = given.operations[b.operation].seconds * double(a.bytes);
    return first != second ? first > second : a.number < b.number;
  });
  StepGraph less = offload;
  for (uint32_t op = 0; op < less.operations.size(); ++op)
    less.operations[op].reruns = given.operations[op].reruns;
  uint64_t sum = 0;
  for (const Gain &gain : gains)
    if (sum + gain.bytes <= roomBytes) {
      sum += gain.bytes;
      less.operations[gain.operation].reruns = offload.operations[gain.operation].reruns;
    }
  return less;
}

StepGraph spreadLoads(const StepGraph &offload, const FittedSchedule &plan, uint64_t roomBytes) {
  std::vector<Stay> stays = listStays(offload, plan.schedule);
  // The results of an operation come back together.
  std::vector<uint32_t> longest(offload.operations.size(), 0);
  auto producerOf = [&](const Stay &stay) { return uint32_t(offload.values[stay.value].producer); };
  for (const Stay &stay : stays)
    longest[producerOf(stay)] = std::max(longest[producerOf(stay)], stay.end - stay.begin);
  // Those of one operation stay in their order.
  std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> order;
  for (uint32_t i = 0; i < stays.size(); ++i)
    order.emplace_back(longest[producerOf(stays[i])], producerOf(stays[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<Stay> shortestFirst;
  for (auto [length, producer, number] : order)
    shortestFirst.push_back(stays[number]);
  stays = std::move(shortestFirst);
  // More of them never take less.
  size_t few = 0, many = stays.size();
  while (few < many) {
    const size_t middle = (few + many + 1) / 2;
    if (countRoom(offload, std::span(stays).first(middle), 0) <= roomBytes)
      few = middle;
    else
      many = middle - 1;
  }
  std::vector<char> isNear(offload.operations.size(), false);
  for (size_t i = 0; i < stays.size(); ++i)
    isNear[producerOf(stays[i])] = i < few;
  StepGraph spread = offload;
  for (uint32_t op = 0; op < spread.operations.size(); ++op)
    if (StepOperation &operation = spread.operations[op];
        !isNear[op] && !operation.reruns.empty() && spread.reruns[operation.reruns.front()].kind == Kind::Loads)
      operation.reruns = listLoads(spread, operation, 1);
  return spread;
}

std::optional<PackedPlan> fitIntoRooms(const StepGraph &offload, const PackedPlan &packed,
                                       std::span<const uint64_t> roomBytes) {
  PackedPlan fitting = packed;
  if (!fitsRooms(offload, packed.plan, roomBytes)) {
    if (roomBytes.size() < 2)
      return std::nullopt;
    const StepGraph spread = spreadLoads(offload, packed.plan, roomBytes.front());
    const auto count = uint32_t(offload.operations.size());
    for (uint32_t &op : fitting.plan.schedule)
      if (op >= count && spread.at(op).kind == Kind::Loads) {
        const uint32_t value = spread.at(op).writes.front();
        for (uint32_t load : spread.operations[uint32_t(spread.values[value].producer)].reruns)
          if (spread.reruns[load].writes.front() == value)
            op = count + load;
      }
    if (!fitsRooms(offload, fitting.plan, roomBytes))
      return std::nullopt;
  }
  fitting.plan.timeline.seconds = countLaneSeconds(offload, fitting.plan, packed.arenaBytes);
  return fitting;
}

/// Moves loads up where the bytes alive stay within `peakBytes`.
static Schedule moveLoadsUp(const StepGraph &graph, const FittedSchedule &plan, uint64_t peakBytes) {
  const std::vector<double> seconds = listSeconds(graph, plan);
  const size_t length = plan.schedule.size();
  // When each instruction begins if no copy is waited for.
  std::vector<double> begin(length + 1, 0);
  for (size_t i = 0; i < length; ++i)
    begin[i + 1] = begin[i] + (graph.at(plan.schedule[i]).kind != Kind::Computes ? 0 : seconds[plan.schedule[i]]);
  std::vector<uint32_t> storedAt(graph.values.size(), none), firstRead(length, none), next(graph.values.size(), none);
  for (const Stay &stay : listStays(graph, plan.schedule))
    storedAt[stay.value] = stay.begin;
  for (uint32_t i = uint32_t(length); i-- > 0;) {
    const StepOperation &operation = graph.at(plan.schedule[i]);
    for (uint32_t value : operation.writes) {
      firstRead[i] = operation.kind == Kind::Loads ? next[value] : none;
      next[value] = none;
    }
    for (uint32_t value : operation.reads)
      next[value] = i;
  }
  // A load may not pass a reader of the instance before it: then the reader would see another one, of the same bits,
  // but the bytes alive would be counted wrong.
  std::vector<uint32_t> lastRead(graph.values.size(), none), floor(length, 0);
  for (uint32_t i = 0; i < length; ++i) {
    const StepOperation &operation = graph.at(plan.schedule[i]);
    if (operation.kind == Kind::Loads && lastRead[operation.writes.front()] != none)
      floor[i] = lastRead[operation.writes.front()] + 1;
    for (uint32_t value : operation.reads)
      lastRead[value] = i;
    for (uint32_t value : operation.writes)
      lastRead[value] = i;
  }
  std::vector<uint64_t> live = plan.timeline.live;
  // Before which instruction each load goes.
  std::vector<std::vector<uint32_t>> before(length + 1);
  std::vector<double> laneFree(graph.memories.size(), begin[length]);
  for (uint32_t i = uint32_t(length); i-- > 0;) {
    const StepOperation &load = graph.at(plan.schedule[i]);
    if (load.kind != Kind::Loads)
      continue;
    const uint32_t value = load.writes.front();
    const uint64_t bytes = graph.size(value);
    const uint32_t reader = firstRead[i] == none ? i : firstRead[i];
    const double end = std::min(begin[reader], laneFree[load.memory]), start = end - graph.getCopySeconds(load);
    // The store takes its time, too.
    const bool isReload = storedAt[value] != none;
    const double left = isReload ? begin[storedAt[value] + 1] + graph.getStoreSeconds(value, load.memory) : 0;
    uint32_t at = i;
    while (at > floor[i] && (!isReload || at > storedAt[value] + 1) && begin[at] > std::max(start, left) &&
           live[at - 1] + bytes <= peakBytes)
      --at;
    for (uint32_t position = at; position < i; ++position)
      live[position] += bytes;
    before[at].push_back(i);
    laneFree[load.memory] = std::max(start, 0.0);
  }
  Schedule schedule;
  schedule.reserve(length);
  for (uint32_t i = 0; i <= length; ++i) {
    // Those that are needed first were placed last.
    for (size_t k = before[i].size(); k-- > 0;)
      schedule.push_back(plan.schedule[before[i][k]]);
    if (i < length && graph.at(plan.schedule[i]).kind != Kind::Loads)
      schedule.push_back(plan.schedule[i]);
  }
  return schedule;
}

static bool hasCopies(const StepGraph &graph, const FittedSchedule &plan) {
  return std::any_of(plan.schedule.begin(), plan.schedule.end(),
                     [&](uint32_t op) { return graph.at(op).kind != Kind::Computes; });
}

std::vector<FittedSchedule> listPrefetched(const StepGraph &graph, const FittedSchedule &given, uint64_t budgetBytes) {
  std::vector<FittedSchedule> plans;
  if (given.timeline.peakBytes > budgetBytes)
    return plans;
  if (!hasCopies(graph, given))
    return {given};
  plans.push_back(given);
  plans.front().timeline.seconds = countLaneSeconds(graph, given, budgetBytes);
  const StepGraph bodied = graph.loops.empty() ? StepGraph() : withBodies(graph, given.bodies);
  const uint64_t least = given.timeline.peakBytes;
  const double bound = boundLaneSeconds(graph, given);
  // Within its own peak, then a thirty-second of it more, and on by half octaves.
  for (unsigned step = 0; plans.front().timeline.seconds > bound; ++step) {
    const uint64_t more = step ? least / 64 * ((step % 2 ? 2u : 3u) << std::min((step - 1) / 2, 30u)) : 0;
    if ((step && !more) || more > budgetBytes - least)
      break;
    FittedSchedule plan = given;
    plan.schedule = moveLoadsUp(graph, given, least + more);
    std::optional<Timeline> timeline = evaluate(graph.loops.empty() ? graph : bodied, plan.schedule);
    if (!timeline || timeline->peakBytes > budgetBytes)
      continue;
    plan.timeline = std::move(*timeline);
    plan.timeline.seconds = countLaneSeconds(graph, plan, budgetBytes);
    if (plan.timeline.seconds < plans.front().timeline.seconds)
      plans.insert(plans.begin(), std::move(plan));
  }
  return plans;
}

std::optional<PackedPlan> findPrefetched(const StepGraph &graph, const FittedSchedule &plan, uint64_t budgetBytes,
                                         const PackingOptions &options, double mostSeconds) {
  for (FittedSchedule &faster : listPrefetched(graph, plan, budgetBytes)) {
    if (faster.timeline.seconds >= mostSeconds)
      break;
    // Trials of other places for parameters and state come to the same plans.
    const Packing packing = packOnce(listBuffers(graph, faster), options);
    if (packing.arenaBytes <= budgetBytes)
      return PackedPlan{std::move(faster), packing.arenaBytes, packing.boundBytes};
  }
  return std::nullopt;
}

std::optional<PackedPlan> findFastestLanes(SolvedStep &step, uint64_t budgetBytes, std::span<const uint64_t> roomBytes,
                                           const PackingOptions &options, double mostSeconds) {
  const StepGraph &graph = step.graph;
  struct Candidate {
    const FittedSchedule *plan;
    double seconds;
  };
  const double least = boundLaneSeconds(graph, step.front.getLargest());
  std::optional<PackedPlan> best;
  auto isWorse = [&](double seconds) { return seconds >= (best ? best->plan.timeline.seconds : mostSeconds); };
  auto consider = [&](const PackedPlan &packed) {
    const FittedSchedule &plan = packed.plan;
    if (packed.arenaBytes > budgetBytes || isWorse(boundLaneSeconds(graph, plan)) || !fitsRooms(graph, plan, roomBytes))
      return;
    // Its own addresses are known.
    const double seconds = countLaneSeconds(graph, plan, budgetBytes);
    std::optional<PackedPlan> found = findPrefetched(graph, plan, budgetBytes, options, seconds);
    if (!found) {
      found = packed;
      found->plan.timeline.seconds = seconds;
    }
    if (!isWorse(found->plan.timeline.seconds))
      best = std::move(found);
  };
  // Addresses are looked for only where time is won, from the fastest on: whenever nothing can be faster than what was
  // met, and at the end. Where that does not pack, others are asked for.
  std::vector<Candidate> candidates;
  auto considerAll = [&] {
    std::sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
      const Timeline &first = a.plan->timeline, &second = b.plan->timeline;
      return std::tuple(a.seconds, first.loaded, first.peakBytes) <
             std::tuple(b.seconds, second.loaded, second.peakBytes);
    });
    for (const Candidate &candidate : candidates)
      if (!isWorse(candidate.seconds))
        consider(step.plans.get(*candidate.plan));
    candidates.clear();
  };
  for (const FittedSchedule *plan = step.front.find(budgetBytes); plan && !isWorse(least);
       plan = plan->timeline.peakBytes ? step.front.find(plan->timeline.peakBytes - 1) : nullptr) {
    if (isWorse(boundLaneSeconds(graph, *plan)))
      continue;
    const double seconds = listPrefetched(graph, *plan, budgetBytes).front().timeline.seconds;
    if (isWorse(seconds) || !fitsRooms(graph, *plan, roomBytes))
      continue;
    candidates.push_back({plan, seconds});
    if (seconds <= least)
      considerAll();
  }
  considerAll();
  // The smallest arena need not be that of the fewest bytes alive. It takes long to find: only where time may be won.
  const std::vector<const FittedSchedule *> small =
      isWorse(least) ? std::vector<const FittedSchedule *>() : step.plans.listSmall();
  if (std::any_of(small.begin(), small.end(), [&](const FittedSchedule *plan) {
        return plan->timeline.peakBytes <= budgetBytes &&
               !isWorse(listPrefetched(graph, *plan, budgetBytes).front().timeline.seconds);
      }))
    consider(step.plans.getSmallest());
  return best;
}

} // namespace lowtide::solve
