//===- BlockChainTest.cpp - what blocks keep ------------------------------===//
#include "lowtide/Solve/Searches/BlockChain.h"
#include "RandomSteps.h"
#include "lowtide/Solve/Portfolio/Fit.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lowtide::solve;

namespace {

constexpr uint64_t unit = 64;

/// Blocks x → wide (8 units, 10 s) → x (1 unit, 10 s); each backward operation reads both values of its block. With
/// `skip`, the last forward operation reads the first x.
StepGraph wideStep(unsigned count, bool skip = false) {
  StepBuilder b;
  std::vector<uint32_t> inputs{b.argument(unit)}, wide;
  auto forward = [&](std::vector<uint32_t> reads, uint64_t bytes) {
    uint32_t value = b.operation(std::move(reads), bytes, 10);
    b.graph.operations.back().isForward = true;
    return value;
  };
  for (unsigned i = 0; i < count; ++i) {
    wide.push_back(forward({inputs.back()}, 8 * unit));
    inputs.push_back(
        forward(skip && i + 1 == count ? std::vector{wide.back(), inputs[1]} : std::vector{wide.back()}, unit));
  }
  uint32_t d = b.operation({inputs.back()}, unit, 1);
  for (unsigned i = count; i-- > 0;)
    d = b.operation({d, wide[i], inputs[i]}, unit, 1);
  b.graph.values[d].kept = true;
  return std::move(b.graph);
}

TEST(BlockChain, FindsTheBestPlansOfAChain) {
  StepGraph graph = wideStep(5);
  const Schedule order = originalSchedule(graph);
  BlockChain chain(graph, order);
  // All five wide values, four x, cotangent and its successor. Every wide value less is 8 units less and recomputed in
  // 10 s; the last one is there in any case. Where none is kept, an x less is recomputed with a wide one.
  const std::pair<uint64_t, double> best[] = {{46, 106}, {30, 126}, {14, 146}, {13, 166}, {12, 186}};
  for (auto [units, seconds] : best) {
    std::optional<FittedSchedule> plan = chain.plan(units * unit);
    ASSERT_TRUE(plan) << units;
    EXPECT_EQ(plan->timeline.peakBytes, units * unit);
    EXPECT_EQ(plan->timeline.seconds, seconds) << units;
  }
  Front front(graph, order);
  for (auto [units, seconds] : best)
    EXPECT_EQ(front.find(units * unit)->timeline.seconds, seconds) << units;
}

TEST(BlockChain, BlocksOfTheSameStructureHaveTheSameChoices) {
  StepGraph graph = wideStep(24);
  const Schedule order = originalSchedule(graph);
  BlockChain chain(graph, order);
  const Blocks &blocks = chain.getBlocks();
  ASSERT_GE(blocks.size(), 8u);
  auto describe = [&](uint32_t block) {
    std::vector<std::tuple<int64_t, int64_t, double>> all;
    for (const BlockChoice &choice : chain.getChoices(block))
      if (choice.end == block + 1)
        all.emplace_back(choice.keptBytes / int64_t(unit), choice.peakBytes / int64_t(unit), choice.seconds);
    std::sort(all.begin(), all.end());
    return all;
  };
  // Those at both ends differ.
  const uint32_t middle = blocks.size() / 2;
  for (uint32_t block = 4; block + 4 < blocks.size(); ++block)
    EXPECT_EQ(describe(block), describe(middle)) << block;
  // The wide value and the x after it, or the x alone.
  EXPECT_THAT(describe(middle), testing::Contains(testing::FieldsAre(9, testing::_, 0.0)));
  EXPECT_THAT(describe(middle), testing::Contains(testing::FieldsAre(1, testing::_, 10.0)));
}

TEST(BlockChain, WhatJumpsOverBlocksBelongsToTheirBoundaries) {
  StepGraph graph = wideStep(12, /*skip=*/true);
  const Schedule order = originalSchedule(graph);
  BlockChain chain(graph, order);
  const Blocks &blocks = chain.getBlocks();
  const uint32_t skip = graph.operations[1].writes[0];
  ASSERT_GE(blocks.size(), 4u);
  for (uint32_t block = 2; block < blocks.size(); ++block)
    EXPECT_THAT(blocks.boundaries[block], testing::Contains(skip)) << block;
  // It waits beside the other checkpoints; every wide value but one is recomputed once.
  std::optional<FittedSchedule> plan = chain.plan(30 * unit);
  ASSERT_TRUE(plan);
  EXPECT_LE(plan->timeline.peakBytes, 31 * unit);
  EXPECT_LE(plan->timeline.seconds, 253 + 110.0);
}

TEST(BlockChain, RunsSegmentsAgainWhereBytesAreFewest) {
  StepGraph graph = wideStep(32);
  const Schedule order = originalSchedule(graph);
  BlockChain chain(graph, order);
  // Not even all x fit: checkpoints, and blocks that run again more than once.
  std::optional<FittedSchedule> plan = chain.plan(24 * unit);
  ASSERT_TRUE(plan);
  EXPECT_LE(plan->timeline.peakBytes, 24 * unit);
  EXPECT_LE(plan->timeline.seconds, 2.2 * evaluate(graph, order)->seconds);
}

TEST(BlockChain, PlansAreValid) {
  std::mt19937_64 random(11);
  unsigned plans = 0, smaller = 0;
  for (unsigned i = 0; i < 200; ++i) {
    StepGraph graph = randomStep(random, 20 + random() % 40);
    const Schedule order = originalSchedule(graph);
    const uint64_t most = evaluate(graph, order)->peakBytes;
    BlockChain chain(graph, order);
    for (unsigned k = 1; k <= 8; ++k)
      if (std::optional<FittedSchedule> plan = chain.plan(most * k / 8)) {
        std::optional<Timeline> timeline = evaluate(graph, plan->schedule);
        ASSERT_TRUE(timeline) << "step " << i;
        EXPECT_EQ(timeline->peakBytes, plan->timeline.peakBytes) << "step " << i;
        ++plans;
        smaller += timeline->peakBytes < most;
      }
  }
  EXPECT_GE(plans, 200u);
  EXPECT_GE(smaller, 50u);
}

} // namespace
