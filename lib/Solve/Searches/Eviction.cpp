//===- Eviction.cpp - a schedule that stays under a budget ----------------===//
//
// Dynamic tensor rematerialization (Kirisame et al. 2021), but with the future
// known. Walk the order; before an operation,
// 1. recompute its operands that are not there, and what they need, depth first;
// 2. evict the cheapest values until its results and workspace fit.
// A value that an evicted one is made from is needed when that one is. An
// argument that is updated can make a recomputation impossible: then the value
// is pinned and the walk starts over.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Searches/Eviction.h"
#include "EvictionCandidates.h"
#include "ImpliedNeeds.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace lowtide::solve {
namespace {

constexpr uint32_t never = UINT32_MAX;

class Simulation {
public:
  Simulation(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budget, const EvictionPolicy &policy)
      : graph(graph), order(order), budget(budget), policy(policy) {
    prepare();
  }

  std::optional<Schedule> run() {
    // Each failure for an updated argument pins at least one value more.
    for (unsigned attempt = 0; attempt < 64; ++attempt) {
      reset();
      impossible = never;
      if (walk())
        return std::move(schedule);
      if (impossible == never || pinned[impossible])
        return std::nullopt;
      pinned[impossible] = true;
      isEvictable[impossible] = false;
    }
    return std::nullopt;
  }

private:
  void prepare() {
    const size_t numValues = graph.values.size(), numOps = graph.operations.size();
    uses.resize(numValues);
    pinned.assign(numValues, false);
    std::vector<std::vector<uint32_t>> consumers(numValues);
    factor.resize(numValues);
    for (uint32_t value = 0; value < numValues; ++value)
      factor[value] = std::exp(policy.weights.empty() ? 0 : policy.weights[value]) /
                      power(double(graph.size(value)) + 1, policy.size);
    maker.assign(numValues, never);
    wholeOf = listWholes(graph);
    deadline.assign(numOps + graph.reruns.size(), never);
    std::vector<uint32_t> updatedAt(numValues, never);
    for (uint32_t now = 0; now < order.size(); ++now)
      for (uint32_t argument : graph.operations[order[now]].updates)
        updatedAt[argument] = now;
    for (uint32_t now = 0; now < order.size(); ++now) {
      const uint32_t op = order[now];
      for (uint32_t value : graph.operations[op].reads)
        if (graph.values[value].producer >= 0)
          uses[value].push_back(now);
      for (uint32_t again : listReruns(graph, op)) {
        for (uint32_t value : graph.at(again).writes)
          maker[value] = again;
        for (uint32_t value : graph.at(again).reads) {
          if (graph.values[value].producer < 0)
            deadline[again] = std::min(deadline[again], updatedAt[value]);
          else
            consumers[value].push_back(again);
        }
      }
    }
    for (uint32_t value = 0; value < numValues; ++value) {
      firstMade.push_back(uint32_t(made.size()));
      for (uint32_t op : consumers[value])
        for (uint32_t result : graph.at(op).writes)
          made.push_back({result, wholeOf[op], graph.values[result].placed});
      isEvictable.push_back(
          !graph.values[value].kept && maker[value] != never &&
          (uses[value].empty() || deadline[maker[value]] == never || uses[value].back() <= deadline[maker[value]]));
    }
    firstMade.push_back(uint32_t(made.size()));
    for (uint32_t value = 0; value < numValues; ++value) {
      nodes.push_back({uint32_t(sourceValues.size()), uint32_t(sourceValues.size()), false});
      secondsOf.push_back(maker[value] == never ? 0 : graph.at(maker[value]).seconds);
      if (maker[value] == never)
        continue;
      const StepOperation &operation = graph.at(maker[value]);
      for (uint32_t read : operation.reads)
        if (isTransient(read))
          sourceValues.push_back(read);
      nodes[value].endSource = uint32_t(sourceValues.size());
      for (uint32_t read : operation.reads)
        if (graph.values[read].producer < 0)
          sourceValues.push_back(read);
    }
    nodes.push_back({uint32_t(sourceValues.size()), uint32_t(sourceValues.size()), false});
    numberValues();
    listArgumentReaders();
  }

