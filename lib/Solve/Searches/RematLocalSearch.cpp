//===- RematLocalSearch.cpp - local search around a plan ------------------===//
//
// Large neighbourhoods (Shaw 1998): a round takes a few recomputations out, so
// that what they make stays from where it was made before. Where the schedule is
// then too full, values that are only waiting are recomputed after it, cheap
// bytes first, by chance: before they are read, or earlier, while what they are
// made from is there, or where the fewest bytes are alive. What they are made
// from may stay on for that in the room of what it makes. What nothing needs any
// more goes (DropRedundantRemat). A round that becomes more expensive than the
// schedule it began with is given up at once.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Searches/RematLocalSearch.h"
#include "../Algorithms/RangeMaximum.h"
#include "../Model/Walk.h"
#include "lowtide/Solve/Searches/Eviction.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace lowtide::solve {
namespace {

constexpr uint32_t none = UINT32_MAX;
/// Of a round: recomputations that are taken out, times that something is put in, and operations of one such chain.
constexpr size_t mostOut = 6, mostIn = 64, longestChain = 24;
/// By how much a plan may become more expensive in a round, at first: what leads nowhere is left.
constexpr double patience = 0.005;

class RematLocalSearch {
public:
  RematLocalSearch(const StepGraph &graph, uint64_t budget, uint64_t seed, bool mayKeepSources)
      : graph(graph), budget(budget), random(seed), mayKeepSources(mayKeepSources), walk(graph) {
    for (uint32_t value = 0; value < graph.values.size(); ++value)
      makers.push_back(findMaker(graph, value).value_or(none));
  }

  FittedSchedule run(const FittedSchedule &start, unsigned rounds) {
    FittedSchedule best = start, now = start;
    for (unsigned round = 0; round < rounds && now.timeline.recomputed; ++round) {
      limit = now.timeline.seconds * (1 + patience * double(rounds - round) / double(rounds));
      FittedSchedule next{takeOut(now.schedule), {}, "exchanging recomputations"};
      if (!makeRoom(next))
        continue;
      dropRecomputations(graph, budget, next.schedule, next.timeline, walk);
      if (next.timeline.seconds > limit)
        continue;
      now = std::move(next);
      if (now.timeline.seconds < best.timeline.seconds)
        best = now;
    }
    return best;
  }

  std::optional<FittedSchedule> squeeze(const FittedSchedule &start, unsigned tries) {
    std::optional<FittedSchedule> best;
    limit = INFINITY;
    for (unsigned round = 0; round < tries; ++round) {
      FittedSchedule next{round % 2 ? takeOut(start.schedule) : start.schedule, {}, "exchanging recomputations"};
      if (!makeRoom(next))
        continue;
      dropRecomputations(graph, budget, next.schedule, next.timeline, walk);
      limit = next.timeline.seconds;
      best = std::move(next);
    }
    return best;
  }

private:
  using Instance = Walk::Instance;

  double uniform() { return double(random() >> 11) * 0x1p-53; }

  /// Without a few recomputations, most of them near each other.
  Schedule takeOut(const Schedule &schedule) {
    std::vector<uint32_t> again;
    std::vector<char> ran(graph.operations.size(), false);
    for (uint32_t now = 0; now < schedule.size(); ++now) {
      const uint32_t op = schedule[now];
      if (op >= ran.size() || ran[op])
        again.push_back(now);
      else
        ran[op] = true;
    }
    if (again.empty())
      return schedule;
    std::vector<char> isOut(schedule.size(), false);
    const size_t most = std::min<size_t>(again.size(), 1 + random() % mostOut);
    size_t at = random() % again.size();
    for (size_t count = 0; count < most; ++count) {
      isOut[again[at]] = true;
      at = random() % 2 ? (at + 1) % again.size() : random() % again.size();
    }
    Schedule rest;
    for (uint32_t now = 0; now < schedule.size(); ++now)
      if (!isOut[now])
        rest.push_back(schedule[now]);
    return rest;
  }

  /// Makes more again until the plan fits; false if it becomes too expensive, or nothing helps.
  bool makeRoom(FittedSchedule &plan) {
    for (size_t count = 0; count < mostIn; ++count) {
      if (!walk.bind(plan.schedule))
        return false;
      Timeline timeline = walk.sumUp();
      if (timeline.seconds > limit)
        return false;
      plan.timeline = std::move(timeline);
      if (plan.timeline.peakBytes <= budget)
        return true;
      if (!makeRoomAt(plan, plan.timeline.peakAt))
        return false;
    }
    return false;
  }

  bool makeRoomAt(FittedSchedule &plan, uint32_t point) {
    walk.listReads();
    live.assign(plan.timeline.live);
    findEmptiest(plan.timeline.live, point);
    const uint64_t over = plan.timeline.peakBytes - budget;
    double least = INFINITY;
    uint32_t before = none;
    std::vector<uint32_t> chosen;
    for (const Instance &instance : walk.getInstances()) {
      const uint32_t value = instance.value;
      if (instance.begin >= point || instance.last <= point || makers[value] == none || graph.values[value].placed ||
          graph.values[value].kept)
        continue;
      const std::span<const uint32_t> reads = walk.getReads(instance);
      const auto next = std::lower_bound(reads.begin(), reads.end(), point);
      if (*next == point)
        continue;
      listPositions(value, *next, point);
      for (uint32_t position : positions) {
        chain.clear();
        chainSeconds = 0;
        freedAfter = 0;
        freedBytes = mayKeepSources ? countWaiting(makers[value], point, position, freedAfter) : graph.size(value);
        if (!provide(value, position, point) || plan.timeline.seconds + chainSeconds > limit)
          continue;
        uint64_t freed = freedBytes;
        for (uint32_t ignored = 0; uint32_t op : chain)
          freed += mayKeepSources && op != makers[value] ? countWaiting(op, point, position, ignored) : 0;
        if (!freed)
          continue;
        const double score = (chainSeconds + 1e-12) / double(std::min(freed, 2 * over)) * std::exp(2 * uniform());
        if (score < least) {
          least = score;
          before = position;
          chosen = chain;
        }
      }
    }
    if (before == none)
      return false;
    plan.schedule.insert(plan.schedule.begin() + before, chosen.begin(), chosen.end());
    return true;
  }

