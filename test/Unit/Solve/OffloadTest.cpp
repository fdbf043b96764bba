//===- OffloadTest.cpp - values that wait in another memory ---------------===//
//
// A schedule whose lanes are counted by hand; random steps by the hundreds: what is found is valid, stays within its
// budget and its room, and is no slower than recomputation alone by the same count.
//
//===----------------------------------------------------------------------===//
#include "RandomSteps.h"
#include "lowtide/Solve/Algorithms/LinearProgram.h"
#include "lowtide/Solve/Bound/RecomputationBound.h"
#include "lowtide/Solve/Portfolio/OffloadBaselines.h"
#include "lowtide/Solve/Searches/Blocks.h"
#include <array>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lowtide::solve;

namespace {

constexpr uint64_t page = 4096;
/// Room for whatever waits.
constexpr uint64_t everything[] = {UINT64_MAX};

/// Seconds of a lane of 64 bytes a second that takes a tenth of a second to begin.
constexpr Lane slow{0.1, 64};

/// Values may wait in a memory with such lanes.
void addLoads(StepGraph &graph, const MemoryLanes &lanes) {
  graph.memories = {lanes};
  graph.memories.front().alignment = page;
  lowtide::solve::addLoads(graph, 1);
}

/// x → a → b → c, then d reads c and a; all of 64 bytes, a second each.
StepGraph waitingStep() {
  StepBuilder b;
  uint32_t x = b.argument(64);
  uint32_t a = b.operation({x}, 64, 1);
  uint32_t middle = b.operation({a}, 64, 1);
  uint32_t c = b.operation({middle}, 64, 1);
  uint32_t d = b.operation({c, a}, 64, 1);
  b.graph.values[d].kept = true;
  addLoads(b.graph, {slow, slow});
  return std::move(b.graph);
}

FittedSchedule makePlan(const StepGraph &graph, Schedule schedule) {
  FittedSchedule plan;
  plan.timeline = evaluate(graph, schedule).value();
  plan.schedule = std::move(schedule);
  return plan;
}

TEST(Lanes, AreSimulated) {
  const StepGraph graph = waitingStep();
  ASSERT_THAT(graph.operations[0].loads, testing::ElementsAre(0u));
  EXPECT_TRUE(graph.operations[3].loads.empty()); // an output stays
  const uint32_t load = graph.operations.size();
  // a is there at 1 and has left at 2.1; its load begins when c is there, at 3, and ends at 4.1.
  LaneTimes times = simulateLanes(graph, makePlan(graph, {0, 1, 2, load, 3}));
  EXPECT_DOUBLE_EQ(times.seconds, 5.1);
  EXPECT_NEAR(times.waitedSeconds, 1.1, 1e-12);
  EXPECT_EQ(times.sum().storedBytes, 64u);
  EXPECT_EQ(times.sum().loadedBytes, 64u);
  EXPECT_EQ(times.sum().loads, 1u);
  EXPECT_EQ(times.memories.front().roomBytes, page);
  // One instruction earlier it begins at 2.1 and ends at 3.2.
  times = simulateLanes(graph, makePlan(graph, {0, 1, load, 2, 3}));
  EXPECT_DOUBLE_EQ(times.seconds, 4.2);
  EXPECT_NEAR(times.waitedSeconds, 0.2, 1e-12);
  // The store of 1.1 seconds holds a's bytes until 2.1: where b and c leave no room for it, c waits for that.
  const FittedSchedule late = makePlan(graph, {0, 1, 2, load, 3});
  EXPECT_DOUBLE_EQ(simulateLanes(graph, late, 192).seconds, 5.1);
  EXPECT_NEAR(simulateLanes(graph, late, 191).seconds, 5.2, 1e-12);
  EXPECT_NEAR(simulateLanes(graph, late, 191).waitedSeconds, 1.2, 1e-12);
  // Where a comes back at once, its load waits for the store in any case, and c for neither.
  EXPECT_NEAR(simulateLanes(graph, makePlan(graph, {0, 1, load, 2, 3}), 191).seconds, 4.2, 1e-12);
  // Without a load nothing leaves.
  times = simulateLanes(graph, makePlan(graph, {0, 1, 2, 3}));
  EXPECT_DOUBLE_EQ(times.seconds, 4);
  EXPECT_EQ(times.sum().storedBytes + times.memories.front().roomBytes, 0u);
}

/// Two tensors of 64 bytes are loaded from memories of different rates, and read by one operation each; what the first
/// makes is stored in the slower memory.
TEST(Lanes, MemoriesDoNotHoldEachOtherUp) {
  auto makeStep = [](uint32_t second) {
    StepBuilder b;
    const uint32_t u = b.argument(0), v = b.argument(0);
    const uint32_t first = b.operation({u}, 64, 0), other = b.operation({v}, 64, 0);
    const uint32_t a = b.operation({first}, 64, 1), c = b.operation({other}, 64, 1);
    const uint32_t away = b.operation({a}, 0, 0);
    for (uint32_t load : {0, 1})
      b.graph.operations[load].kind = StepOperation::Kind::Loads;
    b.graph.operations[4].kind = StepOperation::Kind::Stores;
    b.graph.operations[1].memory = b.graph.operations[4].memory = second;
    b.graph.values[c].kept = b.graph.values[away].kept = true;
    b.graph.memories = {{{0, 64}, {0, 64}}, {{0, 16}, {0, 16}}};
    return std::move(b.graph);
  };
  const StepGraph apart = makeStep(1), together = makeStep(0);
  const FittedSchedule plan = makePlan(apart, {0, 1, 2, 3, 4});
  // The fast load ends at 1, its reader at 2; the slow one ends at 4, its reader at 5, and the store, from 2 on, at 6.
  const LaneTimes times = simulateLanes(apart, plan);
  EXPECT_DOUBLE_EQ(times.seconds, 6);
  ASSERT_EQ(times.memories.size(), 2u);
  EXPECT_EQ(times.memories[0].loadedBytes, 64u);
  EXPECT_EQ(times.memories[0].storedBytes, 0u);
  EXPECT_EQ(times.memories[1].loadedBytes, 64u);
  EXPECT_EQ(times.memories[1].storedBytes, 64u);
  EXPECT_EQ(times.sum().loads, 2u);
  EXPECT_DOUBLE_EQ(boundLaneSeconds(apart, plan), 4);
  // In one memory one load follows the other: 1, 2, readers at 2 and 3.
  EXPECT_DOUBLE_EQ(simulateLanes(together, makePlan(together, {0, 1, 2, 3, 4})).seconds, 3);
}

TEST(Lanes, LoadsAreMovedUpWhereThereIsRoom) {
  const StepGraph graph = waitingStep();
  const uint32_t load = graph.operations.size();
  const FittedSchedule late = makePlan(graph, {0, 1, 2, load, 3});
  ASSERT_EQ(late.timeline.peakBytes, 192u); // c, a and d
  EXPECT_FALSE(findPrefetched(graph, late, 191, {}, 100));
  EXPECT_FALSE(findPrefetched(graph, late, 192, {}, 4.2)); // no faster than that
  const PackedPlan early = findPrefetched(graph, late, 192, {}, 100).value();
  EXPECT_EQ(early.plan.schedule, (Schedule{0, 1, load, 2, 3}));
  EXPECT_DOUBLE_EQ(early.plan.timeline.seconds, 4.2);
  EXPECT_EQ(early.arenaBytes, 192u);
  EXPECT_EQ(early.plan.timeline.loaded, 1u);
}

/// A load of what lies in the other memory (64 bytes), y, then z reads it again with y: the load may run twice.
TEST(Lanes, LoadsOfArgumentsMayRunAgain) {
  StepBuilder b;
  uint32_t w = b.argument(0);
  uint32_t loaded = b.operation({w}, 64, 1);
  b.graph.operations[0].kind = StepOperation::Kind::Loads;
  uint32_t y = b.operation({loaded}, 64, 1);
  uint32_t large = b.operation({y}, 640, 1);
  uint32_t few = b.operation({large}, 64, 1);
  uint32_t z = b.operation({few, loaded}, 64, 1);
  b.graph.values[z].kept = true;
  addLoads(b.graph, {slow, slow});
  const StepGraph graph = std::move(b.graph);
  EXPECT_TRUE(graph.operations[0].loads.empty()); // it is there already
  const FittedSchedule once = makePlan(graph, {0, 1, 2, 3, 4}), twice = makePlan(graph, {0, 1, 2, 3, 0, 4});
  EXPECT_EQ(once.timeline.peakBytes, 768u);
  EXPECT_EQ(twice.timeline.peakBytes, 704u);
  EXPECT_EQ(twice.timeline.recomputed, 1u);
  EXPECT_EQ(twice.timeline.loaded, 1u);
  // Nothing is stored for it. The second load begins when `few` is there, at 4.1, and ends at 5.2.
  const LaneTimes times = simulateLanes(graph, twice);
  EXPECT_EQ(times.sum().loads, 2u);
  EXPECT_EQ(times.sum().storedBytes + times.memories.front().roomBytes, 0u);
  EXPECT_DOUBLE_EQ(times.seconds, 6.2);
  EXPECT_DOUBLE_EQ(countComputeSeconds(graph, twice), 4);
  // With prices it costs what copies cost; nowhere less than nothing.
  bool isPriced = false;
  for (const StepGraph &offload : listOffloadGraphs(graph)) {
    EXPECT_GT(offload.operations[0].seconds, 0);
    isPriced |= offload.operations[0].seconds < slow.getSeconds(64);
  }
  EXPECT_TRUE(isPriced);
}

TEST(Offload, TakesWhatIsCheaper) {
  // A lane that is fast: what takes ten seconds to compute is loaded, and less memory is needed than by recomputation.
  StepGraph graph = chainStep(12, 6400);
  const StepGraph plain = graph;
  addLoads(graph, {{1e-3, 6400}, {1e-3, 6400}});
  const PackingOptions options;
  SolvedSteps solved(options);
  SolvedStep &alone = solved.get(plain);
  const uint64_t least = alone.plans.getSmallest().arenaBytes, most = alone.front.getLargest().timeline.peakBytes;
  for (uint64_t budget : {least, (least + most) / 2}) {
    const PackedPlan *recomputed = alone.plans.find(budget);
    ASSERT_TRUE(recomputed);
    double best = recomputed->plan.timeline.seconds;
    for (const StepGraph &offload : listOffloadGraphs(graph)) {
      SolvedStep &step = solved.get(offload);
      if (std::optional<PackedPlan> found = findFastestLanes(step, budget, everything, options, best))
        best = found->plan.timeline.seconds;
    }
    EXPECT_LT(best, recomputed->plan.timeline.seconds) << budget;
  }
}

/// A random step whose values may wait elsewhere, with one rate of loads and stores.
static StepGraph randomStepWithLoads(unsigned seed) {
  std::mt19937_64 random(seed);
  StepGraph graph = randomStep(random, 4 + seed % 12);
  const double rate = double(1 << random() % 12);
  addLoads(graph, {{0.1, rate}, {0.1, rate}});
  return graph;
}

TEST(Offload, RandomStepsStayWithinTheirBudgets) {
  unsigned moved = 0, hoisted = 0;
  for (unsigned seed = 0; seed < countTrials(40); ++seed) {
    SCOPED_TRACE(seed);
    const StepGraph graph = randomStepWithLoads(seed);
    PackingOptions options;
    options.effort = 100'000;
    for (const StepGraph &offload : listOffloadGraphs(graph)) {
      SolvedSteps solved(options);
      SolvedStep &step = solved.get(offload);
      if (!step.front.isValid())
        continue;
      const uint64_t least = step.plans.getSmallest().arenaBytes, most = step.front.getLargest().timeline.peakBytes;
      for (uint64_t budget : {least, least + (most - std::min(most, least)) / 2}) {
        const PackedPlan *found = step.plans.find(budget);
        ASSERT_TRUE(found);
        ASSERT_LE(found->arenaBytes, budget);
        // Its numbers are those of the graph without prices.
        ASSERT_TRUE(evaluate(graph, found->plan.schedule));
        const LaneTimes before = simulateLanes(step.graph, found->plan);
        // Loads of what was found, in its own addresses at least.
        const PackedPlan early =
            findPrefetched(step.graph, found->plan, budget, options, before.seconds).value_or(*found);
        std::optional<Timeline> timeline = evaluate(graph, early.plan.schedule);
        ASSERT_TRUE(timeline);
        EXPECT_LE(timeline->peakBytes, budget);
        EXPECT_LE(pack(listBuffers(graph, early.plan), options).arenaBytes, budget);
        EXPECT_LE(simulateLanes(step.graph, early.plan).seconds, before.seconds + 1e-9);
        EXPECT_GE(simulateLanes(step.graph, early.plan).seconds,
                  boundLaneSeconds(step.graph, found->plan) * (1 - 1e-9));
        EXPECT_TRUE(std::is_permutation(early.plan.schedule.begin(), early.plan.schedule.end(),
                                        found->plan.schedule.begin(), found->plan.schedule.end()));
        moved += found->plan.timeline.loaded > 0;
        hoisted += early.plan.schedule != found->plan.schedule;
        // With less room, less is stored.
        if (const uint64_t room = before.memories.front().roomBytes) {
          const StepGraph less = restrictLoads(graph, offload, found->plan, room / 2);
          SolvedStep &restricted = solved.get(less);
          if (const PackedPlan *fewer = restricted.plans.find(most)) {
            ASSERT_TRUE(evaluate(graph, fewer->plan.schedule));
          }
        }
      }
    }
  }
  EXPECT_GT(moved, countTrials(30));
  EXPECT_GT(hoisted, countTrials(8));
}

/// Of 64 bytes each, a is read by b and at the end by z, b by c and by the operation before z. Both wait, b for a
/// shorter time.
TEST(Offload, WhatDoesNotFitWaitsInTheSecondMemory) {
  StepBuilder step;
  const uint32_t x = step.argument(64);
  const uint32_t a = step.operation({x}, 64, 1), b = step.operation({a}, 64, 1), c = step.operation({b}, 64, 1),
                 y = step.operation({c, b}, 64, 1), z = step.operation({y, a}, 64, 1);
  step.graph.values[z].kept = true;
  step.graph.memories = {{slow, slow, page}, {{0.2, 32}, {0.2, 32}, 2 * page}};
  addLoads(step.graph, 2);
  // Two loads for each of the four that may wait, from the first memory and from the second.
  ASSERT_THAT(step.graph.operations[1].loads, testing::ElementsAre(2u, 3u));
  const std::vector<StepGraph> offloads = listOffloadGraphs(step.graph);
  const StepGraph &near = offloads.back();
  EXPECT_THAT(near.operations[0].reruns, testing::ElementsAre(0u));
  const uint32_t numOps = step.graph.operations.size();
  const FittedSchedule plan = makePlan(near, {0, 1, 2, numOps + 2, 3, numOps, 4});
  EXPECT_TRUE(fitsRooms(near, plan, std::array<uint64_t, 1>{2 * page}));
  EXPECT_FALSE(fitsRooms(near, plan, std::array<uint64_t, 2>{page, UINT64_MAX}));
  const StepGraph spread = spreadLoads(near, plan, page);
  EXPECT_THAT(spread.operations[0].reruns, testing::ElementsAre(1u));
  EXPECT_THAT(spread.operations[1].reruns, testing::ElementsAre(2u));
  const FittedSchedule apart = makePlan(spread, {0, 1, 2, numOps + 2, 3, numOps + 1, 4});
  EXPECT_TRUE(fitsRooms(spread, apart, std::array<uint64_t, 2>{page, 2 * page}));
  EXPECT_FALSE(fitsRooms(spread, apart, std::array<uint64_t, 2>{page, page}));
  // The same schedule with the loads of the other graph.
  const PackedPlan packed{plan, 256, 256};
  const std::optional<PackedPlan> fitting = fitIntoRooms(near, packed, std::array<uint64_t, 2>{page, 2 * page});
  ASSERT_TRUE(fitting);
  EXPECT_EQ(fitting->plan.schedule, apart.schedule);
  EXPECT_EQ(fitting->arenaBytes, 256u);
  EXPECT_DOUBLE_EQ(fitting->plan.timeline.seconds, 8.4);
  EXPECT_FALSE(fitIntoRooms(near, packed, std::array<uint64_t, 2>{page, page}));
  EXPECT_FALSE(fitIntoRooms(near, packed, std::array<uint64_t, 1>{page}));
  EXPECT_EQ(fitIntoRooms(near, packed, std::array<uint64_t, 1>{2 * page})->plan.schedule, plan.schedule);
  // b is there at 2 and has left at 3.1, when c has been there for 0.1; it is back at 4.2. a has left at 3.2; its load
  // begins when y is there, at 5.2, and ends at 7.4.
  const LaneTimes times = simulateLanes(spread, apart);
  EXPECT_DOUBLE_EQ(times.seconds, 8.4);
  for (const LaneTraffic &memory : times.memories) {
    EXPECT_EQ(memory.loads, 1u);
    EXPECT_EQ(memory.storedBytes, 64u);
  }
  EXPECT_EQ(times.memories[1].roomBytes, 2 * page);
}

TEST(Offload, MoreBytesNeverCostTime) {
  unsigned chosen = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const StepGraph graph = randomStepWithLoads(seed);
    PackingOptions options;
    options.effort = 100'000;
    SolvedSteps solved(options);
    for (const StepGraph &offload : listOffloadGraphs(graph)) {
      SolvedStep &step = solved.get(offload);
      if (!step.front.isValid())
        continue;
      const uint64_t least = step.plans.getSmallest().arenaBytes, most = step.front.getLargest().timeline.peakBytes,
                     room = least;
      double before = INFINITY, roomier = INFINITY;
      for (unsigned i = 0; i <= 6; ++i) {
        const uint64_t budget = least + (std::max(most, least) - least) * i / 6;
        const std::optional<PackedPlan> narrow = findFastestLanes(step, budget, {&room, 1}, options, INFINITY),
                                        wide = findFastestLanes(step, budget, everything, options, INFINITY);
        ASSERT_TRUE(wide);
        EXPECT_LE(wide->arenaBytes, budget);
        EXPECT_LE(wide->plan.timeline.seconds, roomier) << budget;
        EXPECT_NEAR(wide->plan.timeline.seconds, simulateLanes(graph, wide->plan, budget).seconds, 1e-9);
        roomier = wide->plan.timeline.seconds;
        chosen += wide->plan.timeline.loaded > 0;
        if (!narrow)
          continue;
        EXPECT_LE(simulateLanes(graph, narrow->plan).memories.front().roomBytes, room);
        EXPECT_LE(narrow->plan.timeline.seconds, before) << budget;
        EXPECT_GE(narrow->plan.timeline.seconds, wide->plan.timeline.seconds);
        before = narrow->plan.timeline.seconds;
      }
    }
  }
  EXPECT_GT(chosen, 20u);
}

