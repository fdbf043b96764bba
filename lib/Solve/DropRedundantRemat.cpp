//===- DropRedundantRemat.cpp - recomputations that are not needed ------------------===//
//
// Takes recomputations out of a schedule, one by one, as long as it fits. Most
// trials fail because the value would have to stay through a program point that is
// full: that is seen without counting all anew.
//
//===----------------------------------------------------------------------===//
#include "RangeMaximum.h"
#include "lowtide/Solve/Eviction.h"

#include <algorithm>
#include <span>
#include <utility>

namespace lowtide::solve {
namespace {

constexpr uint32_t none = UINT32_MAX;

class DropRedundantRemat {
public:
  DropRedundantRemat(const StepGraph &graph, uint64_t budget, Schedule &schedule, Timeline &timeline)
      : graph(graph), budget(budget), schedule(schedule), timeline(timeline) {
    bind();
  }

  /// Tries every recomputation once, best first; true if one went.
  bool pass() {
    std::vector<std::pair<double, uint32_t>> candidates;
    for (uint32_t now = 0; now < schedule.size(); ++now)
      if (!isFirst[now])
        candidates.push_back({-graph.at(schedule[now]).seconds, now});
    std::sort(candidates.begin(), candidates.end());
    // Positions move when others go: `moved` follows them.
    std::vector<uint32_t> moved(schedule.size());
    for (uint32_t now = 0; now < schedule.size(); ++now)
      moved[now] = now;
    bool changed = false;
    for (auto [seconds, position] : candidates) {
      if (moved[position] == none)
        continue;
      findGroup(moved[position]);
      if (!mayFit())
        continue;
      Schedule rest;
      rest.reserve(schedule.size());
      for (uint32_t now = 0; now < schedule.size(); ++now)
        if (!inGroup[now])
          rest.push_back(schedule[now]);
      std::optional<Timeline> result = evaluate(graph, rest);
      if (!result || result->peakBytes > budget)
        continue;
      std::vector<uint32_t> renumbered(schedule.size(), none);
      for (uint32_t now = 0, next = 0; now < schedule.size(); ++now)
        if (!inGroup[now])
          renumbered[now] = next++;
      for (uint32_t &now : moved)
        if (now != none)
          now = renumbered[now];
      schedule = std::move(rest);
      timeline = std::move(*result);
      changed = true;
      bind();
    }
    return changed;
  }

private:
  /// Who reads whose results.
  void bind() {
    const size_t length = schedule.size();
    isFirst.assign(length, false);
    readers.assign(length, 0);
    firstSource.assign(1, 0);
    firstResult.clear();
    sources.clear();
    before.clear();
    lastRead.clear();
    previousRead.clear();
    inGroup.assign(length, false);
    group.clear();
    std::vector<char> ran(graph.operations.size(), false);
    maker.assign(graph.values.size(), none);
    for (uint32_t now = 0; now < length; ++now) {
      const StepOperation &operation = graph.at(schedule[now]);
      isFirst[now] = schedule[now] < ran.size() && !ran[schedule[now]];
      if (isFirst[now])
        ran[schedule[now]] = true;
      for (uint32_t value : operation.reads)
        if (maker[value] != none) {
          sources.push_back({maker[value], value});
          ++readers[maker[value]];
          const size_t result = resultOf(maker[value], value);
          previousRead[result] = std::exchange(lastRead[result], now);
        }
      firstSource.push_back(sources.size());
      firstResult.push_back(before.size());
      for (uint32_t value : operation.writes)
        before.push_back(std::exchange(maker[value], now));
      lastRead.resize(before.size(), now);
      previousRead.resize(before.size(), now);
    }
    highest.assign(timeline.live);
  }

  /// The result of the instruction at `position` that is `value`, by its number among all results of the schedule.
  size_t resultOf(uint32_t position, uint32_t value) const {
    const auto &writes = graph.at(schedule[position]).writes;
    return firstResult[position] + size_t(std::find(writes.begin(), writes.end(), value) - writes.begin());
  }
  /// Who made what the instruction at `position` reads, and what that is.
  std::span<const std::pair<uint32_t, uint32_t>> sourcesOf(uint32_t position) const {
    return std::span(sources).subspan(firstSource[position], firstSource[position + 1] - firstSource[position]);
  }

