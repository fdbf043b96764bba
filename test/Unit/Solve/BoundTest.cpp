//===- BoundTest.cpp - bounds, exact answers and ours on small steps ------===//
//
// On hundreds of small steps: linear bound ≤ integer bound ≤ the cheapest
// schedule there is (found by trying all) ≤ ours, and ours is near.
//
//===----------------------------------------------------------------------===//
#include "ExhaustiveSearch.h"
#include "RandomSteps.h"
#include "lowtide/Solve/Algorithms/LinearProgram.h"
#include "lowtide/Solve/Bound/RecomputationBound.h"
#include "lowtide/Solve/Portfolio/Comparison.h"
#include "lowtide/Solve/Portfolio/Fit.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

using namespace lowtide::solve;

namespace {

constexpr double infinity = LinearProgram::infinity;

unsigned countMade(const StepGraph &graph) {
  unsigned count = 0;
  for (const StepValue &value : graph.values)
    count += value.producer >= 0 && !value.placed;
  return count;
}

TEST(LinearProgram, PricesGiveABound) {
  // min x + 2y, x + y ≥ 1, x ≤ 0.25.
  LinearProgram program;
  int32_t x = program.addColumn(1, 0, 0.25), y = program.addColumn(2, 0, 1);
  program.addEntry(x, 1);
  program.addEntry(y, 1);
  program.endRow(1, infinity);
  EXPECT_DOUBLE_EQ(boundByPrices(program, {2}), 1.75);
  EXPECT_DOUBLE_EQ(boundByPrices(program, {1}), 1);
  EXPECT_DOUBLE_EQ(boundByPrices(program, {0}), 0);
  EXPECT_LE(boundByPrices(program, {-1}), 1.75); // the row has no upper side
  EXPECT_LE(boundByPrices(program, {5}), 1.75);
}

TEST(LinearProgram, IsSolved) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  LinearProgram program;
  int32_t x = program.addColumn(1, 0, 0.25), y = program.addColumn(2, 0, 1);
  program.addEntry(x, 1);
  program.addEntry(y, 1);
  program.endRow(1, infinity);
  LinearSolution solution = solveLinearProgram(program);
  EXPECT_EQ(solution.state, LinearSolution::State::Optimal);
  EXPECT_NEAR(solution.bound, 1.75, 1e-9);
  EXPECT_THAT(solution.values, testing::ElementsAre(testing::DoubleNear(0.25, 1e-9), testing::DoubleNear(0.75, 1e-9)));
  solution = solveLinearProgram(program, {.integral = true});
  EXPECT_NEAR(solution.bound, 2, 1e-6);
  program.addEntry(y, 1);
  program.endRow(-infinity, 0.5);
  EXPECT_EQ(solveLinearProgram(program).state, LinearSolution::State::Infeasible);
}

TEST(LinearProgram, CutsAreAddedAsLongAsThereAreAny) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  // Of five in a ring no two neighbours: two at most, but five halves as shares.
  LinearProgram program;
  for (int i = 0; i < 5; ++i)
    program.addColumn(-1, 0, 1);
  for (int32_t i = 0; i < 5; ++i) {
    program.addEntry(i, 1);
    program.addEntry((i + 1) % 5, 1);
    program.endRow(-infinity, 1);
  }
  EXPECT_NEAR(solveLinearProgram(program).bound, -2.5, 1e-9);
  unsigned asked = 0;
  auto findCuts = [&](const std::vector<double> &values) {
    LinearRows cuts;
    ++asked;
    if (std::accumulate(values.begin(), values.end(), 0.0) > 2.001) {
      for (int32_t i = 0; i < 5; ++i)
        cuts.addEntry(i, 1);
      cuts.endRow(-infinity, 2);
    }
    return cuts;
  };
  for (bool integral : {false, true}) {
    const LinearSolution solution = solveLinearProgram(program, {.integral = integral}, findCuts);
    EXPECT_EQ(solution.state, LinearSolution::State::Optimal);
    EXPECT_NEAR(solution.bound, -2, 1e-6);
    EXPECT_NEAR(std::accumulate(solution.values.begin(), solution.values.end(), 0.0), -solution.bound, 1e-6);
    EXPECT_EQ(std::exchange(asked, 0), 2u);
  }
  EXPECT_EQ(program.rows.size(), 5u);
  // The same of whole numbers: of three columns one is taken, none of them the one that costs least.
  LinearProgram choice;
  for (int i = 0; i < 3; ++i) {
    choice.addColumn(i + 1, 0, 1);
    choice.addEntry(i, 1);
  }
  choice.endRow(1, infinity);
  auto forbidFirst = [&](const std::vector<double> &values) {
    LinearRows cuts;
    ++asked;
    if (values[0] > 0.5) {
      cuts.addEntry(0, 1);
      cuts.endRow(0, 0);
    }
    return cuts;
  };
  const LinearSolution solution = solveLinearProgram(choice, {.integral = true}, {}, forbidFirst);
  EXPECT_EQ(solution.state, LinearSolution::State::Optimal);
  EXPECT_NEAR(solution.bound, 2, 1e-6);
  EXPECT_NEAR(solution.values[1], 1, 1e-6);
  EXPECT_EQ(asked, 2u);
}

