//===- OccupiedRanges.h - free addresses in a stretch of time ---*- C++ -*-===//
//
// A tree over program points, in which each node has eight parts. What is taken
// is entered at the nodes whose time it covers while it does not cover all of
// their parent's: few at each depth. Ranges that touch are one, so that buffers
// which lie next to each other for the same time cost as much as one of them.
// A gap is what is left free by the lists of the nodes that a stretch of time is
// made of and by those above them, where what covers more of the time stands.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lowtide::solve {

/// Addresses that are taken, each for a stretch of time.
class OccupiedRanges {
public:
  /// Time is counted in program points 0, 1, …, `points` - 1; at most 2^30 of them.
  explicit OccupiedRanges(uint32_t points) {
    assert(points <= 1u << 30);
    size_t count = 1;
    while (width < points)
      width *= parts, count += width;
    nodes.resize(count);
  }

  void clear() {
    for (uint32_t node : entered) {
      nodes[node].whole.clear();
      nodes[node].any.clear();
    }
    entered.clear();
  }

  /// Takes the bytes from `from` to before `to`, at the program points from `begin` to before `end`. Neither range is
  /// empty.
  void take(uint32_t begin, uint32_t end, uint64_t from, uint64_t to) { take(0, 0, width, {begin, end}, {from, to}); }

  /// Calls `use(from, to)` for each gap of at least `size` bytes, more than 0, that is free at all program points from
  /// `begin` to before `end` and lies below something that is taken at one of them: from low to high addresses, until
  /// it returns false. If it never does, returns where the highest of what is taken ends; 0 if nothing is.
  template <typename Use> uint64_t forEachGap(uint32_t begin, uint32_t end, uint64_t size, Use use) const {
    Lists lists;
    collect(0, 0, width, {begin, end}, lists);
    for (uint64_t low = 0;;) {
      const uint64_t high = lists.findGap(low, size);
      if (high == UINT64_MAX || !use(low, high))
        return low;
      low = high;
    }
  }

private:
  static constexpr uint32_t parts = 8;

  struct Stretch {
    uint32_t begin, end;
  };
  struct Range {
    uint64_t from, to;
  };
  /// Sorted; none touch.
  using Ranges = std::vector<Range>;
  struct Node {
    /// What is taken for all of the node's time.
    Ranges whole;
    /// What is taken for some of it, but for what is entered above the node.
    Ranges any;
  };

  /// A list on the way up, from `at` on.
  struct Cursor {
    const Range *at, *end;

    /// Passes what ends by `low`, and then what leaves fewer than `size` bytes above `low`, which becomes where that
    /// ends. Whether there was any of the latter.
    bool climb(uint64_t &low, uint64_t size) {
      // In steps that become longer: what others have taken may reach far up.
      for (ptrdiff_t step = 1; at != end && at->to <= low;) {
        const bool isFar = step < end - at && at[step].to <= low;
        at += isFar ? step : 1;
        step = isFar ? 2 * step : 1;
      }
      bool moved = false;
      for (; at != end && at->from < low + size; ++at, moved = true)
        low = at->to;
      return moved;
    }
  };
  struct Lists {
    /// At each of eleven depths, parts to the left and to the right, and two nodes above others.
    std::array<Cursor, 11 * 2 * parts> all;
    size_t count = 0;

    void add(const Ranges &ranges) {
      if (!ranges.empty())
        all[count++] = {ranges.data(), ranges.data() + ranges.size()};
    }

    /// Raises `low` to the next gap of at least `size` bytes, and returns where that ends; UINT64_MAX if nothing does.
    uint64_t findGap(uint64_t &low, uint64_t size) {
      uint64_t high = UINT64_MAX;
      // Around, until none has moved `low` since.
      for (size_t i = 0, settled = 0; settled < count; ++settled, i = i + 1 < count ? i + 1 : 0) {
        if (all[i].climb(low, size)) {
          settled = 0;
          high = UINT64_MAX;
        }
        if (all[i].at != all[i].end)
          high = std::min(high, all[i].at->from);
      }
      return high;
    }
  };

  static void unite(Ranges &ranges, Range range) {
    auto first =
        std::lower_bound(ranges.begin(), ranges.end(), range.from, [](Range a, uint64_t from) { return a.to < from; });
    if (first == ranges.end() || range.to < first->from) {
      ranges.insert(first, range);
      return;
    }
    auto last = first;
    while (last + 1 != ranges.end() && last[1].from <= range.to)
      ++last;
    *first = {std::min(first->from, range.from), std::max(last->to, range.to)};
    ranges.erase(first + 1, last + 1);
  }

  /// Calls `visit(node, from, size)` for each part that has some of the time; the node has the `size` program points
  /// from `from` on.
  template <typename Visit>
  static void forEachPart(uint32_t node, uint32_t from, uint32_t size, Stretch time, Visit visit) {
    size /= parts;
    for (uint32_t part = time.begin > from ? (time.begin - from) / size : 0;
         part < parts && from + part * size < time.end; ++part)
      visit(parts * node + part + 1, from + part * size, size);
  }

  void take(uint32_t node, uint32_t from, uint32_t size, Stretch time, Range range) {
    if (nodes[node].any.empty())
      entered.push_back(node);
    unite(nodes[node].any, range);
    if (time.begin > from || from + size > time.end)
      forEachPart(node, from, size, time,
                  [&](uint32_t part, uint32_t at, uint32_t length) { take(part, at, length, time, range); });
    else if (size > 1)
      unite(nodes[node].whole, range);
  }

  void collect(uint32_t node, uint32_t from, uint32_t size, Stretch time, Lists &lists) const {
    if (nodes[node].any.empty())
      return;
    if (time.begin <= from && from + size <= time.end) {
      lists.add(nodes[node].any);
      return;
    }
    lists.add(nodes[node].whole);
    forEachPart(node, from, size, time,
                [&](uint32_t part, uint32_t at, uint32_t length) { collect(part, at, length, time, lists); });
  }

  uint32_t width = 1;
  /// By depth; the parts of node i are parts · i + 1 and those after it.
  std::vector<Node> nodes;
  /// The nodes that hold something.
  std::vector<uint32_t> entered;
};

} // namespace lowtide::solve
