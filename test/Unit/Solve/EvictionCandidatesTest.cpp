//===- EvictionCandidatesTest.cpp - next to a scan over all -----*- C++ -*-===//
//
// Values come, go, are locked, are needed sooner or later and become more expensive,
// as in a walk of eviction. The one that is found, and what was asked on the way, are
// those of a scan over all candidates.
//
//===----------------------------------------------------------------------===//
#include "lib/Solve/Searches/EvictionCandidates.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using lowtide::solve::EvictionCandidates;

namespace {

constexpr uint32_t none = EvictionCandidates::none;

/// Values whose needs are looked for anew, in a way that depends on when, once the last one that is known has passed.
struct Walk {
  struct Value {
    bool isPresent = false, isLocked = false, isFixed = false;
    double weight = 1;
    uint32_t own = none, implied = none;
    bool operator==(const Value &other) const = default;
  };
  std::vector<Value> values;
  double exponent = 1;
  uint32_t now = 0;
  size_t asked = 0;

  EvictionCandidates::Answer ask(uint32_t number) {
    ++asked;
    Value &value = values[number];
    if (value.isLocked)
      return {};
    if (value.implied <= now)
      value.implied = (number * 7 + now * 13) % 5 == 0 ? none : now + (number * 31 + now) % 120;
    const uint32_t when = std::min(value.own, value.implied);
    const double distance = when == none ? 1u << 30 : when - now + 1;
    return {!value.isFixed, value.weight / std::pow(distance, exponent), value.implied};
  }

  uint32_t findByScan() {
    uint32_t best = none;
    double least = 0;
    for (uint32_t number = uint32_t(values.size()); number-- > 0;) {
      if (!values[number].isPresent)
        continue;
      const EvictionCandidates::Answer answer = ask(number);
      if (answer.mayGo && (best == none || answer.score <= least))
        best = number, least = answer.score;
    }
    return best;
  }
};

} // namespace

TEST(EvictionCandidates, FindsWhatAScanFinds) {
  std::mt19937_64 random(41);
  size_t numFound = 0, asked = 0, scanned = 0;
  for (unsigned round = 0; round < 60; ++round) {
    Walk walk;
    walk.values.resize(1 + random() % 600);
    walk.exponent = double(random() % 3) / 2;
    EvictionCandidates candidates;
    candidates.reset(walk.values.size());
    for (uint32_t number = 0; number < walk.values.size(); ++number)
      if (random() % 8) {
        walk.values[number] = {true, false, false, double(1 + random() % 20), uint32_t(random() % 250), none};
        candidates.add(number);
      }
    for (; walk.now < 250; ++walk.now) {
      for (unsigned change = 0; change < 5; ++change) {
        const auto number = uint32_t(random() % walk.values.size());
        Walk::Value &value = walk.values[number];
        switch (random() % 7) {
        case 0:
        case 1:
          if (!value.isPresent) {
            // Few different weights, so that some scores are equal.
            value = {true, false, random() % 16 == 0, double(1 + random() % 20), walk.now + uint32_t(random() % 100),
                     none};
            candidates.add(number);
          }
          break;
        case 2:
          if (value.isPresent && random() % 3 == 0) {
            value.isPresent = false;
            candidates.remove(number);
          }
          break;
        case 3:
          value.isLocked = !value.isLocked && random() % 4 == 0;
          // Who asked before it was locked is not told.
          break;
        case 4:
          value.own = random() % 4 ? walk.now + uint32_t(random() % 200) : none;
          candidates.forget(number);
          break;
        case 5:
          if (const uint32_t when = walk.now + uint32_t(random() % 60); value.isPresent && when < value.implied) {
            value.implied = when;
            candidates.limit(number, when);
          }
          break;
        case 6:
          value.weight = double(1 + random() % 20);
          candidates.forget(number);
          break;
        }
      }
      // A value may not be needed before now.
      for (uint32_t number = 0; number < walk.values.size(); ++number)
        if (walk.values[number].own <= walk.now) {
          walk.values[number].own = walk.now + 1 + uint32_t(random() % 150);
          candidates.forget(number);
        }
      for (unsigned again = random() % 3; again > 0; --again) {
        Walk other = walk;
        other.asked = walk.asked = 0;
        const uint32_t expected = other.findByScan();
        const uint32_t found = candidates.findLeast(walk.now, [&](uint32_t number) { return walk.ask(number); });
        ASSERT_EQ(found, expected) << "round " << round << ", program point " << walk.now;
        ASSERT_EQ(walk.values, other.values);
        asked += walk.asked, scanned += other.asked;
        if (found == none)
          break;
        ++numFound;
        walk.values[found].isPresent = false;
        candidates.remove(found);
      }
    }
  }
  EXPECT_GT(numFound, 5'000u);
  // Otherwise all blocks were looked at each time, and nothing was compared.
  EXPECT_LT(asked, scanned * 3 / 4);
}
