//===- DropRedundantRemat.cpp - recomputations that are not needed ----------===//
//
// Takes recomputations out of a schedule, one by one, as long as it fits. The
// schedule keeps its positions meanwhile: what goes changes the last reads of a
// few results, and the bytes that are alive at each position are kept in a tree
// that adds to a range at once. So a trial costs as much as what it changes, not
// as much as the schedule is long.
//
//===----------------------------------------------------------------------===//
#include "../Algorithms/RangeSum.h"
#include "../Model/Walk.h"
#include "lowtide/Solve/Searches/Eviction.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

namespace lowtide::solve {
namespace {

constexpr uint32_t none = UINT32_MAX;
/// What is missing at a position where nothing runs any more: more than any bytes that may be alive.
constexpr int64_t gone = int64_t(1) << 60;

class DropRedundantRemat {
public:
  DropRedundantRemat(const StepGraph &graph, uint64_t budget, const Schedule &schedule, const Timeline &timeline)
      : graph(graph), budget(int64_t(budget)), schedule(schedule) {
    bind();
    live.assign(timeline.live);
  }

  /// The positions of all recomputations, best first.
  std::vector<uint32_t> listCandidates() const {
    std::vector<std::pair<double, uint32_t>> candidates;
    for (uint32_t now = 0; now < schedule.size(); ++now)
      if (!isFirst[now])
        candidates.push_back({-graph.at(schedule[now]).seconds, now});
    std::sort(candidates.begin(), candidates.end());
    std::vector<uint32_t> positions;
    for (auto [seconds, position] : candidates)
      positions.push_back(position);
    return positions;
  }

  /// Tries recomputations once, in the given order; what is left of the schedule. Unless `triesAll`, those are left
  /// that fit only by bytes that are handed on.
  Schedule run(std::span<const uint32_t> positions, bool triesAll) {
    for (uint32_t position : positions) {
      if (isGone[position])
        continue;
      findGroup(position);
      if (!isMadeBefore() || (!triesAll && !mayFit()))
        continue;
      remove();
      if (live.highest() <= budget)
        settle();
      else
        restore();
    }
    Schedule rest;
    for (uint32_t now = 0; now < schedule.size(); ++now)
      if (!isGone[now])
        rest.push_back(schedule[now]);
    return rest;
  }

private:
  /// Who reads whose results.
  void bind() {
    const size_t length = schedule.size();
    isFirst.assign(length, false);
    isGone.assign(length, false);
    inGroup.assign(length, false);
    changes.assign(length + 1, 0);
    isChanged.assign(length + 1, false);
    readers.assign(length, 0);
    lost.assign(length, 0);
    firstRead.assign(1, 0);
    std::vector<char> ran(graph.operations.size(), false);
    std::vector<uint32_t> current(graph.values.size(), none);
    for (uint32_t now = 0; now < length; ++now) {
      const StepOperation &operation = graph.at(schedule[now]);
      isFirst[now] = schedule[now] < ran.size() && !ran[schedule[now]];
      if (isFirst[now])
        ran[schedule[now]] = true;
      for (uint32_t value : operation.reads)
        if (const uint32_t result = current[value]; result != none) {
          Result &source = results[result];
          if (source.tail != none)
            reads[source.tail].later = uint32_t(reads.size());
          reads.push_back({now, result, source.tail, none});
          source.tail = uint32_t(reads.size() - 1);
          source.last = now;
          ++readers[source.position];
        }
      firstRead.push_back(uint32_t(reads.size()));
      firstResult.push_back(uint32_t(results.size()));
      for (uint32_t value : operation.writes) {
        const uint32_t earlier = std::exchange(current[value], uint32_t(results.size()));
        if (earlier != none)
          results[earlier].next = uint32_t(results.size());
        results.push_back({value, now, now, none, earlier, none, uint32_t(results.size())});
      }
    }
    handed.resize(length);
    for (uint32_t now = 0; now < length; ++now)
      handed[now] = countHanded(now);
  }

