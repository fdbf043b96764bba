//===- RangeMaximumTest.cpp - the largest of every range --------*- C++ -*-===//
//
// Every range of a few hundred numbers, around the counts at which a block ends, against looking at each of them.
//
//===----------------------------------------------------------------------===//
#include "lib/Solve/Algorithms/RangeMaximum.h"
#include <gtest/gtest.h>
#include <random>

using lowtide::solve::RangeMaximum;

TEST(RangeMaximum, IsThatOfEveryRange) {
  std::mt19937_64 random(1);
  RangeMaximum maximum;
  for (size_t count : {0, 1, 2, 15, 16, 17, 31, 32, 33, 48, 100, 257}) {
    std::vector<uint64_t> numbers(count);
    for (uint64_t &number : numbers)
      number = random() % 50;
    maximum.assign(numbers);
    for (size_t begin = 0; begin <= count; ++begin) {
      uint64_t highest = 0;
      EXPECT_EQ(maximum.find(begin, begin), 0u);
      for (size_t end = begin + 1; end <= count; ++end) {
        highest = std::max(highest, numbers[end - 1]);
        ASSERT_EQ(maximum.find(begin, end), highest) << begin << " to " << end << " of " << count;
      }
    }
  }
}