TEST(LinearProgram, FirstOrderStepsComeNearSimplex) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  // Covers: min Σ cost · x, of every row's columns one is there.
  std::mt19937_64 random(5);
  LinearProgram program;
  for (int i = 0; i < 200; ++i)
    program.addColumn(1 + double(random() % 100) / 10, 0, 1);
  for (int row = 0; row < 120; ++row) {
    for (int32_t column = int32_t(random() % 40); column < 200; column += 20 + int32_t(random() % 40))
      program.addEntry(column, 1);
    program.endRow(1, infinity);
  }
  const LinearSolution exact = solveLinearProgram(program);
  const LinearSolution near = solveLinearProgram(program, {.simplexShare = 0});
  ASSERT_EQ(exact.state, LinearSolution::State::Optimal);
  EXPECT_EQ(near.state, LinearSolution::State::Optimal);
  EXPECT_LE(near.bound, exact.bound * (1 + 1e-9));
  EXPECT_GE(near.bound, exact.bound * (1 - 1e-3));
  EXPECT_NE(near.bound, exact.bound);
}

TEST(Bound, OrderOfBoundsOnSmallSteps) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  std::mt19937_64 random(21);
  unsigned problems = 0, exact = 0, reached = 0, near = 0;
  double oursOver = 0, linearUnder = 0;
  for (unsigned i = 0; problems < 80 && i < 4000; ++i) {
    StepGraph graph = randomStep(random, 2 + random() % 4);
    if (countMade(graph) > 13)
      continue;
    const Schedule order = originalSchedule(graph);
    Front front(graph, order);
    const uint64_t low = findLowerBound(graph).bytes, high = front.getLargest().timeline.peakBytes;
    if (low >= high)
      continue;
    const uint64_t budget = low + random() % (high - low);
    const double whole = front.getLargest().timeline.seconds;
    std::optional<double> best = ExhaustiveSearch(graph, order, budget).run();
    RecomputationBound linear = boundRecomputation(graph, order, budget);
    RecomputationBound integral = boundRecomputation(graph, order, budget, {.integral = true});
    const FittedSchedule *ours = front.find(budget);
    ++problems;
    if (!best) {
      EXPECT_EQ(ours, nullptr) << "step " << i;
      EXPECT_FALSE(integral.plan) << "step " << i;
      continue;
    }
    const double slack = 1e-6 * whole;
    EXPECT_FALSE(linear.isInfeasible || integral.isInfeasible) << "step " << i;
    EXPECT_LE(linear.seconds, integral.seconds + slack) << "step " << i;
    EXPECT_LE(whole + integral.seconds, *best + slack) << "step " << i << " budget " << budget;
    if (integral.plan) {
      EXPECT_NEAR(integral.plan->timeline.seconds, *best, slack) << "step " << i;
      EXPECT_LE(evaluate(graph, integral.plan->schedule)->peakBytes, budget) << "step " << i;
      ++exact;
    }
    // Fewer program points only loosen it.
    RecomputationBound loose = boundRecomputation(graph, order, budget, {.points = 4});
    EXPECT_LE(whole + loose.seconds, *best + slack) << "step " << i;
    ASSERT_NE(ours, nullptr) << "step " << i << " budget " << budget;
    ++reached;
    EXPECT_GE(ours->timeline.seconds, *best - slack) << "step " << i;
    near += ours->timeline.seconds <= 1.1 * *best;
    oursOver += (ours->timeline.seconds - *best) / whole;
    linearUnder += (*best - whole - linear.seconds) / whole;
  }
  EXPECT_EQ(problems, 80u);
  EXPECT_GE(exact, 39u);
  EXPECT_EQ(near, reached);
  EXPECT_LE(oursOver / reached, 0.001);
  std::printf(
      "%u problems, %u with an exact integer plan, %u fitted; ours over the best %.3f %%, linear bound under it %.3f "
      "%% of the step\n",
      problems, exact, reached, 100 * oursOver / reached, 100 * linearUnder / reached);
}

