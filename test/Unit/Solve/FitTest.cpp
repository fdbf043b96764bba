//===- FitTest.cpp - properties of schedules under a budget ---------------===//
//
// Random steps by the thousands: every schedule is valid, stays within its
// budget, and more bytes never cost time.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Portfolio/Fit.h"
#include "RandomSteps.h"
#include "lowtide/Solve/Portfolio/Methods.h"
#include "lowtide/Solve/Searches/Baselines.h"
#include "lowtide/Solve/Searches/Eviction.h"
#include "lowtide/Solve/Searches/Ordering.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

using namespace lowtide::solve;

namespace {

/// Bytes alive by brute force: every result of every execution from when it is made to its last reader.
uint64_t countPeak(const StepGraph &graph, const Schedule &schedule) {
  uint64_t peak = 0;
  std::vector<Buffer> buffers = listBuffers(graph, schedule);
  for (uint32_t now = 0; now <= schedule.size(); ++now) {
    uint64_t live = 0;
    for (const Buffer &buffer : buffers)
      if (buffer.begin <= now && now < buffer.end)
        live += alignTo(buffer.bytes, graph.alignment);
    peak = std::max(peak, live);
  }
  return peak;
}

TEST(Timeline, CountsAChain) {
  StepBuilder b;
  uint32_t x = b.argument(64);
  uint32_t y = b.operation({x}, 100, 1);       // 128
  uint32_t z = b.operation({y}, 100, 1, true); // over y
  uint32_t u = b.operation({z}, 64, 1, false, 64);
  b.graph.values[u].kept = true;
  std::optional<Timeline> timeline = evaluate(b.graph, originalSchedule(b.graph));
  ASSERT_TRUE(timeline);
  EXPECT_THAT(timeline->live, testing::ElementsAre(128, 128, 256, 64));
  EXPECT_EQ(timeline->peakBytes, 256u);
  EXPECT_EQ(timeline->peakAt, 2u);
  EXPECT_EQ(findLowerBound(b.graph).bytes, 256u);
}

TEST(Timeline, RefusesWhatIsNotValid) {
  StepBuilder b;
  uint32_t w = b.argument(64);
  uint32_t y = b.operation({w}, 64, 1);
  uint32_t g = b.operation({y}, 64, 1);
  b.update(w, g);
  EXPECT_TRUE(evaluate(b.graph, Schedule{0, 1, 2}));
  EXPECT_TRUE(evaluate(b.graph, Schedule{0, 0, 1, 2}));
  EXPECT_FALSE(evaluate(b.graph, Schedule{1, 0, 2}));    // reads what is not there
  EXPECT_FALSE(evaluate(b.graph, Schedule{0, 1}));       // an operation is missing
  EXPECT_FALSE(evaluate(b.graph, Schedule{0, 1, 2, 0})); // reads an updated argument
  EXPECT_FALSE(evaluate(b.graph, Schedule{0, 1, 2, 2})); // updates twice
}

TEST(Timeline, AgreesWithItsBuffers) {
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 2000; ++i) {
    StepGraph graph = randomStep(random, 2 + random() % 20);
    std::optional<Timeline> timeline = evaluate(graph, originalSchedule(graph));
    ASSERT_TRUE(timeline) << "step " << i;
    EXPECT_EQ(timeline->peakBytes, countPeak(graph, originalSchedule(graph))) << "step " << i;
    EXPECT_GE(timeline->peakBytes, findLowerBound(graph).bytes) << "step " << i;
  }
}

TEST(Ordering, IsValidAndNeverWorse) {
  std::mt19937_64 random(2);
  for (unsigned i = 0; i < 2000; ++i) {
    StepGraph graph = randomStep(random, 2 + random() % 30);
    Ordering order = findOrder(graph);
    std::optional<Timeline> before = evaluate(graph, originalSchedule(graph)), after = evaluate(graph, order.schedule);
    ASSERT_TRUE(after) << "step " << i;
    EXPECT_EQ(order.schedule.size(), graph.operations.size());
    EXPECT_LE(after->peakBytes, before->peakBytes) << "step " << i;
  }
}

TEST(Ordering, UpdatesOfTheStepBeforeStandWhereTheyAreNeeded) {
  StepBuilder b;
  const uint32_t weight = b.argument(64), gradient = b.argument(64), x = b.argument(64);
  b.update(weight, gradient);
  const uint32_t updated = b.graph.operations.back().writes.front();
  const uint32_t y = b.operation({x}, 64, 1), z = b.operation({y}, 64, 1, true);
  b.graph.values[b.operation({z, updated}, 64, 1, true)].kept = true;
  EXPECT_THAT(findOrder(b.graph).schedule, testing::ElementsAre(1, 2, 0, 3));
  // What no operation needs stays, and so does what frees bytes.
  StepBuilder last;
  const uint32_t w = last.argument(64), g = last.operation({w}, 64, 1);
  last.update(w, g);
  last.graph.values[last.operation({last.argument(64)}, 64, 1)].kept = true;
  EXPECT_THAT(findOrder(last.graph).schedule, testing::ElementsAre(0, 1, 2));
}