  /// `position` and the recomputations that serve nothing else.
  void findGroup(uint32_t position) {
    for (uint32_t member : group)
      inGroup[member] = false;
    group.assign(1, position);
    inGroup[position] = true;
    std::vector<std::pair<uint32_t, uint32_t>> lost;
    for (size_t i = 0; i < group.size(); ++i)
      for (auto [source, value] : sourcesOf(group[i])) {
        auto it =
            std::find_if(lost.begin(), lost.end(), [&, source = source](auto &entry) { return entry.first == source; });
        if (it == lost.end())
          it = lost.insert(lost.end(), {source, 0});
        if (++it->second == readers[source] && !isFirst[source] && !inGroup[source]) {
          inGroup[source] = true;
          group.push_back(source);
        }
      }
  }

  /// Whether there is room where the values would have to stay, but for bytes that are handed on.
  bool mayFit() {
    changes.clear();
    auto change = [&](uint32_t begin, uint32_t end, int64_t bytes) {
      changes.push_back({begin, bytes});
      changes.push_back({end, -bytes});
    };
    const uint32_t position = group.front();
    for (uint32_t value : graph.at(schedule[position]).writes) {
      const size_t result = resultOf(position, value);
      const uint32_t earlier = before[result];
      if (graph.values[value].placed || earlier == none || lastRead[result] == position)
        continue;
      const uint32_t free = lastRead[resultOf(earlier, value)] + 1;
      if (free < position)
        change(free, position, int64_t(graph.size(value)));
    }
    if (changes.empty())
      return true;
    // What runs no more needs nothing when it would have.
    for (uint32_t member : group)
      change(member, member + 1, -(int64_t(1) << 60));
    for (uint32_t member : group) {
      for (auto [source, value] : sourcesOf(member)) {
        const size_t result = resultOf(source, value);
        if (lastRead[result] != member || graph.values[value].placed || graph.values[value].kept)
          continue;
        uint32_t from = previousRead[result] + 1;
        if (inGroup[from - 1])
          from = source + !inGroup[source];
        change(from, member + 1, -int64_t(graph.size(value)));
      }
    }
    std::sort(changes.begin(), changes.end());
    int64_t sum = 0;
    for (size_t i = 0; i + 1 < changes.size(); ++i) {
      sum += changes[i].second;
      if (sum > 0 && highest.find(changes[i].first, changes[i + 1].first) + uint64_t(sum) > budget)
        return false;
    }
    return true;
  }

  const StepGraph &graph;
  const uint64_t budget;
  Schedule &schedule;
  Timeline &timeline;
  std::vector<char> isFirst, inGroup;
  std::vector<uint32_t> maker, readers, group;
  /// Instruction by instruction, and where each begins: see sourcesOf.
  std::vector<std::pair<uint32_t, uint32_t>> sources;
  std::vector<size_t> firstSource, firstResult;
  /// Per result: the earlier execution, the last reader and the one before it (or its maker).
  std::vector<uint32_t> before, lastRead, previousRead;
  RangeMaximum highest;
  /// From a program point on, so many bytes more.
  std::vector<std::pair<uint32_t, int64_t>> changes;
};

} // namespace

/// Parts of one operation that run one after the other become the whole, where that takes less time and fits.
static void joinParts(const StepGraph &graph, uint64_t budget, Schedule &schedule, Timeline &timeline) {
  const uint32_t primary = graph.operations.size();
  const std::vector<uint32_t> wholeOf = listWholes(graph);
  Schedule joined;
  for (size_t i = 0; i < schedule.size();) {
    size_t end = i;
    double seconds = 0;
    const uint32_t whole = wholeOf[schedule[i]];
    for (; end < schedule.size() && schedule[end] >= primary && wholeOf[schedule[end]] == whole; ++end)
      seconds += graph.at(schedule[end]).seconds;
    if (end > i + 1 && isRecomputable(graph, whole) && graph.operations[whole].seconds < seconds) {
      joined.push_back(whole);
    } else {
      end = std::max(end, i + 1);
      joined.insert(joined.end(), schedule.begin() + ptrdiff_t(i), schedule.begin() + ptrdiff_t(end));
    }
    i = end;
  }
  if (joined.size() == schedule.size())
    return;
  std::optional<Timeline> result = evaluate(graph, joined);
  if (!result || result->peakBytes > budget || result->seconds >= timeline.seconds)
    return;
  schedule = std::move(joined);
  timeline = std::move(*result);
}

void dropRecomputations(const StepGraph &graph, uint64_t budgetBytes, Schedule &schedule, Timeline &timeline) {
  if (!timeline.recomputed)
    return;
  DropRedundantRemat(graph, budgetBytes, schedule, timeline).pass();
  joinParts(graph, budgetBytes, schedule, timeline);
}

} // namespace lowtide::solve