TEST(Bound, OfASmallStepIsExact) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  std::mt19937_64 random(23);
  unsigned problems = 0, exact = 0, raised = 0;
  for (unsigned i = 0; problems < 30 && i < 4000; ++i) {
    StepGraph graph = randomStep(random, 2 + random() % 4);
    if (countMade(graph) > 13)
      continue;
    const Schedule order = originalSchedule(graph);
    const double whole = evaluate(graph, order)->seconds;
    const uint64_t low = findLowerBound(graph).bytes, high = evaluate(graph, order)->peakBytes;
    if (low >= high)
      continue;
    const uint64_t budget = low + random() % (high - low);
    std::optional<double> best = ExhaustiveSearch(graph, order, budget).run();
    if (!best)
      continue;
    ++problems;
    const double slack = 4e-6 * whole;
    const RecomputationBound linear = boundRecomputation(graph, order, budget);
    const RecomputationBound unaided = findTightestBound(graph, order, budget);
    const RecomputationBound aided = findTightestBound(graph, order, budget, *best - whole);
    EXPECT_EQ(linear.kind, BoundKind::Relaxation) << "step " << i;
    for (const RecomputationBound *bound : {&unaided, &aided}) {
      EXPECT_NE(bound->kind, BoundKind::Relaxation) << "step " << i;
      EXPECT_LE(whole + bound->seconds, *best + slack) << "step " << i;
      EXPECT_GE(bound->seconds, linear.seconds) << "step " << i;
      if (bound->kind == BoundKind::Exact) {
        EXPECT_NEAR(whole + bound->seconds, *best, slack) << "step " << i;
        EXPECT_EQ(describe(*bound), "exact");
      }
    }
    exact += unaided.kind == BoundKind::Exact;
    raised += unaided.seconds > linear.seconds + slack;
  }
  EXPECT_EQ(problems, 30u);
  EXPECT_GE(exact, 10u);
  EXPECT_GE(raised, 5u);
}

TEST(Bound, PartsCountAsMuchAsTheyTake) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  // Two large results of one operation, each read once more after a full program point; apart they take 8 and 7,
  // together 10.
  for (const bool isSecondRead : {false, true}) {
    StepBuilder b;
    const uint32_t x = b.argument(64);
    const uint32_t first = b.operation({x}, 1024, 10), second = b.graph.values.size();
    b.graph.values.push_back({1024, 0, false, false});
    StepOperation &whole = b.graph.operations.back();
    for (const auto &[value, seconds] : {std::pair(first, 8.0), std::pair(second, 7.0)}) {
      StepOperation part = whole;
      part.writes = {value};
      part.seconds = seconds;
      b.graph.reruns.push_back(std::move(part));
    }
    whole.reruns = {0, 1};
    whole.writes = {first, second};
    whole.overwrites.emplace_back();
    const uint32_t sum = b.operation({first, second}, 64, 1);
    const uint32_t full = b.operation({sum}, 64, 1, /*inPlace=*/false, /*workspace=*/2048);
    const uint32_t last =
        b.operation(isSecondRead ? std::vector{full, first, second} : std::vector{full, first}, 64, 1);
    b.graph.values[last].kept = true;
    const Schedule order = originalSchedule(b.graph);
    const uint64_t budget = 2048 + 192;
    ASSERT_GT(evaluate(b.graph, order)->peakBytes, budget);
    const double without = evaluate(b.graph, order)->seconds, expected = isSecondRead ? 10 : 8;
    EXPECT_NEAR(*ExhaustiveSearch(b.graph, order, budget).run() - without, expected, 1e-9);
    EXPECT_NEAR(findTightestBound(b.graph, order, budget).seconds, expected, 1e-4);
  }
}