TEST(Fit, StaysWithinTheBudgetAndIsMonotone) {
  std::mt19937_64 random(3);
  for (unsigned i = 0; i < countTrials(300); ++i) {
    StepGraph graph = randomStep(random, 2 + random() % 25);
    Front front(graph, originalSchedule(graph), {8});
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
      std::optional<Timeline> timeline = evaluate(graph, plan->schedule);
      ASSERT_TRUE(timeline) << "step " << i << " budget " << budget;
      EXPECT_LE(timeline->peakBytes, budget) << "step " << i;
      EXPECT_EQ(timeline->peakBytes, countPeak(graph, plan->schedule)) << "step " << i;
      EXPECT_LE(timeline->seconds, seconds) << "step " << i << " budget " << budget;
      seconds = timeline->seconds;
    }
    EXPECT_EQ(front.find(high)->timeline.recomputed, 0u) << "step " << i;
  }
}

TEST(Fit, IsNeverAboveABaseline) {
  std::mt19937_64 random(4);
  for (unsigned i = 0; i < countTrials(100); ++i) {
    StepGraph graph = randomStep(random, 2 + random() % 25);
    const Schedule order = originalSchedule(graph);
    Front front(graph, order, {8});
    for (auto *plan : {&planSegments, &planCuts})
      for (const FittedSchedule &baseline : (*plan)(graph, order)) {
        std::optional<Timeline> timeline = evaluate(graph, baseline.schedule);
        ASSERT_TRUE(timeline) << "step " << i << " " << baseline.method;
        const FittedSchedule *ours = front.find(timeline->peakBytes);
        ASSERT_NE(ours, nullptr) << "step " << i;
        EXPECT_LE(ours->timeline.seconds, timeline->seconds) << "step " << i << " " << baseline.method;
      }
    if (std::optional<FittedSchedule> greedy = planGreedily(graph, order, front.getSmallest().timeline.peakBytes))
      EXPECT_TRUE(evaluate(graph, greedy->schedule)) << "step " << i;
  }
}

TEST(Fit, DoesWithoutAnyMethod) {
  std::mt19937_64 random(5);
  std::vector<std::string> names;
  for (const MethodName &method : listMethods())
    names.emplace_back(method.name);
  // Each alone, and all of them: then there is the order of the program and nothing else.
  std::vector<std::vector<std::string>> choices;
  for (const std::string &name : names)
    choices.push_back({name});
  choices.push_back(names);
  for (unsigned i = 0; i < 5; ++i) {
    StepGraph graph = randomStep(random, 20 + random() % 20);
    for (const std::vector<std::string> &without : choices) {
      FitOptions options{.levels = 4};
      options.without = without;
      Front front(graph, originalSchedule(graph), options);
      double seconds = 1e300;
      for (const FittedSchedule *plan : front.getPareto()) {
        EXPECT_EQ(plan->timeline.peakBytes, countPeak(graph, plan->schedule)) << "step " << i;
        EXPECT_LT(plan->timeline.seconds, seconds) << "step " << i << " without " << without.front();
        seconds = plan->timeline.seconds;
        // Its own bytes are a budget, those of the smallest too, wherever it stands.
        EXPECT_NE(front.find(plan->timeline.peakBytes), nullptr) << "step " << i << " without " << without.front();
      }
      EXPECT_EQ(front.getPareto().back()->timeline.recomputed, 0u) << "step " << i;
      if (without.size() > 1)
        EXPECT_EQ(front.getSmallest().schedule, originalSchedule(graph)) << "step " << i;
    }
  }
}

TEST(Fit, AsksEveryMethodByItsName) {
  // 40 layers under half their bytes: the plan is another one without what found it.
  StepGraph graph = chainStep(40, 64);
  const Schedule order = originalSchedule(graph);
  const std::vector<MethodName> methods = listMethods();
  std::set<std::string_view> names;
  for (const MethodName &method : methods) {
    EXPECT_TRUE(names.insert(method.name).second) << method.name;
    EXPECT_FALSE(method.summary.empty()) << method.name;
  }
  Front whole(graph, order);
  FitOptions options;
  for (const MethodName &method : methods)
    if (method.name != "segments")
      options.without.emplace_back(method.name);
  Front segments(graph, order, options);
  const uint64_t half = whole.getLargest().timeline.peakBytes / 2;
  const FittedSchedule *plan = segments.find(half);
  ASSERT_NE(plan, nullptr);
  EXPECT_STREQ(plan->method, "segments");
  EXPECT_LE(whole.find(half)->timeline.seconds, plan->timeline.seconds);
}

TEST(Fit, ReachesTheRootOfAChain) {
  // 64 layers of two tensors: nearly nothing needs to stay.
  StepGraph graph = chainStep(64, 64);
  Front front(graph, originalSchedule(graph));
  EXPECT_GE(front.getLargest().timeline.peakBytes, 128u * 64);
  EXPECT_LE(front.getSmallest().timeline.peakBytes, 12u * 64);
  // Half of it is free but for the cheap half.
  const FittedSchedule *half = front.find(front.getLargest().timeline.peakBytes / 2 + 4 * 64);
  ASSERT_NE(half, nullptr);
  EXPECT_LE(half->timeline.seconds, front.getLargest().timeline.seconds * 1.04);
}

} // namespace
