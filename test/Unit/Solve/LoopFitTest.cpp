//===- LoopFitTest.cpp - steps with loops stay within their budgets -------===//
//
// Random steps of which some operations are loops around other random steps.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Portfolio/LoopFit.h"
#include "RandomSteps.h"
#include "lowtide/Solve/Searches/Ordering.h"
#include "gtest/gtest.h"

using namespace lowtide::solve;

namespace {

/// One round: a beginning that makes a part of a slice, then the operations of `step`.
StepGraph asBody(StepGraph step) {
  for (StepValue &value : step.values)
    value.producer += value.producer >= 0;
  const uint32_t token = step.values.size();
  step.values.push_back({0, 0, false, true});
  step.values.push_back({640, 0, false, false});
  for (std::vector<StepOperation> *list : {&step.operations, &step.reruns})
    for (StepOperation &operation : *list)
      operation.reads.push_back(token);
  StepOperation round;
  round.writes = {token, token + 1};
  round.overwrites.resize(2);
  round.isForward = round.runsOnce = true;
  round.seconds = 1;
  step.operations.front().reads.push_back(token + 1);
  step.operations.insert(step.operations.begin(), round);
  return step;
}

void addLoops(std::mt19937_64 &random, StepGraph &step, unsigned depth) {
  const unsigned count = random() % 3;
  std::vector<uint32_t> chosen;
  for (unsigned i = 0; i < count; ++i)
    chosen.push_back(1 + random() % (step.operations.size() - 1));
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  for (uint32_t number : chosen) {
    StepGraph body = asBody(randomStep(random, 2 + random() % 10));
    if (depth)
      addLoops(random, body, depth - 1);
    std::optional<Timeline> round = evaluate(body, originalSchedule(body));
    ASSERT_TRUE(round);
    StepOperation &operation = step.operations[number];
    operation.runsOnce = true;
    operation.reruns.clear();
    operation.workspaceBytes = round->peakBytes;
    operation.seconds = 3 * round->seconds;
    operation.flops = 3 * round->flops;
    step.loops.push_back({number, 3, std::move(body)});
  }
}

/// The figures of a plan are those of its schedules, and of its buffers.
void expectTrue(const StepGraph &graph, const FittedSchedule &plan) {
  ASSERT_EQ(plan.bodies.size(), graph.loops.size());
  for (size_t i = 0; i < graph.loops.size(); ++i)
    expectTrue(graph.loops[i].body, plan.bodies[i]);
  std::optional<Timeline> timeline = evaluate(withBodies(graph, plan.bodies), plan.schedule);
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->peakBytes, plan.timeline.peakBytes);
  EXPECT_EQ(timeline->seconds, plan.timeline.seconds);
  EXPECT_EQ(liveBound(listBuffers(graph, plan), 64), plan.timeline.peakBytes);
}

} // namespace

TEST(LoopFit, StaysWithinTheBudgetAndIsMonotone) {
  std::mt19937_64 random(11);
  for (unsigned i = 0; i < countTrials(150); ++i) {
    StepGraph graph = randomStep(random, 4 + random() % 15);
    addLoops(random, graph, 1);
    LoopFront front(graph, {6, 2});
    ASSERT_TRUE(front.isValid());
    const uint64_t low = front.getSmallest().timeline.peakBytes, high = front.getLargest().timeline.peakBytes;
    EXPECT_LE(low, high);
    EXPECT_GE(low, findLowerBound(graph).bytes);
    if (low)
      EXPECT_EQ(front.find(low - 1), nullptr);
    double seconds = 1e300;
    for (unsigned k = 0; k <= 10; ++k) {
      const uint64_t budget = low + (high - low) * k / 10;
      const FittedSchedule *plan = front.find(budget);
      ASSERT_NE(plan, nullptr) << "step " << i << " budget " << budget;
      expectTrue(graph, *plan);
      EXPECT_LE(plan->timeline.peakBytes, budget) << "step " << i;
      EXPECT_LE(plan->timeline.seconds, seconds) << "step " << i << " budget " << budget;
      seconds = plan->timeline.seconds;
    }
    EXPECT_EQ(front.find(high)->timeline.recomputed, 0u) << "step " << i;
    for (const FittedSchedule *plan : front.getPareto())
      expectTrue(graph, *plan);
  }
}

TEST(LoopFit, WithoutLoopsIsFit) {
  std::mt19937_64 random(12);
  for (unsigned i = 0; i < 50; ++i) {
    StepGraph graph = randomStep(random, 2 + random() % 20);
    Front plain(graph, originalSchedule(graph), {6});
    LoopFront front(graph, {6});
    const uint64_t low = plain.getSmallest().timeline.peakBytes, high = plain.getLargest().timeline.peakBytes;
    for (unsigned k = 0; k <= 10; ++k) {
      const uint64_t budget = low + (high - low) * k / 10;
      EXPECT_EQ(front.find(budget)->timeline.seconds, plain.find(budget)->timeline.seconds) << "step " << i;
    }
  }
}

TEST(LoopFit, OrdersBodiesFirst) {
  std::mt19937_64 random(13);
  for (unsigned i = 0; i < 200; ++i) {
    StepGraph graph = randomStep(random, 4 + random() % 15);
    addLoops(random, graph, 1);
    Ordering order = findOrder(graph);
    std::optional<Timeline> before = evaluate(graph, originalSchedule(graph));
    EXPECT_LE(order.timeline.peakBytes, before->peakBytes) << "step " << i;
    if (!graph.loops.empty())
      expectTrue(graph, order);
  }
}
