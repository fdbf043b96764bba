//===- ImpliedNeedsTest.cpp - next to needs of one value each ---*- C++ -*-===//
//
// Values go, come and are needed sooner, in chains with branches. Each value's
// need, and who is told, are those of a walk that tells one value at a time.
//
//===----------------------------------------------------------------------===//
#include "lib/Solve/Searches/ImpliedNeeds.h"
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <span>

using lowtide::solve::ImpliedNeeds;

namespace {

struct Step {
  std::vector<std::vector<uint32_t>> sources;
  std::vector<char> isThere;
  /// As a walk finds them that tells one value at a time, and whom it told of those that are there.
  std::vector<uint32_t> needs;
  std::set<uint32_t> limited;
  ImpliedNeeds implied;
  size_t asked = 0;

  explicit Step(uint32_t count) : sources(count), isThere(count, true), needs(count, ImpliedNeeds::never) {
    implied.reset(count);
  }

  void tellEach(uint32_t value, uint32_t now, uint32_t when) {
    if (needs[value] >= now && needs[value] <= when)
      return;
    needs[value] = when;
    if (isThere[value]) {
      limited.insert(value);
      return;
    }
    for (uint32_t source : sources[value])
      tellEach(source, now, when);
  }

  /// Returns whom it told of those that are there.
  std::set<uint32_t> tell(uint32_t value, uint32_t now, uint32_t when) {
    std::set<uint32_t> told;
    implied.tell(
        value, now, when,
        [&](uint32_t each) {
          ++asked;
          return std::span<const uint32_t>(sources[each]);
        },
        [&](uint32_t each) { return isThere[each]; }, [&](uint32_t each) { told.insert(each); });
    return told;
  }
};

} // namespace

TEST(ImpliedNeeds, AreThoseOfTellingEachValue) {
  std::mt19937_64 random(41);
  size_t numLimited = 0;
  for (unsigned round = 0; round < 300; ++round) {
    const auto count = uint32_t(2 + random() % 80);
    Step step(count);
    for (uint32_t value = 1; value < count; ++value)
      for (unsigned i = 0; i < 1 + random() % 3; ++i) {
        // Mostly what comes just before; now and then what comes later, so that there are cycles.
        const bool isNear = random() % 4, isLater = random() % 64 == 0;
        const uint32_t source = isLater  ? uint32_t(random() % count)
                                : isNear ? value - 1 - uint32_t(random() % std::min(value, 3u))
                                         : uint32_t(random() % value);
        if (source != value)
          step.sources[value].push_back(source);
      }
    for (uint32_t now = 0; now < 200; ++now) {
      const auto value = uint32_t(random() % count);
      switch (random() % 5) {
      default:
        step.isThere[value] = false;
        for (uint32_t source : step.sources[value]) {
          const uint32_t when = now + uint32_t(random() % (1000 - 4 * now));
          step.limited.clear();
          step.tellEach(source, now, when);
          numLimited += step.limited.size();
          ASSERT_EQ(step.tell(source, now, when), step.limited) << "round " << round << ", program point " << now;
        }
        break;
      case 3:
        step.isThere[value] = true;
        step.implied.separate(value);
        break;
      case 4:
        step.needs[value] = random() % 2 ? ImpliedNeeds::never : now + uint32_t(random() % 100);
        step.implied.set(value, step.needs[value]);
        break;
      }
      for (uint32_t each = 0; each < count; ++each)
        ASSERT_EQ(step.implied.at(each), step.needs[each]) << "round " << round << ", program point " << now;
    }
  }
  EXPECT_GT(numLimited, 10'000u);
}

TEST(ImpliedNeeds, TellAChainThatGrowsAtOnce) {
  constexpr uint32_t count = 1000;
  Step step(count);
  for (uint32_t value = 1; value < count; ++value)
    step.sources[value] = {value - 1};
  // From the second on each value goes and is needed sooner than all before it, as in a forward part.
  for (uint32_t value = 1; value < count; ++value) {
    step.isThere[value] = false;
    EXPECT_EQ(step.tell(value - 1, /*now=*/value, /*when=*/3 * count - value), std::set<uint32_t>({0}));
  }
  EXPECT_EQ(step.implied.at(1), 2 * count + 1);
  EXPECT_EQ(step.implied.at(count - 2), 2 * count + 1);
  EXPECT_EQ(step.asked, count - 2);
  // One of them comes: those before it keep what they know, and are told no longer.
  step.isThere[count / 2] = true;
  step.implied.separate(count / 2);
  EXPECT_EQ(step.tell(count - 2, count, count + 1), std::set<uint32_t>({count / 2}));
  EXPECT_EQ(step.implied.at(count / 2 - 1), 2 * count + 1);
  EXPECT_EQ(step.implied.at(count / 2 + 1), count + 1);
}

TEST(ImpliedNeeds, CutAChainThatIsToldFromFurtherDown) {
  constexpr uint32_t count = 1000, cuts = 100;
  Step step(count);
  for (uint32_t value = 1; value < count; ++value) {
    step.sources[value] = {value - 1};
    step.isThere[value] = false;
  }
  step.tell(count - 1, /*now=*/0, /*when=*/5000);
  ASSERT_EQ(step.asked, count - 1);
  // Others that are made from one of them go, each needed sooner than the one before: what is above keeps its need.
  for (uint32_t cut = 1; cut <= cuts; ++cut)
    EXPECT_EQ(step.tell(count - 1 - cut, 0, 5000 - cut), std::set<uint32_t>({0}));
  for (uint32_t value = 0; value < count; ++value)
    EXPECT_EQ(step.implied.at(value), 5000 - std::min(count - 1 - value, cuts)) << value;
  // And from the top again, sooner than all.
  EXPECT_EQ(step.tell(count - 1, 0, 100), std::set<uint32_t>({0}));
  for (uint32_t value = 0; value < count; ++value)
    EXPECT_EQ(step.implied.at(value), 100u) << value;
  EXPECT_EQ(step.asked, count - 1);
}