  struct Read {
    uint32_t position, result;
    /// Those before and after it of the same result.
    uint32_t earlier, later;
  };
  /// What one execution makes of a value.
  struct Result {
    uint32_t value, position;
    /// The position of the last read, its own if there is none.
    uint32_t last;
    uint32_t tail; // the last read
    /// The same value as it was made before, and as it is made next.
    uint32_t before, next;
    /// Who stands for it during a trial: itself, or what was made before.
    uint32_t standIn;
  };

  std::span<const Read> readsOf(uint32_t position) const {
    return std::span(reads).subspan(firstRead[position], firstRead[position + 1] - firstRead[position]);
  }
  std::span<Result> resultsOf(uint32_t position) {
    return std::span(results).subspan(firstResult[position], graph.at(schedule[position]).writes.size());
  }

  /// Bytes of dying operands that the instruction's results take over, as `evaluate` hands them on.
  int64_t countHanded(uint32_t now) const {
    const StepOperation &operation = graph.at(schedule[now]);
    std::vector<uint32_t> taken;
    int64_t bytes = 0;
    for (size_t i = 0; i < operation.writes.size(); ++i) {
      if (graph.values[operation.writes[i]].placed)
        continue;
      auto isFree = [&](uint32_t read) {
        if (std::find(taken.begin(), taken.end(), read) != taken.end())
          return false;
        const std::span<const Read> all = readsOf(now);
        auto found =
            std::find_if(all.begin(), all.end(), [&](const Read &r) { return results[r.result].value == read; });
        return found != all.end() && results[results[found->result].standIn].last == now;
      };
      if (std::optional<uint32_t> read = findOverwritten(graph, operation, i, isFree)) {
        taken.push_back(*read);
        bytes += int64_t(graph.size(*read));
      }
    }
    return bytes;
  }

  /// `position` and the recomputations that serve nothing else.
  void findGroup(uint32_t position) {
    for (uint32_t member : group)
      inGroup[member] = false;
    group.assign(1, position);
    inGroup[position] = true;
    for (uint32_t source : losers)
      lost[source] = 0;
    losers.clear();
    for (size_t i = 0; i < group.size(); ++i)
      for (const Read &read : readsOf(group[i])) {
        const uint32_t source = results[read.result].position;
        if (!lost[source])
          losers.push_back(source);
        if (++lost[source] == readers[source] && !isFirst[source] && !inGroup[source]) {
          inGroup[source] = true;
          group.push_back(source);
        }
      }
  }

  /// Who made the same value before, and stays: values from which each other can be recomputed may stand in one group.
  uint32_t findStandIn(const Result &result) const {
    uint32_t before = result.before;
    while (before != none && inGroup[results[before].position])
      before = results[before].before;
    return before;
  }

  /// Whether what is read later is there without the group.
  bool isMadeBefore() {
    const uint32_t position = group.front();
    return std::ranges::all_of(resultsOf(position), [&](const Result &result) {
      return result.last == position || findStandIn(result) != none;
    });
  }

