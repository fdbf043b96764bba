//===- Difference.cpp - what two sequences have in common -----------------===//
//
// 1. Walk from both ends at once, d edits each, until the walks meet: the
//    middle snake lies on a shortest edit script.
// 2. Solve what is before and what is after it.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Algorithms/Difference.h"

#include <algorithm>

using namespace lowtide::solve;

namespace {

class Differ {
public:
  Differ(std::span<const uint32_t> a, std::span<const uint32_t> b)
      : a(a), b(b), forward(2 * (a.size() + b.size()) + 4), backward(forward.size()) {}

  std::vector<std::pair<uint32_t, uint32_t>> run() {
    solve(0, int64_t(a.size()), 0, int64_t(b.size()));
    return std::move(pairs);
  }

private:
  /// In place of a position on a diagonal that has none.
  static constexpr int64_t outside = -(int64_t(1) << 40);

  void solve(int64_t a0, int64_t a1, int64_t b0, int64_t b1);
  std::pair<int64_t, int64_t> split(int64_t a0, int64_t a1, int64_t b0, int64_t b1);

  std::span<const uint32_t> a, b;
  /// Furthest position in `a` on each diagonal, from either end.
  std::vector<int64_t> forward, backward;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
};

} // namespace

/// A point on a shortest edit script where about half of its edits are done. Both ranges differ at both ends and are
/// not empty.
std::pair<int64_t, int64_t> Differ::split(int64_t a0, int64_t a1, int64_t b0, int64_t b1) {
  const int64_t n = a1 - a0, m = b1 - b0, delta = n - m, limit = (n + m + 1) / 2;
  const int64_t zero = int64_t(forward.size()) / 2;
  forward[zero + 1] = 0;
  backward[zero + 1] = 0;
  for (int64_t d = 0; d <= limit; ++d) {
    for (int64_t k = -d; k <= d; k += 2) {
      int64_t x = k == -d || (k != d && forward[zero + k - 1] < forward[zero + k + 1]) ? forward[zero + k + 1]
                                                                                       : forward[zero + k - 1] + 1;
      int64_t y = x - k;
      if (x < 0 || x > n || y > m) {
        forward[zero + k] = outside;
        continue;
      }
      while (x < n && y < m && a[a0 + x] == b[b0 + y])
        ++x, ++y;
      forward[zero + k] = x;
      const int64_t other = delta - k;
      if (delta % 2 != 0 && other >= -(d - 1) && other <= d - 1 && x + backward[zero + other] >= n)
        return {a0 + x, b0 + y};
    }
    for (int64_t k = -d; k <= d; k += 2) {
      int64_t x = k == -d || (k != d && backward[zero + k - 1] < backward[zero + k + 1]) ? backward[zero + k + 1]
                                                                                         : backward[zero + k - 1] + 1;
      int64_t y = x - k;
      if (x < 0 || x > n || y > m) {
        backward[zero + k] = outside;
        continue;
      }
      while (x < n && y < m && a[a1 - 1 - x] == b[b1 - 1 - y])
        ++x, ++y;
      backward[zero + k] = x;
      const int64_t other = delta - k;
      if (delta % 2 == 0 && other >= -d && other <= d && x + forward[zero + other] >= n)
        return {a1 - x, b1 - y};
    }
  }
  return {a1, b1};
}

void Differ::solve(int64_t a0, int64_t a1, int64_t b0, int64_t b1) {
  while (a0 < a1 && b0 < b1 && a[a0] == b[b0])
    pairs.emplace_back(uint32_t(a0++), uint32_t(b0++));
  int64_t tail = 0;
  while (a0 < a1 - tail && b0 < b1 - tail && a[a1 - 1 - tail] == b[b1 - 1 - tail])
    ++tail;
  a1 -= tail;
  b1 -= tail;
  if (a0 < a1 && b0 < b1) {
    auto [x, y] = split(a0, a1, b0, b1);
    // Both halves are smaller: the ends differ, so that the point is neither corner unless nothing is common.
    if ((x > a0 || y > b0) && (x < a1 || y < b1)) {
      solve(a0, x, b0, y);
      solve(x, a1, y, b1);
    }
  }
  for (int64_t i = 0; i < tail; ++i)
    pairs.emplace_back(uint32_t(a1 + i), uint32_t(b1 + i));
}

std::vector<std::pair<uint32_t, uint32_t>> lowtide::solve::findCommon(std::span<const uint32_t> a,
                                                                      std::span<const uint32_t> b) {
  return Differ(a, b).run();
}
