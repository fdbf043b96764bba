//===- RangeSum.h - numbers to which ranges are added -----------*- C++ -*-===//
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lowtide::solve {

/// Numbers, a range of which becomes larger or smaller at once, and the largest of a range: both in as many steps as
/// their count has bits.
class RangeSum {
public:
  /// Takes other numbers.
  void assign(std::span<const uint64_t> numbers) {
    width = std::bit_ceil(std::max<size_t>(numbers.size(), 1));
    nodes.assign(2 * width, {nothing, 0});
    for (size_t i = 0; i < numbers.size(); ++i)
      nodes[width + i].highest = int64_t(numbers[i]);
    for (size_t node = width; node-- > 1;)
      nodes[node].highest = std::max(nodes[2 * node].highest, nodes[2 * node + 1].highest);
  }

  /// To those from `begin` to before `end`.
  void add(size_t begin, size_t end, int64_t number) { add(1, 0, width, begin, end, number); }

  int64_t highest() const { return nodes[1].highest; }
  /// Below -2^59 if there is nothing from `begin` to before `end`.
  int64_t highest(size_t begin, size_t end) const { return begin < end ? find(1, 0, width, begin, end) : nothing; }

private:
  static constexpr int64_t nothing = -(int64_t(1) << 60);

  struct Node {
    int64_t highest, added; // of all below it; to all below it, in `highest` already
  };

  void add(size_t node, size_t from, size_t to, size_t begin, size_t end, int64_t number) {
    if (end <= from || to <= begin)
      return;
    if (begin <= from && to <= end) {
      nodes[node].highest += number;
      nodes[node].added += number;
      return;
    }
    const size_t middle = (from + to) / 2;
    add(2 * node, from, middle, begin, end, number);
    add(2 * node + 1, middle, to, begin, end, number);
    nodes[node].highest = std::max(nodes[2 * node].highest, nodes[2 * node + 1].highest) + nodes[node].added;
  }

  int64_t find(size_t node, size_t from, size_t to, size_t begin, size_t end) const {
    if (end <= from || to <= begin)
      return nothing;
    if (begin <= from && to <= end)
      return nodes[node].highest;
    const size_t middle = (from + to) / 2;
    return std::max(find(2 * node, from, middle, begin, end), find(2 * node + 1, middle, to, begin, end)) +
           nodes[node].added;
  }

  size_t width = 1;
  std::vector<Node> nodes;
};

} // namespace lowtide::solve