  /// Whether there is room where the values would have to stay, but for bytes that are handed on.
  bool mayFit() {
    auto changeFrom = [&](uint32_t at, int64_t bytes) {
      if (!isChanged[at])
        changed.push_back(at);
      isChanged[at] = true;
      changes[at] += bytes;
    };
    auto change = [&](uint32_t begin, uint32_t end, int64_t bytes) {
      changeFrom(begin, bytes);
      changeFrom(end, -bytes);
    };
    const uint32_t position = group.front();
    for (const Result &result : resultsOf(position)) {
      if (graph.values[result.value].placed || result.last == position)
        continue;
      if (const uint32_t free = results[findStandIn(result)].last + 1; free < position)
        change(free, position, int64_t(graph.size(result.value)));
    }
    if (changed.empty())
      return true;
    // What runs no more needs nothing when it would have.
    for (uint32_t member : group)
      change(member, member + 1, -gone);
    for (uint32_t member : group) {
      for (const Read &read : readsOf(member)) {
        const Result &result = results[read.result];
        const StepValue &value = graph.values[result.value];
        if (result.last != member || value.placed || value.kept)
          continue;
        const uint32_t previous = reads[result.tail].earlier;
        uint32_t from = (previous == none ? result.position : reads[previous].position) + 1;
        if (inGroup[from - 1])
          from = result.position + !inGroup[result.position];
        change(from, member + 1, -int64_t(graph.size(result.value)));
      }
    }
    std::sort(changed.begin(), changed.end());
    int64_t sum = 0;
    bool fits = true;
    for (size_t i = 0; i < changed.size(); ++i) {
      const uint32_t at = changed[i];
      sum += std::exchange(changes[at], 0);
      isChanged[at] = false;
      if (fits && sum > 0 && live.highest(at, changed[i + 1]) + sum > budget)
        fits = false;
    }
    changed.clear();
    return fits;
  }

  /// The last read of a result by who is not in the group.
  uint32_t findLast(const Result &result) const {
    uint32_t read = result.tail;
    while (read != none && inGroup[reads[read].position])
      read = reads[read].earlier;
    return read == none ? result.position : reads[read].position;
  }

  void add(uint32_t begin, uint32_t end, int64_t bytes) {
    if (begin >= end || !bytes)
      return;
    live.add(begin, end, bytes);
    added.push_back({begin, end, bytes});
  }

  void setLast(uint32_t number, uint32_t last) {
    Result &result = results[number];
    if (result.last == last)
      return;
    const StepValue &value = graph.values[result.value];
    if (!value.placed && !value.kept) {
      const int64_t bytes = int64_t(graph.size(result.value));
      add(result.last + 1, last + 1, bytes);
      add(last + 1, result.last + 1, -bytes);
    }
    touched.push_back(result.last);
    touched.push_back(last);
    oldLasts.push_back({number, result.last});
    result.last = last;
  }

  /// Counts without the group; nothing is bound anew yet.
  void remove() {
    added.clear();
    touched.clear();
    oldLasts.clear();
    oldHanded.clear();
    const uint32_t position = group.front();
    for (uint32_t member : group) {
      for (const Read &read : readsOf(member))
        if (!inGroup[results[read.result].position])
          setLast(read.result, findLast(results[read.result]));
      for (Result &result : resultsOf(member))
        if (!graph.values[result.value].placed)
          add(member, result.last + 1, -int64_t(graph.size(result.value)));
      add(member, member + 1, -gone);
    }
    for (Result &result : resultsOf(position)) {
      result.standIn = findStandIn(result);
      if (result.last != position)
        setLast(result.standIn, result.last);
    }
    for (uint32_t now : touched) {
      if (inGroup[now])
        continue;
      const int64_t bytes = countHanded(now);
      add(now, now + 1, handed[now] - bytes);
      oldHanded.push_back({now, handed[now]});
      handed[now] = bytes;
    }
  }

  /// Takes `remove` back, last change first.
  void restore() {
    for (auto [begin, end, bytes] : added)
      live.add(begin, end, -bytes);
    for (; !oldHanded.empty(); oldHanded.pop_back())
      handed[oldHanded.back().first] = oldHanded.back().second;
    for (; !oldLasts.empty(); oldLasts.pop_back())
      results[oldLasts.back().first].last = oldLasts.back().second;
    for (Result &result : resultsOf(group.front()))
      result.standIn = uint32_t(&result - results.data());
  }

  /// The group is gone: who read its results reads what was made before.
  void settle() {
    for (uint32_t member : group) {
      isGone[member] = true;
      for (const Read &read : readsOf(member)) {
        Result &source = results[read.result];
        --readers[source.position];
        if (read.earlier != none)
          reads[read.earlier].later = read.later;
        if (read.later != none)
          reads[read.later].earlier = read.earlier;
        else
          source.tail = read.earlier;
      }
    }
    for (uint32_t member : group)
      for (Result &result : resultsOf(member)) {
        if (result.next != none)
          results[result.next].before = result.before;
        if (result.before != none)
          results[result.before].next = result.next;
        if (result.tail != none)
          handOver(result);
      }
  }

