//===- DifferenceTest.cpp - what two sequences have in common -------------===//
//
// Against the quadratic table, on random sequences.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Algorithms/Difference.h"
#include <gtest/gtest.h>
#include <random>

using namespace lowtide::solve;

namespace {

size_t longestCommon(const std::vector<uint32_t> &a, const std::vector<uint32_t> &b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j)
      table[i + 1][j + 1] = a[i] == b[j] ? table[i][j] + 1 : std::max(table[i][j + 1], table[i + 1][j]);
  return table[a.size()][b.size()];
}

TEST(Difference, EmptyAndEqual) {
  std::vector<uint32_t> none, some{3, 1, 2};
  EXPECT_TRUE(findCommon(none, none).empty());
  EXPECT_TRUE(findCommon(none, some).empty());
  EXPECT_EQ(findCommon(some, some).size(), 3u);
}

TEST(Difference, RandomSequences) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const uint32_t letters = 1 + random() % 6;
    std::vector<uint32_t> a(random() % 24), b(random() % 24);
    for (auto *sequence : {&a, &b})
      for (uint32_t &each : *sequence)
        each = random() % letters;
    auto pairs = findCommon(a, b);
    for (size_t i = 0; i < pairs.size(); ++i) {
      ASSERT_EQ(a[pairs[i].first], b[pairs[i].second]);
      if (i) {
        ASSERT_LT(pairs[i - 1].first, pairs[i].first);
        ASSERT_LT(pairs[i - 1].second, pairs[i].second);
      }
    }
    ASSERT_EQ(pairs.size(), longestCommon(a, b)) << "round " << round;
  }
}

} // namespace
