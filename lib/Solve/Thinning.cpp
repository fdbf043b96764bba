//===- Thinning.cpp - recomputations that are not needed ------------------===//
//
// Takes recomputations out of a schedule, one by one, as long as it fits. Most
// trials fail because the value would have to stay through a moment that is
// full: that is seen without counting anew.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Eviction.h"

#include <algorithm>

namespace lowtide::solve {
namespace {

constexpr uint32_t nobody = UINT32_MAX;

class Thinning {
public:
  Thinning(const StepGraph &graph, uint64_t budget, Schedule &schedule, Timeline &timeline)
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
      if (moved[position] == nobody)
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
      std::vector<uint32_t> renumbered(schedule.size(), nobody);
      for (uint32_t now = 0, next = 0; now < schedule.size(); ++now)
        if (!inGroup[now])
          renumbered[now] = next++;
      for (uint32_t &now : moved)
        if (now != nobody)
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
    sources.assign(length, {});
    before.assign(length, {});
    lastRead.assign(length, {});
    inGroup.assign(length, false);
    group.clear();
    std::vector<char> ran(graph.operations.size(), false);
    maker.assign(graph.values.size(), nobody);
    for (uint32_t now = 0; now < length; ++now) {
      const StepOperation &operation = graph.at(schedule[now]);
      isFirst[now] = schedule[now] < ran.size() && !ran[schedule[now]];
      if (isFirst[now])
        ran[schedule[now]] = true;
      for (uint32_t value : operation.reads)
        if (maker[value] != nobody) {
          sources[now].push_back({maker[value], value});
          ++readers[maker[value]];
          lastRead[maker[value]][slotOf(maker[value], value)] = now;
        }
      before[now].resize(operation.writes.size());
      lastRead[now].assign(operation.writes.size(), now);
      for (size_t i = 0; i < operation.writes.size(); ++i) {
        before[now][i] = maker[operation.writes[i]];
        maker[operation.writes[i]] = now;
      }
    }
    // Largest live bytes in every range of 2^k instructions.
    highest.assign(1, timeline.live);
    for (size_t width = 1; 2 * width <= highest[0].size(); width *= 2) {
      const std::vector<uint64_t> &half = highest.back();
      std::vector<uint64_t> whole(half.size() - width);
      for (size_t i = 0; i < whole.size(); ++i)
        whole[i] = std::max(half[i], half[i + width]);
      highest.push_back(std::move(whole));
    }
  }

  size_t slotOf(uint32_t position, uint32_t value) const {
    const auto &writes = graph.at(schedule[position]).writes;
    return std::find(writes.begin(), writes.end(), value) - writes.begin();
  }

  uint64_t highestBetween(uint32_t begin, uint32_t end) const {
    if (begin >= end)
      return 0;
    unsigned level = 0;
    while ((2u << level) <= end - begin)
      ++level;
    return std::max(highest[level][begin], highest[level][end - (1u << level)]);
  }

  /// `position` and the recomputations that serve nothing else.
  void findGroup(uint32_t position) {
    for (uint32_t member : group)
      inGroup[member] = false;
    group.assign(1, position);
    inGroup[position] = true;
    std::vector<std::pair<uint32_t, uint32_t>> lost;
    for (size_t i = 0; i < group.size(); ++i)
      for (auto [source, value] : sources[group[i]]) {
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

  /// Whether the values could stay where they would have to, if all that the group reads were free.
  bool mayFit() const {
    uint64_t relief = 0;
    for (uint32_t member : group) {
      for (auto [source, value] : sources[member])
        if (inGroup[lastRead[source][slotOf(source, value)]])
          relief += graph.size(value);
      for (uint32_t value : graph.at(schedule[member]).writes)
        relief += graph.size(value);
    }
    const uint32_t position = group.front();
    for (size_t i = 0; i < before[position].size(); ++i) {
      const uint32_t value = graph.at(schedule[position]).writes[i], earlier = before[position][i];
      if (graph.values[value].placed || earlier == nobody || lastRead[position][i] == position)
        continue;
      uint32_t free = lastRead[earlier][slotOf(earlier, value)] + 1;
      if (highestBetween(free, position) + graph.size(value) > budget + relief)
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
  /// Per instruction: who made what it reads; per result, the last reader and
  /// the earlier execution.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> sources;
  std::vector<std::vector<uint32_t>> before, lastRead;
  std::vector<std::vector<uint64_t>> highest;
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
  Thinning(graph, budgetBytes, schedule, timeline).pass();
  joinParts(graph, budgetBytes, schedule, timeline);
}

} // namespace lowtide::solve
