//===- OffloadBaselines.cpp - published ways to use two memories ----------===//
//
// None of them recomputes: what they take beyond the order is what operations wait for copies.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Portfolio/OffloadBaselines.h"
#include "lowtide/Solve/Searches/Blocks.h"
#include "lowtide/Solve/Searches/Eviction.h"

#include <algorithm>
#include <utility>

namespace lowtide::solve {

namespace {
constexpr uint32_t none = UINT32_MAX;
using Kind = StepOperation::Kind;
/// What a layer stores is asked for in so many parts.
constexpr unsigned fractions = 8;
} // namespace

OffloadBaselines::OffloadBaselines(const StepGraph &graph, const FittedSchedule &whole, const PackingOptions &packing)
    : graph(graph), plain(graph.loops.empty() ? graph : withBodies(graph, whole.bodies)), whole(whole),
      packing(packing) {
  const Schedule &order = whole.schedule;
  std::vector<uint32_t> madeAt(graph.values.size(), none), lastForward(graph.values.size(), none),
      firstBackward(graph.values.size(), none);
  for (uint32_t now = 0; now < order.size(); ++now) {
    const StepOperation &operation = graph.operations[order[now]];
    for (uint32_t value : operation.writes)
      madeAt[value] = lastForward[value] = now;
    for (uint32_t value : operation.reads)
      if (operation.isForward)
        lastForward[value] = now;
      else if (firstBackward[value] == none)
        firstBackward[value] = now;
  }
  const Blocks blocks = findBlocks(plain, order);
  layers = blocks.size();
  for (uint32_t now = 0; now < order.size(); ++now) {
    const StepOperation &operation = graph.operations[order[now]];
    auto wait = [&](uint32_t value, uint32_t load) {
      const uint32_t from = lastForward[value], until = firstBackward[value];
      // A neighbour's bytes would not be free in between; a backward part may begin before the forward one ends.
      if (until == none || until < from + 2)
        return;
      uint32_t layer = 0;
      while (layer + 1 < layers && blocks.begins[layer + 1] <= now)
        ++layer;
      waiting.push_back({value, load, from, until, layer});
    };
    if (operation.kind == Kind::Loads)
      wait(operation.writes.front(), order[now]);
    else if (operation.isForward)
      for (uint32_t load : operation.loads)
        if (!graph.reruns[load].memory)
          wait(graph.reruns[load].writes.front(), uint32_t(graph.operations.size()) + load);
  }
}

std::vector<uint32_t> OffloadBaselines::insertLoads(const std::vector<char> &isStored, Schedule &schedule) const {
  std::vector<std::vector<uint32_t>> waitingUntil(whole.schedule.size());
  for (uint32_t i = 0; i < waiting.size(); ++i)
    if (isStored[i])
      waitingUntil[waiting[i].until].push_back(i);
  std::vector<uint32_t> loadedAt(waiting.size(), none);
  schedule.clear();
  for (uint32_t now = 0; now < whole.schedule.size(); ++now) {
    for (uint32_t i : waitingUntil[now]) {
      loadedAt[i] = uint32_t(schedule.size());
      schedule.push_back(waiting[i].load);
    }
    schedule.push_back(whole.schedule[now]);
  }
  return loadedAt;
}

bool OffloadBaselines::fits(FittedSchedule &plan, uint64_t budgetBytes) const {
  std::optional<Timeline> timeline = evaluate(plain, plan.schedule);
  if (timeline)
    plan.timeline = std::move(*timeline);
  return timeline && plan.timeline.peakBytes <= budgetBytes;
}

void OffloadBaselines::forEachPlan(OffloadStrategy strategy, uint64_t budgetBytes,
                                   const std::function<bool(const FittedSchedule &)> &isWanted,
                                   const std::function<void(const FittedSchedule &)> &take) const {
  FittedSchedule plan{{}, {}, offloadStrategyNames[size_t(strategy)], whole.bodies};
  auto add = [&](const std::vector<char> &isStored) {
    insertLoads(isStored, plan.schedule);
    // To count a plan takes longer than to see that it is too slow.
    if (isWanted(plan) && fits(plan, budgetBytes))
      take(plan);
  };
  std::vector<uint32_t> bySize(waiting.size());
  for (uint32_t i = 0; i < bySize.size(); ++i)
    bySize[i] = i;
  std::sort(bySize.begin(), bySize.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(graph.size(waiting[a].value), a) < std::pair(graph.size(waiting[b].value), b);
  });
  switch (strategy) {
  case OffloadStrategy::KeepAll:
  case OffloadStrategy::Recompute:
    break;
  case OffloadStrategy::StoreAll:
    add(std::vector<char>(waiting.size(), true));
    break;
  case OffloadStrategy::StoreLargest: {
    const std::vector<uint32_t> loadedAt = insertLoads(std::vector<char>(waiting.size(), true), plan.schedule);
    if (!fits(plan, budgetBytes))
      break;
    std::vector<uint32_t> smallestFirst;
    for (uint32_t i : bySize)
      smallestFirst.push_back(loadedAt[i]);
    dropRecomputationsAt(plain, budgetBytes, smallestFirst, plan.schedule, plan.timeline);
    if (isWanted(plan))
      take(plan);
    break;
  }
  case OffloadStrategy::StoreLayers:
    for (uint32_t count = 1; count <= layers; ++count) {
      std::vector<char> isStored(waiting.size());
      for (size_t i = 0; i < waiting.size(); ++i)
        isStored[i] = waiting[i].layer < count;
      add(isStored);
    }
    break;
  case OffloadStrategy::StoreFractions: {
    std::vector<uint64_t> bytesOf(layers, 0);
    for (const Waiting &value : waiting)
      bytesOf[value.layer] += graph.size(value.value);
    for (unsigned part = 1; part <= fractions; ++part) {
      std::vector<char> isStored(waiting.size(), false);
      std::vector<uint64_t> stored(layers, 0);
      for (size_t i = bySize.size(); i-- > 0;) {
        const uint32_t layer = waiting[bySize[i]].layer;
        if (stored[layer] * fractions >= bytesOf[layer] * part)
          continue;
        isStored[bySize[i]] = true;
        stored[layer] += graph.size(waiting[bySize[i]].value);
      }
      add(isStored);
    }
    break;
  }
  }
}

std::optional<PackedPlan> OffloadBaselines::find(OffloadStrategy strategy, uint64_t budgetBytes,
                                                 std::span<const uint64_t> roomBytes, double mostSeconds) const {
  std::optional<PackedPlan> best;
  auto isWorse = [&](double seconds) { return seconds >= (best ? best->plan.timeline.seconds : mostSeconds); };
  if (isWorse(countComputeSeconds(graph, whole)))
    return best;
  // Where buffers do not pack, fewer bytes alive are asked for.
  for (unsigned tries = 3, less = 0; tries && !best; --tries, less = 2 * less + 1)
    forEachPlan(
        strategy, budgetBytes - budgetBytes / 256 * less,
        [&](const FittedSchedule &plan) { return !isWorse(boundLaneSeconds(graph, plan)); },
        [&](const FittedSchedule &plan) {
          if (!fitsRooms(graph, plan, roomBytes))
            return;
          if (std::optional<PackedPlan> found =
                  findPrefetched(graph, plan, budgetBytes, packing, best ? best->plan.timeline.seconds : mostSeconds))
            best = std::move(found);
        });
  return best;
}

} // namespace lowtide::solve
