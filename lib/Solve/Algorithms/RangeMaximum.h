//===- RangeMaximum.h - the largest of a range, at once ---------*- C++ -*-===//
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lowtide::solve {

/// Of numbers that stay as they are; each is looked at three times, and of blocks of them the largest once for each
/// power of two up to the count of blocks.
class RangeMaximum {
public:
  /// Takes other numbers.
  void assign(std::span<const uint64_t> newNumbers) {
    const size_t count = newNumbers.size();
    numbers.assign(newNumbers.begin(), newNumbers.end());
    toHere.resize(count);
    fromHere.resize(count);
    numBlocks = (count + width - 1) / width;
    blocks.resize(numBlocks * std::bit_width(numBlocks));
    for (size_t block = 0; block < numBlocks; ++block) {
      const size_t first = block * width, end = std::min(first + width, count);
      uint64_t highest = 0;
      for (size_t i = first; i < end; ++i)
        toHere[i] = highest = std::max(highest, numbers[i]);
      blocks[block] = highest;
      highest = 0;
      for (size_t i = end; i-- > first;)
        fromHere[i] = highest = std::max(highest, numbers[i]);
    }
    for (size_t level = 1, size = 1; 2 * size <= numBlocks; ++level, size *= 2) {
      const uint64_t *half = &blocks[(level - 1) * numBlocks];
      uint64_t *whole = &blocks[level * numBlocks];
      for (size_t i = 0; i + 2 * size <= numBlocks; ++i)
        whole[i] = std::max(half[i], half[i + size]);
    }
  }

  /// From `begin` to before `end`; 0 if nothing is.
  uint64_t find(size_t begin, size_t end) const {
    if (begin >= end)
      return 0;
    const size_t first = begin / width, last = (end - 1) / width;
    if (first == last)
      return *std::max_element(numbers.begin() + ptrdiff_t(begin), numbers.begin() + ptrdiff_t(end));
    const uint64_t ends = std::max(fromHere[begin], toHere[end - 1]);
    if (first + 1 == last)
      return ends;
    const size_t level = size_t(std::bit_width(last - first - 1)) - 1;
    const uint64_t *of = &blocks[level * numBlocks];
    return std::max({ends, of[first + 1], of[last - (size_t(1) << level)]});
  }

private:
  static constexpr size_t width = 16;
  size_t numBlocks = 0;
  std::vector<uint64_t> numbers;
  /// The largest from the beginning of a block to each number, and from each to the block's end.
  std::vector<uint64_t> toHere, fromHere;
  /// By exponent k: from each block on, the largest of 2^k.
  std::vector<uint64_t> blocks;
};

} // namespace lowtide::solve