  void listArgumentReaders() {
    const uint32_t numValues = graph.values.size();
    firstArgumentReader.assign(numValues + 2, 0);
    for (uint32_t value = 0; value < numValues; ++value)
      for (uint32_t argument : listArguments(value))
        ++firstArgumentReader[argument + 2];
    for (size_t i = 2; i < firstArgumentReader.size(); ++i)
      firstArgumentReader[i] += firstArgumentReader[i - 1];
    argumentReaders.resize(firstArgumentReader.back());
    // Afterwards each stands where the next one begins.
    for (uint32_t value = 0; value < numValues; ++value)
      for (uint32_t argument : listArguments(value))
        argumentReaders[firstArgumentReader[argument + 1]++] = value;
  }

  /// Numbers values after what they are made from. Where they are made from each other, sums are not kept.
  void numberValues() {
    constexpr uint32_t open = never - 1;
    number.assign(graph.values.size(), never);
    valueOf.assign(1, never);
    std::vector<std::pair<uint32_t, uint32_t>> path; // a value, and how many of its sources are done
    for (uint32_t root = 0; root < number.size(); ++root) {
      if (number[root] != never)
        continue;
      number[root] = open;
      path.assign(1, {root, 0});
      while (!path.empty()) {
        auto &[value, done] = path.back();
        const std::span<const uint32_t> from = listSources(value);
        if (done == from.size()) {
          number[value] = uint32_t(valueOf.size());
          valueOf.push_back(value);
          path.pop_back();
          continue;
        }
        const uint32_t read = from[done++];
        if (number[read] == open) {
          keepsSums = false;
          return;
        }
        if (number[read] == never) {
          number[read] = open;
          path.push_back({read, 0});
        }
      }
    }
  }

  void reset() {
    const size_t numValues = graph.values.size();
    schedule.clear();
    used = 0;
    for (Node &node : nodes)
      node.isResident = false;
    implied.reset(numValues);
    nextUse.assign(numValues, 0);
    ownNeed.assign(numValues, never);
    for (uint32_t value = 0; value < numValues; ++value)
      if (!uses[value].empty())
        ownNeed[value] = uses[value].front();
    settled.assign(numValues, never);
    locks.assign(numValues, 0);
    price.assign(numValues, -1);
    weighed.assign(numValues, 0);
    mark.assign(numValues, 0);
    stamp = 0;
    sum.assign(numValues, -1);
    lowestOf.assign(numValues, 0);
    isSummed.assign(numValues, false);
    scanned.assign(numValues, 0);
    version = 1;
    candidates.reset(numValues);
    updated.assign(numValues, false);
    executed.assign(graph.operations.size(), false);
  }

  bool walk() {
    for (now = 0; now < order.size(); ++now) {
      ++version;
      const uint32_t op = order[now];
      const StepOperation &operation = graph.operations[op];
      for (uint32_t value : operation.reads)
        if (!provide(value))
          return false;
      for (uint32_t value : operation.reads)
        if (isTransient(value) && nextUse[value] < uses[value].size()) {
          ownNeed[value] = ++nextUse[value] < uses[value].size() ? uses[value][nextUse[value]] : never;
          candidates.forget(value);
        }
      if (!execute(op))
        return false;
      for (uint32_t argument : operation.updates)
        update(argument);
    }
    return true;
  }

  void update(uint32_t argument) {
    updated[argument] = true;
    for (uint32_t i = firstArgumentReader[argument]; i < firstArgumentReader[argument + 1]; ++i)
      forgetSum(argumentReaders[i]);
  }

  bool isTransient(uint32_t value) const { return graph.values[value].producer >= 0 && !graph.values[value].placed; }

  /// A value that is computed from another one by a recomputation, and the operation that this is, or is a part of.
  struct Made {
    uint32_t result, whole;
    bool isPlaced;
  };
  std::span<const Made> listMade(uint32_t value) const {
    return std::span(made).subspan(firstMade[value], firstMade[value + 1] - firstMade[value]);
  }

  struct Node {
    /// Where in `sourceValues` the values are from which it is recomputed; up to the next node, the arguments.
    uint32_t firstSource, endSource;
    bool isResident;
  };
  std::span<const uint32_t> listSources(uint32_t value) const {
    return std::span(sourceValues).subspan(nodes[value].firstSource, nodes[value].endSource - nodes[value].firstSource);
  }
  std::span<const uint32_t> listArguments(uint32_t value) const {
    const uint32_t from = nodes[value].endSource;
    return std::span(sourceValues).subspan(from, nodes[value + 1].firstSource - from);
  }

