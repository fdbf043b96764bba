//===- RematLocalSearchTest.cpp - plans in the neighbourhood of a plan ------===//
//
// Small steps have an oracle that tries all; of larger ones a plan must stay
// valid, within its budget, and no more expensive than where the search began.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Searches/RematLocalSearch.h"
#include "ExhaustiveSearch.h"
#include "RandomSteps.h"
#include "lowtide/Solve/Searches/Eviction.h"
#include <gtest/gtest.h>

using namespace lowtide::solve;

namespace {

/// What one policy finds, thinned out; nothing if it does not get through.
std::optional<FittedSchedule> findStart(const StepGraph &graph, uint64_t budget) {
  std::optional<Schedule> schedule = evictUnder(graph, originalSchedule(graph), budget, {0, 0, 1});
  std::optional<Timeline> timeline = schedule ? evaluate(graph, *schedule) : std::nullopt;
  if (!timeline || timeline->peakBytes > budget)
    return std::nullopt;
  dropRecomputations(graph, budget, *schedule, *timeline);
  return FittedSchedule{std::move(*schedule), std::move(*timeline)};
}

TEST(RematLocalSearch, FindsTheBestPlansOfSmallSteps) {
  std::mt19937_64 random(11);
  unsigned plans = 0, bestBefore = 0, bestAfter = 0;
  for (unsigned i = 0; i < 300; ++i) {
    StepGraph graph = randomStep(random, 4 + random() % 2);
    const auto made = std::count_if(graph.values.begin(), graph.values.end(),
                                    [](const StepValue &v) { return v.producer >= 0 && !v.placed; });
    if (made > 17)
      continue;
    const Schedule order = originalSchedule(graph);
    const uint64_t low = findLowerBound(graph).bytes, high = evaluate(graph, order)->peakBytes;
    const uint64_t budget = low + (high - low) / 6;
    // One try leaves much to do.
    std::optional<FittedSchedule> start = shrinkPeak(graph, budget, {order, *evaluate(graph, order)}, 1, i);
    if (!start || !start->timeline.recomputed)
      continue;
    FittedSchedule plan = searchRematNearby(graph, budget, *start, {.rounds = 300, .seed = i});
    std::optional<double> least = ExhaustiveSearch(graph, order, budget).run();
    ASSERT_TRUE(least) << "step " << i;
    EXPECT_GE(plan.timeline.seconds, *least * (1 - 1e-12)) << "step " << i;
    EXPECT_LE(plan.timeline.peakBytes, budget) << "step " << i;
    ++plans;
    bestBefore += start->timeline.seconds <= *least * (1 + 1e-12);
    bestAfter += plan.timeline.seconds <= *least * (1 + 1e-12);
  }
  std::printf("the best plan: %u of %u, before %u\n", bestAfter, plans, bestBefore);
  EXPECT_GT(plans, 50u);
  EXPECT_GT(bestAfter, bestBefore);
  EXPECT_GE(bestAfter, plans * 97 / 100);
}

TEST(RematLocalSearch, StaysWithinTheBudgetAndIsNeverMoreExpensive) {
  std::mt19937_64 random(12);
  unsigned plans = 0, cheaper = 0;
  for (unsigned i = 0; i < 60; ++i) {
    StepGraph graph = randomStep(random, 20 + random() % 20);
    const uint64_t low = findLowerBound(graph).bytes, high = evaluate(graph, originalSchedule(graph))->peakBytes;
    const uint64_t budget = low + (high - low) / 2;
    std::optional<FittedSchedule> start = findStart(graph, budget);
    if (!start)
      continue;
    FittedSchedule plan = searchRematNearby(graph, budget, *start, {.rounds = 40, .seed = i});
    std::optional<Timeline> timeline = evaluate(graph, plan.schedule);
    ASSERT_TRUE(timeline) << "step " << i;
    EXPECT_EQ(timeline->seconds, plan.timeline.seconds) << "step " << i;
    EXPECT_LE(timeline->peakBytes, budget) << "step " << i;
    EXPECT_LE(timeline->seconds, start->timeline.seconds) << "step " << i;
    EXPECT_EQ(searchRematNearby(graph, budget, *start, {.rounds = 40, .seed = i}).schedule, plan.schedule)
        << "step " << i;
    ++plans;
    cheaper += timeline->seconds < start->timeline.seconds;
  }
  std::printf("cheaper: %u of %u\n", cheaper, plans);
  EXPECT_GT(plans, 25u);
  EXPECT_GT(cheaper, plans / 2);
}

TEST(RematLocalSearch, SqueezesAChain) {
  // Whoever keeps everything has far to go: a chain of 16 layers runs in a few tensors.
  StepGraph graph = chainStep(16, 64);
  FittedSchedule plan{originalSchedule(graph), *evaluate(graph, originalSchedule(graph))};
  const uint64_t before = plan.timeline.peakBytes;
  while (std::optional<FittedSchedule> smaller = shrinkPeak(graph, plan.timeline.peakBytes - 64, plan, 8, 0)) {
    EXPECT_LE(smaller->timeline.peakBytes + 64, plan.timeline.peakBytes);
    EXPECT_TRUE(evaluate(graph, smaller->schedule));
    plan = std::move(*smaller);
  }
  EXPECT_LE(plan.timeline.peakBytes, before / 3);
  EXPECT_FALSE(shrinkPeak(graph, findLowerBound(graph).bytes - 1, plan, 8, 0));
}

TEST(RematLocalSearch, WhatAValueIsMadeOfStaysInItsPlace) {
  // y is not there while z is made of x, and room is for one of both after it: x may stay until y is made of it again.
  StepBuilder b;
  const uint32_t input = b.argument(64);
  const uint32_t x = b.operation({input}, 1024, 10), y = b.operation({x}, 1024, 5);
  const uint32_t z = b.operation({x}, 64, 1, /*inPlace=*/false, /*workspace=*/2048);
  const uint32_t w = b.operation({z}, 64, 1, /*inPlace=*/false, /*workspace=*/2048);
  const uint32_t last = b.operation({y, w}, 64, 1);
  b.graph.values[last].kept = true;
  const uint64_t budget = 1024 + 64 + 64 + 2048;
  const Schedule late{0, 1, 2, 3, 0, 1, 4};
  FittedSchedule start{late, *evaluate(b.graph, late), "late"};
  ASSERT_LE(start.timeline.peakBytes, budget);
  const double whole = evaluate(b.graph, originalSchedule(b.graph))->seconds;
  ASSERT_EQ(start.timeline.seconds, whole + 15);
  const FittedSchedule found = searchRematNearby(b.graph, budget, start, {.rounds = 20, .seed = 1});
  EXPECT_LE(found.timeline.peakBytes, budget);
  EXPECT_EQ(found.timeline.seconds, whole + 5);
}

TEST(RematLocalSearch, MakesAValueAgainWhereThereIsRoomForThat) {
  // r has to go while `full` runs, and what makes it takes more bytes than there are where it is read: only before
  // `calm` or `busy` is there room. To make the expensive d again instead needs no room at all.
  StepBuilder b;
  const uint32_t input = b.argument(64);
  const uint32_t d = b.operation({input}, 1024, 20), x = b.operation({input}, 512, 10);
  const uint32_t r = b.operation({x}, 1024, 2, /*inPlace=*/false, /*workspace=*/1024);
  const uint32_t z = b.operation({r}, 64, 1);
  const uint32_t full = b.operation({z}, 64, 1, /*inPlace=*/false, /*workspace=*/2048);
  const uint32_t calm = b.operation({full}, 64, 1), busy = b.operation({calm}, 1024, 1);
  const uint32_t last = b.operation({r, busy}, 64, 1), end = b.operation({last, d}, 64, 1);
  b.graph.values[end].kept = true;
  const uint64_t budget = 512 + 64 + 64 + 2048 + 1024;
  const Schedule expensive{0, 1, 2, 3, 4, 5, 6, 7, 0, 8};
  const FittedSchedule start{expensive, *evaluate(b.graph, expensive), "expensive"};
  ASSERT_LE(start.timeline.peakBytes, budget);
  const FittedSchedule found = searchRematNearby(b.graph, budget, start, {.rounds = 20, .seed = 1});
  EXPECT_LE(found.timeline.peakBytes, budget);
  EXPECT_EQ(found.timeline.seconds, start.timeline.seconds - 20 + 2);
}

} // namespace