TEST(Bound, WhatRunsAgainBetweenTwoInstructionsHasAnOrder) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  // After `full` its operand is still there, and the result it had no room for is recomputed from that operand and
  // from `first`, whose workspace has no room for the operand. Each alone fits: the program asks for those two
  // operations.
  StepBuilder b;
  const uint32_t x = b.argument(64);
  const uint32_t first = b.operation({x}, 1024, 3, /*inPlace=*/false, /*workspace=*/4096);
  const uint32_t operand = b.operation({x}, 2048, 5);
  const uint32_t result = b.operation({operand, first}, 1024, 2);
  const uint32_t full = b.operation({operand}, 64, 1, /*inPlace=*/false, /*workspace=*/3072);
  const uint32_t last = b.operation({full, result}, 64, 1);
  b.graph.values[last].kept = true;
  const Schedule order = originalSchedule(b.graph);
  const uint64_t budget = 5248;
  const double without = evaluate(b.graph, order)->seconds;
  EXPECT_NEAR(*ExhaustiveSearch(b.graph, order, budget).run() - without, 3 + 5 + 2, 1e-9);
  const RecomputationBound bound = findTightestBound(b.graph, order, budget);
  EXPECT_NEAR(bound.seconds, 3 + 5 + 2, 1e-4);
  EXPECT_EQ(bound.kind, BoundKind::Exact);
  ASSERT_TRUE(bound.plan);
  EXPECT_LE(bound.plan->timeline.peakBytes, budget);
}

TEST(Bound, ResultsTakeThePlaceOfAnyOperandThatDies) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  // `inner` fits over one of its operands only. Not over the first: `outer` reads that one, too, and nothing makes it
  // again for less.
  StepBuilder b;
  const uint32_t x = b.argument(64);
  const uint32_t first = b.operation({x}, 1024, 5), second = b.operation({x}, 1024, 5);
  const uint32_t inner = b.operation({first, second}, 1024, 1, /*inPlace=*/true);
  const uint32_t outer = b.operation({first, inner}, 1024, 1, /*inPlace=*/true);
  const uint32_t full = b.operation({first, second}, 64, 1, /*inPlace=*/false, /*workspace=*/512);
  const uint32_t last = b.operation({full, outer}, 64, 1);
  b.graph.values[last].kept = true;
  const Schedule order = originalSchedule(b.graph);
  const uint64_t budget = 3 * 1024;
  const double without = evaluate(b.graph, order)->seconds;
  EXPECT_NEAR(*ExhaustiveSearch(b.graph, order, budget).run() - without, 2, 1e-9);
  const RecomputationBound bound = findTightestBound(b.graph, order, budget);
  EXPECT_NEAR(bound.seconds, 2, 1e-4);
  EXPECT_EQ(bound.kind, BoundKind::Exact);
}

TEST(Bound, SaysWhatItStandsOn) {
  RecomputationBound bound;
  bound.points = 160;
  bound.instructions = 571;
  EXPECT_EQ(describe(bound), "relaxation; bytes counted at 160 of 571 kernels; the solver's time was over");
  bound.isSolved = true;
  EXPECT_EQ(describe(bound), "relaxation; bytes counted at 160 of 571 kernels");
  bound.instructions = 160;
  bound.kind = BoundKind::WholeNumbers;
  EXPECT_EQ(describe(bound), "integer program");
  bound.leavesOutLoops = true;
  EXPECT_EQ(describe(bound), "integer program; what runs again in the rounds of loops counts nothing");
  bound.kind = BoundKind::Exact;
  EXPECT_EQ(describe(bound), "exact");
}