/// a and b wait: 128 and 64 bytes, a second each. c, of 256, is in the way.
StepGraph twoThatWait() {
  StepBuilder b;
  uint32_t x = b.argument(64);
  uint32_t first = b.operation({x}, 128, 1);
  uint32_t second = b.operation({first}, 64, 1);
  uint32_t large = b.operation({second}, 256, 1);
  uint32_t few = b.operation({large}, 64, 1);
  for (StepOperation &operation : b.graph.operations)
    operation.isForward = true;
  for (StepValue &value : b.graph.values)
    value.isForward = true;
  uint32_t d = b.operation({few, second}, 64, 1);
  uint32_t e = b.operation({d, first}, 64, 1);
  b.graph.values[e].kept = true;
  addLoads(b.graph, {{0.5, 64}, {0.5, 64}});
  return std::move(b.graph);
}

TEST(OffloadBaselines, StoreWhatTheySay) {
  const StepGraph graph = twoThatWait();
  const FittedSchedule whole = makePlan(graph, originalSchedule(graph));
  ASSERT_EQ(whole.timeline.peakBytes, 512u); // first, second, large, few
  const OffloadBaselines baselines(graph, whole, {});
  auto find = [&](OffloadStrategy strategy, uint64_t budget, uint64_t room = 2 * page) -> Schedule {
    const std::optional<PackedPlan> plan = baselines.find(strategy, budget, {&room, 1}, INFINITY);
    if (!plan)
      return {};
    EXPECT_LE(plan->arenaBytes, budget);
    EXPECT_NEAR(plan->plan.timeline.seconds, simulateLanes(graph, plan->plan, budget).seconds, 1e-12);
    return plan->plan.schedule;
  };
  // Loads are numbered by what they make: first's is 6, second's 7.
  EXPECT_EQ(find(OffloadStrategy::StoreAll, 320), (Schedule{0, 1, 2, 3, 7, 6, 4, 5}));
  EXPECT_EQ(find(OffloadStrategy::StoreAll, 319), Schedule());
  EXPECT_EQ(find(OffloadStrategy::StoreAll, 320, page), Schedule()); // two pages are needed
  EXPECT_EQ(find(OffloadStrategy::StoreLargest, 384), (Schedule{0, 1, 2, 3, 6, 4, 5}));
  EXPECT_EQ(find(OffloadStrategy::StoreLargest, 448, page).size(), 7u);
  EXPECT_EQ(find(OffloadStrategy::StoreLargest, 320).size(), 8u);
  // With room for everything nothing is stored, but for those that always store.
  EXPECT_EQ(find(OffloadStrategy::StoreLargest, 512), originalSchedule(graph));
  EXPECT_EQ(find(OffloadStrategy::StoreAll, 512).size(), 8u);
  // Two layers with a value each.
  ASSERT_EQ(findBlocks(graph, whole.schedule).size(), 2u);
  EXPECT_EQ(find(OffloadStrategy::StoreLayers, 384).size(), 7u);
  EXPECT_EQ(find(OffloadStrategy::StoreLayers, 320).size(), 8u);
  EXPECT_EQ(find(OffloadStrategy::StoreFractions, 384).size(), 8u);
  // Nothing that is no faster than what is known.
  EXPECT_FALSE(baselines.find(OffloadStrategy::StoreAll, 512, everything, 6));
}

