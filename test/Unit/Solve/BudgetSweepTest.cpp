//===- BudgetSweepTest.cpp - many budgets of one step ---------------------===//
//
// The pattern in which a partitioner that charges saved bytes only gets a
// higher peak from a lower budget (pytorch issue 197838), and packings of what
// a sweep produces.
//
//===----------------------------------------------------------------------===//
#include "RandomSteps.h"
#include "lowtide/Solve/Portfolio/PackedPlans.h"
#include "lowtide/Solve/Searches/Baselines.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lowtide::solve;

namespace {

/// A stack of x + down(act(up(norm(x)))), hidden values four times as wide; `residuals` gets the x.
StepGraph residualStep(unsigned layers, uint64_t bytes, std::vector<uint32_t> &residuals) {
  StepBuilder b;
  struct Layer {
    uint32_t x, norm, up, act, wUp, wDown;
  };
  std::vector<Layer> stack;
  auto forward = [&](std::vector<uint32_t> reads, uint64_t size, double seconds) {
    uint32_t value = b.operation(std::move(reads), size, seconds);
    b.graph.operations.back().isForward = true;
    return value;
  };
  uint32_t x = b.argument(bytes);
  x = forward({x}, bytes, 1);
  for (unsigned i = 0; i < layers; ++i) {
    Layer l;
    l.wUp = b.argument(bytes), l.wDown = b.argument(bytes);
    l.x = x;
    residuals.push_back(x);
    l.norm = forward({x}, bytes, 2);
    l.up = forward({l.norm, l.wUp}, 4 * bytes, 40);
    l.act = forward({l.up}, 4 * bytes, 4);
    uint32_t down = forward({l.act, l.wDown}, bytes, 40);
    x = forward({x, down}, bytes, 1);
    stack.push_back(l);
  }
  uint32_t d = b.operation({x}, bytes, 1);
  for (auto l = stack.rbegin(); l != stack.rend(); ++l) {
    uint32_t dAct = b.operation({d, l->wDown}, 4 * bytes, 40);
    uint32_t dwDown = b.operation({l->act, d}, bytes, 40);
    b.update(l->wDown, dwDown);
    uint32_t dUp = b.operation({dAct, l->up}, 4 * bytes, 4, true);
    uint32_t dwUp = b.operation({l->norm, dUp}, bytes, 40);
    uint32_t dNorm = b.operation({dUp, l->wUp}, bytes, 40);
    b.update(l->wUp, dwUp);
    d = b.operation({d, dNorm, l->x}, bytes, 2, true);
  }
  return std::move(b.graph);
}

TEST(BudgetSweep, PeaksAndTimesAreMonotoneWhereSavedBytesAreNot) {
  std::vector<uint32_t> residuals;
  const unsigned layers = 16;
  StepGraph graph = residualStep(layers, 1024, residuals);
  const Schedule order = originalSchedule(graph);

  // What a smaller allowance of saved bytes does when everything is recomputed at once: the peak falls, then rises.
  std::vector<uint64_t> peaks;
  for (unsigned every = 1; every <= layers; every *= 2) {
    std::vector<char> saved(graph.values.size(), false);
    for (unsigned i = 0; i < layers; i += every)
      saved[residuals[i]] = true;
    peaks.push_back(planFromSaved(graph, order, saved, "saved").timeline.peakBytes);
  }
  EXPECT_FALSE(std::is_sorted(peaks.rbegin(), peaks.rend()));
  EXPECT_GE(peaks.back(), 2 * *std::min_element(peaks.begin(), peaks.end()));

  Front front(graph, order, {24, 1});
  const uint64_t low = front.getSmallest().timeline.peakBytes, high = front.getLargest().timeline.peakBytes;
  EXPECT_LE(low, *std::min_element(peaks.begin(), peaks.end()));
  uint64_t peak = 0;
  double seconds = 1e300;
  for (unsigned k = 0; k < 100; ++k) {
    const uint64_t budget = low + (high - low) * k / 99;
    const FittedSchedule *plan = front.find(budget);
    ASSERT_NE(plan, nullptr) << "budget " << budget;
    EXPECT_LE(plan->timeline.peakBytes, budget);
    EXPECT_GE(plan->timeline.peakBytes, peak);
    EXPECT_LE(plan->timeline.seconds, seconds);
    peak = plan->timeline.peakBytes;
    seconds = plan->timeline.seconds;
  }
}

/// Sizes that share no divisor but the alignment, as real models have.
StepGraph unevenStep(std::mt19937_64 &random, unsigned layers) {
  std::vector<uint32_t> residuals;
  StepGraph graph = residualStep(layers, 4096, residuals);
  for (StepValue &value : graph.values)
    value.bytes = value.bytes * (60 + random() % 80) / 100;
  for (StepOperation &operation : graph.operations)
    operation.workspaceBytes = random() % 5 ? 0 : random() % 8192;
  return graph;
}

TEST(BudgetSweep, ArenasAreNearTheBytesAlive) {
  std::mt19937_64 random(5);
  double worst = 1, sum = 0;
  unsigned plans = 0, reordered = 0;
  for (unsigned round = 0; round < 3; ++round) {
    StepGraph graph = unevenStep(random, 6 + random() % 8);
    Front front(graph, originalSchedule(graph), {8, 1});
    PackingOptions options;
    for (const FittedSchedule *plan : front.getPareto()) {
      PackedPlan packed = packPlan(graph, *plan, options);
      // The same operations, no more bytes, no more time; and the arena is no less than what packing it gives.
      std::optional<Timeline> timeline = evaluate(graph, packed.plan.schedule);
      ASSERT_TRUE(timeline);
      EXPECT_TRUE(std::is_permutation(plan->schedule.begin(), plan->schedule.end(), packed.plan.schedule.begin(),
                                      packed.plan.schedule.end()));
      EXPECT_LE(timeline->peakBytes, plan->timeline.peakBytes);
      EXPECT_EQ(packed.plan.timeline.seconds, plan->timeline.seconds);
      EXPECT_EQ(packed.isReordered, packed.plan.schedule != plan->schedule);
      std::vector<Buffer> buffers = listBuffers(graph, packed.plan.schedule);
      Packing packing = pack(buffers, options);
      EXPECT_THAT(findOverlaps(buffers, packing), testing::IsEmpty());
      EXPECT_LE(packing.arenaBytes, packed.arenaBytes);
      EXPECT_EQ(packing.boundBytes, packed.boundBytes);
      const double ratio = double(packing.arenaBytes) / double(packing.boundBytes);
      worst = std::max(worst, ratio);
      sum += ratio;
      ++plans;
      reordered += packed.isReordered;
    }
  }
  EXPECT_LE(worst, 1.005);
  EXPECT_LE(sum / plans, 1.004);
  std::printf("%u plans, %u of them reordered: mean arena / live %.5f, worst %.5f\n", plans, reordered, sum / plans,
              worst);
}

TEST(BudgetSweep, PackedPlansAreMonotone) {
  std::mt19937_64 random(6);
  for (unsigned round = 0; round < 4; ++round) {
    StepGraph graph = unevenStep(random, 5 + random() % 8);
    LoopFront front(graph, {10, 1});
    PackingOptions options;
    // Every other step by plain orders alone: few pack near.
    options.effort = round % 2 ? 1'000 : 1'000'000;
    PackedPlans packed(graph, front, options);
    const uint64_t low = packed.getSmallest().arenaBytes, high = packed.get(front.getLargest()).arenaBytes;
    double seconds = 1e300;
    for (unsigned k = 0; k <= 40; ++k) {
      const uint64_t budget = low + (high - low) * k / 40;
      const PackedPlan *found = packed.find(budget);
      ASSERT_NE(found, nullptr) << "budget " << budget;
      EXPECT_LE(found->arenaBytes, budget);
      EXPECT_LE(found->plan.timeline.seconds, seconds);
      seconds = found->plan.timeline.seconds;
    }
  }
}

TEST(BudgetSweep, ReplacedPlansAreNoLargerAndLittleSlower) {
  unsigned replaced = 0, failing = 0, seen = 0;
  for (unsigned seed : {16, 22, 27, 30, 34, 40, 48}) {
    std::mt19937_64 random(seed);
    StepGraph graph = unevenStep(random, 3 + random() % 4);
    // Few units of memory, of which each that is lost to a gap is more than a 200th.
    for (StepValue &value : graph.values)
      value.bytes = 64 * (1 + random() % 24);
    for (StepOperation &operation : graph.operations)
      operation.workspaceBytes = 0;
    LoopFront front(graph, {10, 1});
    PackingOptions options;
    options.effort = 1'000; // plain orders alone: few pack near
    PackedPlans packed(graph, front, options);
    for (const FittedSchedule *plan : front.getPareto()) {
      const PackedPlan &found = packed.get(*plan), same = packPlan(graph, *plan, options);
      std::optional<Timeline> timeline = evaluate(graph, found.plan.schedule);
      ASSERT_TRUE(timeline);
      EXPECT_LE(timeline->peakBytes, found.arenaBytes);
      EXPECT_EQ(timeline->seconds, found.plan.timeline.seconds);
      EXPECT_GE(found.plan.timeline.seconds, plan->timeline.seconds);
      EXPECT_LE(found.plan.timeline.seconds, 1.02 * plan->timeline.seconds);
      EXPECT_LE(found.arenaBytes, same.arenaBytes);
      Packing packing = pack(listBuffers(graph, found.plan.schedule), options);
      EXPECT_THAT(findOverlaps(listBuffers(graph, found.plan.schedule), packing), testing::IsEmpty());
      EXPECT_LE(packing.arenaBytes, found.arenaBytes);
      failing += !same.isNear();
      replaced += found.arenaBytes < same.arenaBytes;
    }
    // What a refusal names is what can be had: so many bytes are enough, and one less is not.
    const uint64_t least = packed.getSmallest().arenaBytes;
    EXPECT_NE(packed.find(least), nullptr);
    EXPECT_EQ(packed.find(least - 1), nullptr);
    // No plan that a budget of its own peak sees is smaller; it does not see what a rung above it has found.
    for (const FittedSchedule *plan : front.getPareto())
      if (front.find(plan->timeline.peakBytes) == plan) {
        EXPECT_LE(least, packed.get(*plan).arenaBytes);
        ++seen;
      }
  }
  // Draws, of the plans that there are: a third of those that do not pack.
  EXPECT_GE(seen, 30u);
  EXPECT_GE(failing, 30u);
  EXPECT_GE(replaced, 18u);
  EXPECT_GE(3 * replaced, failing);
  std::printf("%u of %u plans that do not pack replaced\n", replaced, failing);
}

TEST(BudgetSweep, WhatAStepTakesIsEnough) {
  unsigned hard = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    StepGraph graph = unevenStep(random, 3 + random() % 4);
    for (StepValue &value : graph.values)
      value.bytes = 64 * (1 + random() % 200);
    // Nothing runs again, so that no plan is smaller.
    for (StepOperation &operation : graph.operations)
      operation.runsOnce = true;
    LoopFront front(graph, {10, 1});
    PackingOptions options;
    options.effort = 2'000'000;
    // As plan-place packs the step without a budget.
    const uint64_t whole = packOnce(listBuffers(graph, front.getLargest()), options).arenaBytes;
    hard += whole > front.getLargest().timeline.peakBytes;
    PackedPlans packed(graph, front, options);
    ASSERT_NE(packed.find(whole), nullptr) << seed;
    EXPECT_LE(packed.getSmallest().arenaBytes, whole) << seed;
  }
  EXPECT_GE(hard, 2u);
}

} // namespace