  /// When it is needed next, for itself or for what was evicted.
  uint32_t need(uint32_t value) {
    if (implied.at(value) <= now && scanned[value] != version && settled[value] != now) [[unlikely]]
      findImplied(value);
    return std::min(ownNeed[value], implied.at(value));
  }

  void findImplied(uint32_t value) {
    scanned[value] = version;
    implied.set(value, never);
    uint32_t when = never;
    for (const Made &each : listMade(value))
      if (!nodes[each.result].isResident && executed[each.whole] && !each.isPlaced)
        when = std::min(when, need(each.result));
    implied.set(value, when);
    if (when == now)
      settled[value] = now;
  }

  /// `value` is there: what it is made from may no longer be needed now.
  void unsettle(uint32_t value) {
    for (uint32_t read : listSources(value))
      if (settled[read] == now) {
        settled[read] = never;
        candidates.forget(read);
        if (!nodes[read].isResident)
          unsettle(read);
      }
  }

  /// Forgets the prices that depend on whether `value` is there.
  void touch(uint32_t value) {
    for (const Made &each : listMade(value))
      if (price[each.result] >= 0) {
        price[each.result] = -1;
        if (nodes[each.result].isResident)
          candidates.forget(each.result);
        else
          touch(each.result);
      }
  }

  double addUp(uint32_t value) {
    if (maker[value] == never || readsUpdated(value))
      return 1e30;
    double seconds = secondsOf[value];
    for (uint32_t read : listSources(value))
      if (!nodes[read].isResident && mark[read] != stamp) {
        mark[read] = stamp;
        seconds += addUp(read);
      }
    return seconds;
  }

  bool readsUpdated(uint32_t value) const {
    for (uint32_t argument : listArguments(value))
      if (updated[argument])
        return true;
    return false;
  }

  /// As `addUp`, with the sums of values that are not there kept: each is what `addUp` returns where nothing that the
  /// value is made from is marked, so that no bit differs.
  double addUpKept(uint32_t value) {
    // What was marked before has higher numbers: nothing that this is made from.
    const bool isClean = number[value] < lowest;
    if (isClean && sum[value] >= 0) {
      lowest = lowestOf[value];
      unmarked.push_back(number[value]);
      std::push_heap(unmarked.begin(), unmarked.end());
      return sum[value];
    }
    lowest = std::min(lowest, number[value]);
    if (maker[value] == never)
      return 1e30;
    isSummed[value] = true;
    double seconds = 1e30;
    if (!readsUpdated(value)) {
      seconds = secondsOf[value];
      for (uint32_t read : listSources(value)) {
        if (nodes[read].isResident || mark[read] == stamp)
          continue;
        markAbove(number[read]);
        if (mark[read] == stamp)
          continue;
        mark[read] = stamp;
        seconds += addUpKept(read);
      }
    }
    if (isClean) {
      sum[value] = seconds;
      lowestOf[value] = lowest;
    }
    return seconds;
  }

  /// Marks what sums that were taken whole have added up, down to a number.
  void markAbove(uint32_t least) {
    while (!unmarked.empty() && unmarked.front() > least) {
      std::pop_heap(unmarked.begin(), unmarked.end());
      const uint32_t value = valueOf[unmarked.back()];
      unmarked.pop_back();
      if (readsUpdated(value))
        continue;
      for (uint32_t read : listSources(value))
        if (!nodes[read].isResident && mark[read] != stamp) {
          mark[read] = stamp;
          unmarked.push_back(number[read]);
          std::push_heap(unmarked.begin(), unmarked.end());
        }
    }
  }

  /// The sum of `value`, and all that it is part of, hold no longer.
  void forgetSum(uint32_t value) {
    if (!isSummed[value])
      return;
    isSummed[value] = false;
    sum[value] = -1;
    if (!nodes[value].isResident)
      forgetSums(value);
  }

  /// `value` comes or goes.
  void forgetSums(uint32_t value) {
    for (const Made &each : listMade(value))
      forgetSum(each.result);
  }