TEST(LaneBound, IsWhatOneSmallStepTakes) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  // All of it is there at once; c, a and d never are in 64 bytes.
  const StepGraph graph = waitingStep();
  const Schedule order = originalSchedule(graph);
  EXPECT_DOUBLE_EQ(boundLanes(graph, order, 256).seconds, 0);
  EXPECT_TRUE(boundLanes(graph, order, 64).isInfeasible);
  // What lies in the other memory passes the lane, whatever else happens.
  StepBuilder b;
  uint32_t w = b.argument(0);
  uint32_t loaded = b.operation({w}, 640, 1);
  b.graph.operations[0].kind = StepOperation::Kind::Loads;
  uint32_t y = b.operation({loaded}, 64, 1);
  b.graph.values[y].kept = true;
  addLoads(b.graph, {slow, slow});
  const RecomputationBound bound = boundLanes(b.graph, originalSchedule(b.graph), 1 << 20, 10.1);
  EXPECT_NEAR(bound.seconds, slow.getSeconds(640) - 1, 1e-6);
  EXPECT_EQ(bound.kind, BoundKind::Relaxation);
  EXPECT_EQ(boundLanes(b.graph, originalSchedule(b.graph), 1 << 20, 9.1).kind, BoundKind::Exact);
}

TEST(LaneBound, NoPlanInTwoMemoriesTakesLess) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  unsigned tight = 0, spread = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    StepGraph graph = randomStep(random, 3 + seed % 6);
    const double rate = double(1 << random() % 12);
    graph.memories = {{{0.1, rate}, {0.1, rate}}, {{0.1, rate / 2}, {0.2, rate / 4}}};
    lowtide::solve::addLoads(graph, 2);
    PackingOptions options;
    options.effort = 100'000;
    SolvedSteps solved(options);
    const FittedSchedule &whole = solved.get(graph).front.getLargest();
    const uint64_t least = findLowerBound(graph).bytes, most = whole.timeline.peakBytes;
    for (uint64_t budget : {least, (least + most) / 2}) {
      double best = INFINITY;
      auto take = [&](const StepGraph &offload, uint64_t near) -> std::optional<FittedSchedule> {
        const uint64_t rooms[] = {near, UINT64_MAX};
        std::optional<PackedPlan> found = findFastestLanes(solved.get(offload), budget, rooms, options, INFINITY);
        if (!found)
          return std::nullopt;
        EXPECT_TRUE(fitsRooms(graph, found->plan, rooms));
        best = std::min(best, found->plan.timeline.seconds);
        return found->plan;
      };
      take(graph, UINT64_MAX);
      for (const StepGraph &offload : listOffloadGraphs(graph))
        if (std::optional<FittedSchedule> plan = take(offload, UINT64_MAX)) {
          const uint64_t room = simulateLanes(graph, *plan).memories.front().roomBytes;
          if (std::optional<FittedSchedule> less = take(spreadLoads(offload, *plan, room / 2), room / 2))
            spread += simulateLanes(graph, *less).memories[1].loads > 0;
        }
      const RecomputationBound bound = boundLanes(graph, whole.schedule, budget);
      if (bound.isInfeasible) {
        EXPECT_EQ(best, INFINITY) << budget;
        continue;
      }
      EXPECT_LE(whole.timeline.seconds + bound.seconds, best * (1 + 1e-9)) << budget;
      tight += whole.timeline.seconds + bound.seconds > 0.9 * best;
    }
  }
  EXPECT_GT(spread, 8u);
  EXPECT_GT(tight, 10u);
}

