//===- StableSort.h - sorting that keeps the order of equals ----*- C++ -*-===//
//
// std::stable_sort of the C++ library that Debian 12 has calls a function that its own headers call deprecated, which
// is a warning in every use.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <vector>

namespace lowtide {

/// Sorts `range` by `less`; what is equal stays in its order.
template <typename Range, typename Less> void sortStably(Range &range, Less less) {
  std::vector<size_t> order(range.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return less(range[a], range[b]) || (a < b && !less(range[b], range[a])); });
  Range sorted;
  sorted.reserve(range.size());
  for (size_t number : order)
    sorted.push_back(std::move(range[number]));
  range = std::move(sorted);
}

} // namespace lowtide