  double addUpAll(uint32_t value) {
    ++stamp;
    if (!keepsSums)
      return addUp(value);
    lowest = never;
    unmarked.clear();
    const double seconds = addUpKept(value);
    // Of so many sums one is compared with what it stands for: few enough to cost nothing.
    assert((++numSums % 509 || isSumOf(value, seconds)) && "a kept sum is that of what is not there");
    return seconds;
  }

  [[maybe_unused]] bool isSumOf(uint32_t value, double seconds) {
    ++stamp;
    return addUp(value) == seconds;
  }

  /// Seconds to make `value` again now, with everything that is not there.
  double getPrice(uint32_t value) {
    if (price[value] < 0) {
      price[value] = addUpAll(value);
      weighed[value] = factor[value] * power(price[value] + 1e-9, policy.cost);
    }
    return price[value];
  }

  void add(uint32_t value) {
    ++version;
    nodes[value].isResident = true;
    implied.separate(value);
    used += graph.size(value);
    if (isEvictable[value])
      candidates.add(value);
    forgetSums(value);
    touch(value);
    unsettle(value);
  }

  void remove(uint32_t value) {
    ++version;
    nodes[value].isResident = false;
    used -= graph.size(value);
    if (isEvictable[value])
      candidates.remove(value);
    forgetSums(value);
    touch(value);
  }

  void evict(uint32_t value) {
    uint32_t when = need(value);
    remove(value);
    if (when == never)
      return;
    for (uint32_t read : listSources(value))
      implied.tell(
          read, now, when, [this](uint32_t each) { return listSources(each); },
          [this](uint32_t each) { return nodes[each].isResident; },
          [&](uint32_t each) { candidates.limit(each, when); });
  }

  /// base^exponent; the exponents of all policies without a call.
  static double power(double base, double exponent) {
    return exponent == 1 ? base : exponent == 0 ? 1 : exponent == 0.5 ? std::sqrt(base) : std::pow(base, exponent);
  }

  EvictionCandidates::Answer ask(uint32_t value) {
    if (locks[value])
      return {};
    const uint32_t when = need(value);
    const double distance = when == never ? 1u << 30 : when - now + 1;
    // What is settled is needed just now until it is not, of which its block hears then: while a long chain is made
    // again, many values are, and asking them at each eviction would take time that grows with its square.
    const uint32_t until = settled[value] == now ? now + 1 : implied.at(value);
    return {getPrice(value) < 1e29, weighed[value] / power(distance, policy.distance), until};
  }

  bool makeRoom(uint64_t bytes) {
    while (used + bytes > budget) {
      const uint32_t best = candidates.findLeast(now, [&](uint32_t value) { return ask(value); });
      if (best == never)
        return false;
      evict(best);
    }
    return true;
  }

  /// Whether nothing needs it any more.
  bool isDead(uint32_t value) { return !locks[value] && !graph.values[value].kept && need(value) == never; }

  /// Makes sure that an operand is there, and locks it.
  bool provide(uint32_t value) {
    if (!isTransient(value))
      return true;
    if (!nodes[value].isResident) {
      const uint32_t op = maker[value];
      if (op == never)
        return false;
      for (uint32_t read : graph.at(op).reads)
        if (graph.values[read].producer < 0 && updated[read])
          impossible = value;
      if (impossible != never || schedule.size() > maxLength)
        return false;
      for (uint32_t read : graph.at(op).reads)
        if (!provide(read))
          return false;
      ++locks[value]; // its results must not be freed at once
      if (!execute(op))
        return false;
      return true;
    }
    ++locks[value];
    return true;
  }