TEST(LaneBound, NoPlanTakesLess) {
  ASSERT_TRUE(hasLinearSolver()) << "no HiGHS: run tools/dev setup";
  unsigned tight = 0, moved = 0;
  double sumWith = 0, sumWithout = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    StepGraph graph = randomStep(random, 3 + seed % 6);
    const StepGraph plain = graph;
    const double rate = double(1 << random() % 12);
    addLoads(graph, {{0.1, rate}, {0.1, rate}});
    PackingOptions options;
    options.effort = 100'000;
    SolvedSteps solved(options);
    SolvedStep &alone = solved.get(plain);
    const FittedSchedule &whole = alone.front.getLargest();
    const uint64_t least = findLowerBound(plain).bytes, most = whole.timeline.peakBytes;
    for (uint64_t budget : {least, (least + most) / 2}) {
      const RecomputationBound bound = boundLanes(graph, whole.schedule, budget);
      double best = INFINITY;
      if (const PackedPlan *found = alone.plans.find(budget))
        best = found->plan.timeline.seconds;
      for (const StepGraph &offload : listOffloadGraphs(graph))
        if (std::optional<PackedPlan> found =
                findFastestLanes(solved.get(offload), budget, everything, options, best)) {
          best = found->plan.timeline.seconds;
          moved += found->plan.timeline.loaded > 0;
        }
      const OffloadBaselines baselines(graph, whole, options);
      for (auto strategy : {OffloadStrategy::StoreAll, OffloadStrategy::StoreLargest, OffloadStrategy::StoreLayers})
        if (std::optional<PackedPlan> found = baselines.find(strategy, budget, everything, best))
          best = found->plan.timeline.seconds;
      if (bound.isInfeasible) {
        EXPECT_EQ(best, INFINITY) << budget;
        continue;
      }
      EXPECT_LE(whole.timeline.seconds + bound.seconds, best * (1 + 1e-9)) << budget;
      tight += whole.timeline.seconds + bound.seconds > 0.95 * best;
      // Where a copy takes longer than the whole step, little is loaded: it comes near the bound of recomputation.
      StepGraph still = plain;
      addLoads(still, {{1e3, 1e3}, {1e3, 1e3}});
      const RecomputationBound without = boundRecomputation(plain, whole.schedule, budget),
                               with = boundLanes(still, whole.schedule, budget);
      if (!without.isInfeasible && without.isSolved && with.isSolved) {
        EXPECT_LE(with.seconds, without.seconds + 1e-6 * whole.timeline.seconds) << budget;
        sumWith += with.seconds;
        sumWithout += without.seconds;
      }
    }
  }
  EXPECT_GT(moved, 8u);
  EXPECT_GT(tight, 10u);
  EXPECT_GT(sumWith, 0.8 * sumWithout);
}

} // namespace
