//===- RangeMaximum.h - the largest of a range, at once ---------*- C++ -*-===//
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lowtide::solve {

/// Of numbers that stay as they are; they are looked at once for each power of two up to their count.
class RangeMaximum {
public:
  /// Takes other numbers.
  void assign(std::span<const uint64_t> numbers) {
    count = numbers.size();
    highest.resize(count * std::bit_width(count));
    std::copy(numbers.begin(), numbers.end(), highest.begin());
    for (size_t level = 1, width = 1; 2 * width <= count; ++level, width *= 2) {
      const uint64_t *half = &highest[(level - 1) * count];
      uint64_t *whole = &highest[level * count];
      for (size_t i = 0; i + 2 * width <= count; ++i)
        whole[i] = std::max(half[i], half[i + width]);
    }
  }

  /// From `begin` to before `end`; 0 if nothing is.
  uint64_t find(size_t begin, size_t end) const {
    if (begin >= end)
      return 0;
    const size_t level = size_t(std::bit_width(end - begin)) - 1;
    const uint64_t *of = &highest[level * count];
    return std::max(of[begin], of[end - (size_t(1) << level)]);
  }

private:
  size_t count = 0;
  /// By exponent k: from each number on, the largest of 2^k.
  std::vector<uint64_t> highest;
};

} // namespace lowtide::solve