  /// Runs an operation whose operands are there and locked by it.
  bool execute(uint32_t op) {
    const StepOperation &operation = graph.at(op);
    dying.clear();
    for (uint32_t value : operation.reads)
      if (isTransient(value) && locks[value] == 1 && !graph.values[value].kept && need(value) == never)
        dying.push_back(value);
    uint64_t bytes = graph.workspace(op);
    for (size_t i = 0; i < operation.writes.size(); ++i) {
      const uint32_t result = operation.writes[i];
      if (graph.values[result].placed)
        continue;
      if (std::optional<uint32_t> over = findOverwritten(graph, operation, i, [&](uint32_t read) {
            return std::find(dying.begin(), dying.end(), read) != dying.end();
          }))
        dying.erase(std::find(dying.begin(), dying.end(), *over));
      else
        bytes += graph.size(result);
    }
    if (!makeRoom(bytes))
      return false;
    schedule.push_back(op);
    if (op < executed.size())
      executed[op] = true;
    for (uint32_t result : operation.writes)
      if (!graph.values[result].placed && !nodes[result].isResident)
        add(result);
    for (uint32_t value : operation.reads)
      if (isTransient(value)) {
        --locks[value];
        if (nodes[value].isResident && isDead(value))
          remove(value);
      }
    for (uint32_t result : operation.writes)
      if (!graph.values[result].placed && nodes[result].isResident && isDead(result))
        remove(result);
    return true;
  }

  const StepGraph &graph;
  std::span<const uint32_t> order;
  const uint64_t budget;
  const EvictionPolicy &policy;
  /// Beyond it a walk is given up: it evicts what it needs next.
  const size_t maxLength = 8 * order.size() + 1000;

  /// Per value, the part of its score that does not change.
  std::vector<double> factor;
  // Facts of the order.
  std::vector<std::vector<uint32_t>> uses;
  /// Of all values, one after the other, and where each one's begin.
  std::vector<Made> made;
  std::vector<uint32_t> firstMade;
  /// Per value and one more; only `isResident` belongs to one walk.
  std::vector<Node> nodes;
  std::vector<uint32_t> sourceValues;
  /// Per value, the seconds of what makes it again.
  std::vector<double> secondsOf;
  /// Whether it may go when nothing has locked it: a recomputation is possible whenever it is read.
  std::vector<char> isEvictable;
  /// Per value, what makes it again; per number in a schedule, its operation (listWholes).
  std::vector<uint32_t> maker, wholeOf;
  /// Per operation, when an argument that it reads is updated.
  std::vector<uint32_t> deadline;

  /// Per value, higher than those of what it is made from; whether there are such numbers.
  std::vector<uint32_t> number, valueOf;
  bool keepsSums = true;
  /// Of all arguments, the values whose makers read them, and where each one's begin.
  std::vector<uint32_t> argumentReaders, firstArgumentReader;

  // State of one walk.
  Schedule schedule;
  uint32_t now = 0;
  uint64_t used = 0;
  std::vector<char> pinned, updated, executed;
  std::vector<uint32_t> nextUse, locks, mark;
  /// The values that are there and may go.
  EvictionCandidates candidates;
  ImpliedNeeds implied;
  /// When the order reads a value next, from `now` on.
  std::vector<uint32_t> ownNeed;
  std::vector<double> price;
  /// Where a price is known, the part of the score that does not depend on when the value is needed.
  std::vector<double> weighed;
  /// Per value, the seconds to recompute it with everything that is not there (below 0: not known), and whether it is
  /// part of such a sum.
  std::vector<double> sum;
  /// Where that is known, the lowest number of what it adds up.
  std::vector<uint32_t> lowestOf;
  std::vector<char> isSummed;
  /// Of a sum that is being added up: the lowest number of what is part of it, and a heap of the numbers of marked
  /// values whose own sources are part of sums that were taken whole and not marked yet.
  uint32_t lowest = never;
  std::vector<uint32_t> unmarked;
  [[maybe_unused]] uint64_t numSums = 0;
  /// Scratch of `execute`.
  std::vector<uint32_t> dying;
  uint32_t stamp = 0;
  /// Counts changes of who is there; per value, when its implied need was last looked for.
  uint64_t version = 1;
  std::vector<uint64_t> scanned;
  /// Per value, when it was found to be needed at once for what was evicted: it is until one of those is there again,
  /// and no eviction makes that sooner.
  std::vector<uint32_t> settled;
  /// A value that could not be recomputed because an argument was updated.
  uint32_t impossible = never;
};

} // namespace

std::optional<Schedule> evictUnder(const StepGraph &graph, std::span<const uint32_t> order, uint64_t budgetBytes,
                                   const EvictionPolicy &policy) {
  return Simulation(graph, order, budgetBytes, policy).run();
}

} // namespace lowtide::solve