  void handOver(Result &result) {
    Result &to = results[result.standIn];
    uint32_t first = result.tail;
    for (uint32_t read = result.tail; read != none; read = reads[read].earlier) {
      first = read;
      reads[read].result = result.standIn;
      --readers[result.position];
      ++readers[to.position];
    }
    reads[first].earlier = to.tail;
    if (to.tail != none)
      reads[to.tail].later = first;
    to.tail = result.tail;
  }

  const StepGraph &graph;
  const int64_t budget;
  const Schedule &schedule;
  std::vector<char> isFirst, isGone, inGroup;
  std::vector<uint32_t> group;
  /// Per position, how many reads of its results the group has; where that is not 0.
  std::vector<uint32_t> lost, losers;
  /// Per position: reads of its results, where its own reads and its results begin, bytes that it takes over.
  std::vector<uint32_t> readers, firstRead, firstResult;
  std::vector<int64_t> handed;
  std::vector<Read> reads;
  std::vector<Result> results;
  /// Bytes alive at each position, and after the last.
  RangeSum live;
  /// Of a trial: from a position on, so many bytes more; the positions where that is so.
  std::vector<int64_t> changes;
  std::vector<char> isChanged;
  std::vector<uint32_t> changed;
  /// What a trial has changed.
  std::vector<std::tuple<uint32_t, uint32_t, int64_t>> added;
  std::vector<uint32_t> touched;
  std::vector<std::pair<uint32_t, uint32_t>> oldLasts;
  std::vector<std::pair<uint32_t, int64_t>> oldHanded;
};

} // namespace

/// Parts of one operation that run one after the other become the whole, where that takes less time and fits.
static void joinParts(const StepGraph &graph, uint64_t budget, Schedule &schedule, Timeline &timeline, Walk &walk) {
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
  std::optional<Timeline> result = walk.evaluate(joined);
  if (!result || result->peakBytes > budget || result->seconds >= timeline.seconds)
    return;
  schedule = std::move(joined);
  timeline = std::move(*result);
}

/// Makes what is left of a schedule the schedule, where something is gone and it fits.
static void take(Schedule rest, uint64_t budget, Schedule &schedule, Timeline &timeline, Walk &walk) {
  if (rest.size() == schedule.size())
    return;
  std::optional<Timeline> counted = walk.evaluate(rest);
  if (!counted || counted->peakBytes > budget)
    return;
  timeline = std::move(*counted);
  schedule = std::move(rest);
}

void dropRecomputations(const StepGraph &graph, uint64_t budgetBytes, Schedule &schedule, Timeline &timeline) {
  if (!timeline.recomputed)
    return;
  Walk walk(graph);
  dropRecomputations(graph, budgetBytes, schedule, timeline, walk);
}

void dropRecomputations(const StepGraph &graph, uint64_t budgetBytes, Schedule &schedule, Timeline &timeline,
                        Walk &walk) {
  if (!timeline.recomputed)
    return;
  DropRedundantRemat search(graph, budgetBytes, schedule, timeline);
  take(search.run(search.listCandidates(), /*triesAll=*/false), budgetBytes, schedule, timeline, walk);
  joinParts(graph, budgetBytes, schedule, timeline, walk);
}

void dropRecomputationsAt(const StepGraph &graph, uint64_t budgetBytes, std::span<const uint32_t> positions,
                          Schedule &schedule, Timeline &timeline) {
  Walk walk(graph);
  take(DropRedundantRemat(graph, budgetBytes, schedule, timeline).run(positions, /*triesAll=*/true), budgetBytes,
       schedule, timeline, walk);
}

} // namespace lowtide::solve
