//===- DropRedundantRematTest.cpp - recomputations that are not needed ------===//
//
// What counts only what changes is compared with what counts each trial anew.
//
//===----------------------------------------------------------------------===//
#include "RandomSteps.h"
#include "lowtide/Solve/Portfolio/Offload.h"
#include "lowtide/Solve/Searches/Eviction.h"
#include <gtest/gtest.h>

using namespace lowtide::solve;

namespace {

/// Takes out one recomputation after the other, best first, with those that served nothing else, whenever the peak of
/// what is left stays within the budget.
Schedule thinPlainly(const StepGraph &graph, uint64_t budget, const Schedule &schedule) {
  const uint32_t length = schedule.size();
  std::vector<char> isFirst(length, false), isGone(length, false);
  std::vector<char> ran(graph.operations.size() + graph.reruns.size(), false);
  std::vector<std::pair<double, uint32_t>> candidates;
  for (uint32_t now = 0; now < length; ++now) {
    isFirst[now] = schedule[now] < graph.operations.size() && !ran[schedule[now]];
    ran[schedule[now]] = true;
    if (!isFirst[now])
      candidates.push_back({-graph.at(schedule[now]).seconds, now});
  }
  std::sort(candidates.begin(), candidates.end());
  for (auto [seconds, position] : candidates) {
    if (isGone[position])
      continue;
    // Per position, who reads its results.
    std::vector<std::vector<uint32_t>> readers(length);
    std::vector<uint32_t> current(graph.values.size(), UINT32_MAX);
    for (uint32_t now = 0; now < length; ++now) {
      if (isGone[now])
        continue;
      for (uint32_t value : graph.at(schedule[now]).reads)
        if (current[value] != UINT32_MAX)
          readers[current[value]].push_back(now);
      for (uint32_t value : graph.at(schedule[now]).writes)
        current[value] = now;
    }
    std::vector<char> without = isGone;
    without[position] = true;
    for (uint32_t now = position; now-- > 0;)
      if (!isFirst[now] && !isGone[now] && !readers[now].empty())
        without[now] =
            std::all_of(readers[now].begin(), readers[now].end(), [&](uint32_t r) { return without[r] && !isGone[r]; });
    Schedule rest;
    for (uint32_t now = 0; now < length; ++now)
      if (!without[now])
        rest.push_back(schedule[now]);
    if (std::optional<Timeline> timeline = evaluate(graph, rest); timeline && timeline->peakBytes <= budget)
      isGone = without;
  }
  Schedule rest;
  for (uint32_t now = 0; now < length; ++now)
    if (!isGone[now])
      rest.push_back(schedule[now]);
  return rest;
}

TEST(DropRedundantRemat, DropsWhatAPlainSearchDrops) {
  std::mt19937_64 random(3);
  unsigned thinned = 0, dropped = 0, equal = 0;
  for (unsigned i = 0; i < 300; ++i) {
    const StepGraph graph = i % 4 ? randomStep(random, 10 + random() % 20) : chainStep(10 + i / 4, 4096);
    const Schedule order = originalSchedule(graph);
    const uint64_t low = findLowerBound(graph).bytes, high = evaluate(graph, order)->peakBytes;
    const uint64_t tight = low + (high - low) / 3, budget = low + (high - low) / 2;
    std::optional<Schedule> start = evictUnder(graph, order, tight, {0, 0, 1});
    if (!start)
      continue;
    Schedule schedule = *start;
    Timeline timeline = *evaluate(graph, schedule);
    if (!timeline.recomputed)
      continue;
    const uint32_t before = timeline.recomputed;
    dropRecomputations(graph, budget, schedule, timeline);
    const std::optional<Timeline> counted = evaluate(graph, schedule);
    ASSERT_TRUE(counted) << "step " << i;
    EXPECT_LE(counted->peakBytes, budget) << "step " << i;
    EXPECT_EQ(counted->live, timeline.live) << "step " << i;
    EXPECT_EQ(counted->recomputed, timeline.recomputed) << "step " << i;
    ++thinned;
    dropped += before - counted->recomputed;
    equal += schedule == thinPlainly(graph, budget, *start);
  }
  std::printf("%u of %u as the plain search, %u dropped\n", equal, thinned, dropped);
  EXPECT_GT(thinned, 100u);
  EXPECT_GT(dropped, 200u);
  // What is not tried because only bytes that are handed on would make room differs.
  EXPECT_GE(equal, thinned * 9 / 10);
}

TEST(DropRedundantRemat, DropsGivenLoadsAsCountingEachScheduleDoes) {
  std::mt19937_64 random(5);
  unsigned dropped = 0, left = 0;
  for (unsigned i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    StepGraph graph = i % 4 ? randomStep(random, 10 + random() % 20) : chainStep(10 + i / 4, 4096);
    graph.memories = {{{1, 64}, {1, 64}}};
    addLoads(graph, 1);
    const StepGraph offload = listOffloadGraphs(graph).back();
    const Schedule order = originalSchedule(offload);
    const uint64_t low = findLowerBound(offload).bytes, high = evaluate(offload, order)->peakBytes;
    const std::optional<Schedule> start = evictUnder(offload, order, low + (high - low) / 3, {0, 0, 1});
    if (!start)
      continue;
    std::vector<uint32_t> loads;
    for (uint32_t now = 0; now < start->size(); ++now)
      if (offload.at((*start)[now]).kind == StepOperation::Kind::Loads)
        loads.push_back(now);
    std::shuffle(loads.begin(), loads.end(), random);
    const uint64_t budget = low + (high - low) / 2;
    Schedule schedule = *start;
    Timeline timeline = *evaluate(offload, schedule);
    dropRecomputationsAt(offload, budget, loads, schedule, timeline);
    // The same by counting whole schedules.
    std::vector<char> isGone(start->size(), false);
    auto listRest = [&] {
      Schedule rest;
      for (uint32_t now = 0; now < start->size(); ++now)
        if (!isGone[now])
          rest.push_back((*start)[now]);
      return rest;
    };
    for (uint32_t load : loads) {
      isGone[load] = true;
      const std::optional<Timeline> without = evaluate(offload, listRest());
      isGone[load] = without && without->peakBytes <= budget;
    }
    EXPECT_EQ(schedule, listRest());
    EXPECT_EQ(timeline.live, evaluate(offload, schedule)->live);
    dropped += start->size() - schedule.size();
    left += loads.size() - (start->size() - schedule.size());
  }
  EXPECT_GT(dropped, 200u);
  EXPECT_GT(left, 200u);
}

// A whole operation runs again for a part that runs after it. What both make stood in for the part once, though it goes
// with it: only the first execution's result stays, over the wide value, for which there is no room.
TEST(DropRedundantRemat, SeesThroughExecutionsThatGoToo) {
  StepBuilder b;
  const uint32_t x = b.argument(64);
  const uint32_t first = b.operation({x}, 1024, 5);
  const uint32_t second = b.graph.values.size();
  b.graph.values.push_back({64, 0, false, false});
  StepOperation &whole = b.graph.operations.back();
  StepOperation rest;
  rest.reads = {first};
  rest.writes = {second};
  rest.overwrites.emplace_back();
  rest.seconds = 1;
  whole.writes.push_back(second);
  whole.overwrites.emplace_back();
  whole.reruns = {0};
  b.graph.reruns.push_back(rest);
  const uint32_t kept = b.operation({x}, 64, 1);
  const uint32_t joined = b.operation({first, second, kept}, 64, 1);
  const uint32_t wide = b.operation({joined}, 2048, 1);
  const uint32_t narrow = b.operation({wide, kept}, 64, 1);
  b.graph.values[b.operation({second, narrow, kept}, 64, 1)].kept = true;
  const uint32_t part = b.graph.operations.size();
  Schedule schedule{0, 1, 2, 3, 4, 0, part, 1, 5};
  std::optional<Timeline> timeline = evaluate(b.graph, schedule);
  ASSERT_TRUE(timeline);
  ASSERT_EQ(timeline->peakBytes, 64u + 64 + 2048);
  dropRecomputations(b.graph, timeline->peakBytes, schedule, *timeline);
  // What is there all the time is not computed twice; the pair has to run again.
  EXPECT_EQ(schedule, (Schedule{0, 1, 2, 3, 4, 0, part, 5}));
  EXPECT_EQ(timeline->recomputed, 2u);
}

} // namespace