  /// `emptiest`, from bytes alive at each instruction.
  void findEmptiest(const std::vector<uint64_t> &bytes, uint32_t point) {
    emptiest.resize(bytes.size());
    for (uint32_t now = point + 1, best = now; now < bytes.size(); ++now) {
      if (bytes[now] <= bytes[best])
        best = now;
      emptiest[now] = best;
    }
  }

  /// `positions`: where the value may be recomputed after `point`: before it is read, while what it is made from is
  /// still there, or where the fewest bytes are alive.
  void listPositions(uint32_t value, uint32_t read, uint32_t point) {
    positions.assign(1, read);
    if (!mayKeepSources)
      return;
    for (uint32_t operand : graph.at(makers[value]).reads)
      if (const Instance *instance = walk.findInstance(operand, read);
          instance && instance->last > point && instance->last < read &&
          std::find(positions.begin(), positions.end(), instance->last) == positions.end())
        positions.push_back(instance->last);
    if (std::find(positions.begin(), positions.end(), emptiest[read]) == positions.end())
      positions.push_back(emptiest[read]);
  }

  /// Bytes of results of `op` that are not there at the program point when it runs again at `position`: they wait for a
  /// later read. `from` becomes no less than the program point from which they do.
  uint64_t countWaiting(uint32_t op, uint32_t point, uint32_t position, uint32_t &from) const {
    uint64_t bytes = 0;
    for (uint32_t value : graph.at(op).writes) {
      const Instance *instance = walk.findInstance(value, point);
      if (!instance || graph.values[value].placed || graph.values[value].kept)
        continue;
      const std::span<const uint32_t> reads = walk.getReads(*instance);
      const auto next = std::lower_bound(reads.begin(), reads.end(), point);
      if (next == reads.end() || *next < position)
        continue;
      from = std::max(from, (next == reads.begin() ? instance->begin : *std::prev(next)) + 1);
      bytes += graph.size(value);
    }
    return bytes;
  }

  /// Adds to the chain what makes `value` again directly before `position`, and what that needs and cannot stay.
  bool provide(uint32_t value, uint32_t position, uint32_t point) {
    const uint32_t op = makers[value];
    if (std::find(chain.begin(), chain.end(), op) != chain.end())
      return true;
    if (chain.size() >= longestChain)
      return false;
    for (uint32_t read : graph.at(op).reads) {
      if (graph.values[read].producer < 0) {
        if (walk.getUpdate(read) < position)
          return false;
        continue;
      }
      if (graph.values[read].placed)
        continue;
      const Instance *instance = walk.findInstance(read, position);
      if (!instance)
        return false;
      if (instance->last >= position || graph.values[read].kept)
        continue;
      if (mayStay(read, instance->last, position, point))
        continue;
      if (makers[read] == none ? instance->last < point : !provide(read, position, point))
        return false;
    }
    chain.push_back(op);
    chainSeconds += graph.at(op).seconds;
    return true;
  }

  /// Whether the value may stay after its last read until `position`: there is room, or that of those that are made
  /// again is more than what stays for it. What stays at `point`, where it would not be, is taken off the freed bytes.
  bool mayStay(uint32_t value, uint32_t last, uint32_t position, uint32_t point) {
    const uint64_t size = graph.size(value);
    const uint32_t from = last + 1;
    if (!mayKeepSources)
      return live.find(from, position) + size <= budget;
    const uint32_t freed = std::max(from, std::min(freedAfter, position));
    if (live.find(from, freed) + size > budget ||
        (size >= freedBytes && live.find(freed, position) + size > budget + freedBytes))
      return false;
    if (last < point)
      freedBytes -= std::min(size, freedBytes);
    return true;
  }

  const StepGraph &graph;
  const uint64_t budget;
  std::mt19937_64 random;
  const bool mayKeepSources;
  /// Seconds that a round may reach.
  double limit = 0;
  std::vector<uint32_t> makers;
  /// Of the plan as it stands.
  Walk walk;
  RangeMaximum live;
  /// From the program point that is too full to each instruction, where the fewest bytes are alive.
  std::vector<uint32_t> emptiest;
  /// From when on the values that are recomputed are not there, and their bytes, without those of what stays for them.
  uint32_t freedAfter = 0;
  uint64_t freedBytes = 0;
  std::vector<uint32_t> chain, positions;
  double chainSeconds = 0;
};

} // namespace

FittedSchedule searchRematNearby(const StepGraph &graph, uint64_t budgetBytes, const FittedSchedule &start,
                                 const LocalSearchOptions &options) {
  return RematLocalSearch(graph, budgetBytes, options.seed, options.mayKeepSources).run(start, options.rounds);
}

std::optional<FittedSchedule> shrinkPeak(const StepGraph &graph, uint64_t budgetBytes, const FittedSchedule &start,
                                         unsigned tries, uint64_t seed) {
  return RematLocalSearch(graph, budgetBytes, seed, /*mayKeepSources=*/false).squeeze(start, tries);
}

} // namespace lowtide::solve
