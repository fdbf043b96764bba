//===- OccupiedRangesTest.cpp - gaps next to those of a scan ----*- C++ -*-===//
//
// Random buffers are placed one by one, by every rule that packing has, and the gaps
// between those that meet one are compared with those of a scan over all that stand.
//
//===----------------------------------------------------------------------===//
#include "lib/Solve/Packing/OccupiedRanges.h"
#include <gtest/gtest.h>
#include <random>
#include <utility>

using lowtide::solve::OccupiedRanges;

namespace {

struct Placed {
  uint32_t begin, end;
  uint64_t from, to;
};

/// The gaps of a scan over all of `placed`, which is sorted by first bytes, and the highest end.
struct Scan {
  std::vector<std::pair<uint64_t, uint64_t>> gaps;
  uint64_t end = 0;

  Scan(const std::vector<Placed> &placed, uint32_t begin, uint32_t until, uint64_t size) {
    for (const Placed &each : placed) {
      if (each.begin >= until || each.end <= begin)
        continue;
      if (each.from >= end + size)
        gaps.push_back({end, each.from});
      end = std::max(end, each.to);
    }
  }
};

} // namespace

TEST(OccupiedRanges, LeavesTheGapsOfAScan) {
  std::mt19937_64 random(31);
  size_t numGaps = 0, numStopped = 0;
  for (uint32_t points : {1, 2, 7, 8, 9, 63, 64, 65, 300, 512, 513, 4097})
    for (unsigned round = 0; round < 12; ++round) {
      OccupiedRanges ranges(points);
      // Used again for other buffers, as for one order after another.
      for (unsigned use = 0; use < 2; ++use) {
        ranges.clear();
        std::vector<Placed> placed;
        // Many of few sizes, or hardly any alike; short lives, or also long ones.
        const uint64_t sizes = round % 2 ? 3 : 1000;
        const uint32_t most = round % 3 ? points : std::min(points, 6u);
        for (unsigned i = 0; i < 250; ++i) {
          const uint64_t size = 1 + random() % sizes;
          const uint32_t begin = uint32_t(random() % points);
          const uint32_t length =
              random() % 4 ? 1 + uint32_t(random() % std::min(most, 5u)) : 1 + uint32_t(random() % most);
          const uint32_t end = std::min(points, begin + length);
          const Scan scan(placed, begin, end, size);
          std::vector<std::pair<uint64_t, uint64_t>> gaps;
          const uint64_t top = ranges.forEachGap(begin, end, size, [&](uint64_t from, uint64_t to) {
            gaps.push_back({from, to});
            return true;
          });
          ASSERT_EQ(gaps, scan.gaps) << "buffer " << i << " of round " << round << ", " << points << " program points";
          ASSERT_EQ(top, scan.end);
          numGaps += gaps.size();
          // It stops where it is told to.
          if (!gaps.empty()) {
            size_t left = 1 + random() % gaps.size(), calls = 0;
            ranges.forEachGap(begin, end, size, [&](uint64_t, uint64_t) { return ++calls < left; });
            ASSERT_EQ(calls, left);
            ++numStopped;
          }
          // The bottom or the top of a gap, sometimes within it, or above all.
          uint64_t at = top;
          if (!gaps.empty() && random() % 8) {
            const auto [from, to] = gaps[random() % gaps.size()];
            const uint64_t room = to - from - size;
            at = random() % 3 == 0 ? from : random() % 2 ? from + room : from + random() % (room + 1);
          } else if (random() % 8 == 0) {
            at += random() % 500;
          }
          ranges.take(begin, end, at, at + size);
          const auto place = std::upper_bound(placed.begin(), placed.end(), at,
                                              [](uint64_t from, const Placed &other) { return from < other.from; });
          placed.insert(place, {begin, end, at, at + size});
        }
      }
    }
  // A comparison of nothing with nothing would hold too.
  EXPECT_GT(numGaps, 100'000u);
  EXPECT_GT(numStopped, 10'000u);
}
