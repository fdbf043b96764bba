//===- RangeMaximum.h - the largest of a range, at once ---------*- C++ -*-===//
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lowtide::solve {

/// Of numbers that stay as they are; they are looked at once for each power of two up to their count.
class RangeMaximum {
public:
  RangeMaximum() = default;
  explicit RangeMaximum(const std::vector<uint64_t> &numbers) : highest{numbers} {
    for (size_t width = 1; 2 * width <= numbers.size(); width *= 2) {
      const std::vector<uint64_t> &half = highest.back();
      std::vector<uint64_t> whole(half.size() - width);
      for (size_t i = 0; i < whole.size(); ++i)
        whole[i] = std::max(half[i], half[i + width]);
      highest.push_back(std::move(whole));
    }
  }

  /// From `begin` to before `end`; 0 if nothing is.
  uint64_t find(size_t begin, size_t end) const {
    if (begin >= end)
      return 0;
    const unsigned level = unsigned(std::bit_width(end - begin)) - 1;
    return std::max(highest[level][begin], highest[level][end - (size_t(1) << level)]);
  }

private:
  /// By exponent: the largest of every range of 2^k.
  std::vector<std::vector<uint64_t>> highest;
};

} // namespace lowtide::solve