TEST(Bound, OfALargeStepIsTheRelaxation) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  StepGraph graph = chainStep(60, 64);
  const Schedule order = originalSchedule(graph);
  ASSERT_GT(order.size(), mostKernelsOfWholeNumbers);
  const Timeline timeline = *evaluate(graph, order);
  EXPECT_EQ(findTightestBound(graph, order, timeline.peakBytes / 2).kind, BoundKind::Relaxation);
  // Nothing is to be recomputed, and the plan that is known shows it.
  EXPECT_EQ(findTightestBound(graph, order, timeline.peakBytes, 0).kind, BoundKind::Exact);
}

TEST(Bound, OfAChainIsNearTheAnswer) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  StepGraph graph = chainStep(12, 64);
  const Schedule order = originalSchedule(graph);
  Front front(graph, order, {16});
  const uint64_t low = front.getSmallest().timeline.peakBytes, high = front.getLargest().timeline.peakBytes;
  const double whole = front.getLargest().timeline.seconds;
  for (unsigned k = 0; k <= 8; ++k) {
    const uint64_t budget = low + (high - low) * k / 8;
    RecomputationBound bound = boundRecomputation(graph, order, budget);
    ASSERT_TRUE(bound.isSolved);
    EXPECT_EQ(bound.points, order.size());
    const double ours = front.find(budget)->timeline.seconds - whole;
    EXPECT_GE(ours, bound.seconds - 1e-9 * whole);
    // A few values for 12 layers: shares of values are far from whole ones there.
    if (k >= 2)
      EXPECT_LE(ours, bound.seconds + 0.015 * whole) << "budget " << budget;
  }
}

TEST(Bound, SaysWhenNothingFits) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  StepGraph graph = chainStep(4, 64);
  const RecomputationBound bound = boundRecomputation(graph, originalSchedule(graph), findLowerBound(graph).bytes - 64);
  EXPECT_TRUE(bound.isInfeasible);
  EXPECT_EQ(bound.kind, BoundKind::Exact);
}

TEST(Rounding, PlansOfOneBudgetServeLargerOnes) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  StepGraph graph = chainStep(12, 64);
  const Schedule order = originalSchedule(graph);
  const uint64_t high = evaluate(graph, order)->peakBytes, half = high * 3 / 4;
  Baselines baselines(graph, order);
  EXPECT_EQ(baselines.findRounded(high), nullptr);
  ASSERT_TRUE(baselines.find(Strategy::None, high));
  EXPECT_EQ(baselines.findRounded(high), nullptr);
  std::optional<FittedSchedule> plan = baselines.find(Strategy::Rounding, half);
  ASSERT_TRUE(plan);
  ASSERT_NE(baselines.findRounded(half), nullptr);
  EXPECT_EQ(baselines.findRounded(half)->timeline.seconds, plan->timeline.seconds);
  EXPECT_EQ(baselines.findRounded(high)->timeline.seconds, plan->timeline.seconds);
  EXPECT_EQ(baselines.findRounded(plan->timeline.peakBytes - 1), nullptr);
}

TEST(Rounding, StaysWithinTheBudget) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  std::mt19937_64 random(22);
  unsigned found = 0;
  for (unsigned i = 0; i < 60; ++i) {
    StepGraph graph = randomStep(random, 3 + random() % 12);
    const Schedule order = originalSchedule(graph);
    Front front(graph, order, {8});
    const uint64_t low = front.getSmallest().timeline.peakBytes, high = front.getLargest().timeline.peakBytes;
    const uint64_t budget = low + (high - low) / 2;
    std::optional<FittedSchedule> plan = planByRounding(graph, order, budget);
    if (!plan)
      continue;
    ++found;
    std::optional<Timeline> timeline = evaluate(graph, plan->schedule);
    ASSERT_TRUE(timeline) << "step " << i;
    EXPECT_LE(timeline->peakBytes, budget) << "step " << i;
  }
  EXPECT_GE(found, 20u);
}

} // namespace
