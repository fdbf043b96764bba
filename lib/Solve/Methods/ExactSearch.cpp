//===- ExactSearch.cpp - the best schedules of a small step ---------------===//
//
// Shortest path over (how far the order is, what is there), from the largest
// budget down: below the peak of the cheapest schedule lies the next one.
// To have more there at the same cost is never worse, since forgetting is free:
// values are forgotten only where something would not fit otherwise.
//
//===----------------------------------------------------------------------===//
#include "Method.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

namespace lowtide::solve {
namespace {

/// Above so many tensors it is not tried, and after so many states in all it is given up.
constexpr size_t mostTensors = 20, mostStates = 60'000;

class ExactSearch {
public:
  ExactSearch(const StepGraph &graph, std::span<const uint32_t> order)
      : graph(graph), order(order), bits(graph.values.size(), 0) {
    for (uint32_t value = 0; value < bits.size(); ++value)
      if (graph.values[value].producer >= 0 && !graph.values[value].placed) {
        if (tensors.size() < mostTensors)
          bits[value] = Mask(1) << tensors.size();
        tensors.push_back(value);
        kept |= graph.values[value].kept ? bits[value] : 0;
      }
    if (isTooLarge())
      return;
    std::vector<size_t> updatedAt(graph.values.size(), SIZE_MAX);
    for (size_t position = 0; position < order.size(); ++position) {
      for (uint32_t value : graph.operations[order[position]].updates)
        updatedAt[value] = position;
      steps.push_back(describe(order[position]));
    }
    for (size_t position = 0; position < order.size(); ++position) {
      std::vector<uint32_t> all = listReruns(graph, order[position]);
      // Parts that are wanted together run as one.
      if (all.size() > 1 && isRecomputable(graph, order[position]))
        all.push_back(order[position]);
      for (uint32_t op : all) {
        Step &again = reruns.emplace_back(describe(op));
        again.from = position + 1;
        for (uint32_t value : graph.at(op).reads)
          if (graph.values[value].producer < 0 && updatedAt[value] != SIZE_MAX)
            again.until = std::min(again.until, updatedAt[value]);
      }
    }
  }

  bool isTooLarge() const { return tensors.size() > mostTensors || numStates > mostStates; }

  /// The cheapest within the budget; nothing if none is, or when it is given up.
  std::optional<Schedule> run(uint64_t budgetBytes) {
    budget = budgetBytes;
    best.clear();
    queue = {};
    offer(0, 0, {0, UINT64_MAX, 0});
    while (!queue.empty() && !isTooLarge()) {
      const auto [seconds, state] = queue.top();
      queue.pop();
      if (best[state].seconds < seconds)
        continue;
      if (state >> mostTensors == order.size())
        return trace(state);
      expand(seconds, state);
    }
    return std::nullopt;
  }

private:
  using Mask = uint32_t;

  /// One operation, in bits.
  struct Step {
    uint32_t op = 0;
    Mask reads = 0, writes = 0;
    uint64_t workspace = 0;
    double seconds = 0;
    /// Positions between which it may run again.
    size_t from = 0, until = SIZE_MAX;
  };
  /// How a state was reached: what ran (none: something was forgotten).
  struct Arrival {
    double seconds;
    uint64_t before;
    uint32_t op;
  };
  static constexpr uint32_t none = UINT32_MAX;

  Step describe(uint32_t op) const {
    Step step;
    step.op = op;
    for (uint32_t value : graph.at(op).reads)
      step.reads |= bits[value];
    for (uint32_t value : graph.at(op).writes)
      step.writes |= bits[value];
    step.workspace = graph.workspace(op);
    step.seconds = graph.at(op).seconds;
    return step;
  }

  uint64_t sizeOf(Mask mask) const {
    uint64_t bytes = 0;
    for (; mask; mask &= mask - 1)
      bytes += graph.size(tensors[__builtin_ctz(mask)]);
    return bytes;
  }

  void offer(uint64_t position, Mask there, Arrival arrival) {
    const uint64_t state = position << mostTensors | there;
    auto [it, isNew] = best.try_emplace(state, arrival);
    if (!isNew && it->second.seconds <= arrival.seconds)
      return;
    numStates += isNew;
    it->second = arrival;
    queue.push({arrival.seconds, state});
  }

  void expand(double seconds, uint64_t state) {
    const uint64_t position = state >> mostTensors;
    const Mask there = Mask(state & ((uint64_t(1) << mostTensors) - 1));
    bool isFull = !tryStep(seconds, state, position + 1, there, steps[position]);
    for (const Step &again : reruns)
      if (again.from <= position && position <= again.until && (again.writes & ~there))
        isFull |= !tryStep(seconds, state, position, there, again);
    if (isFull)
      for (Mask rest = there & ~kept; rest; rest &= rest - 1)
        offer(position, there & ~(rest & -rest), {seconds, state, none});
  }

  /// Runs the step if its operands are there; false if it would fit with less of the rest there.
  bool tryStep(double seconds, uint64_t state, uint64_t next, Mask there, const Step &step) {
    if ((there & step.reads) != step.reads)
      return true;
    const Mask others = there & ~step.writes, mortal = step.reads & ~kept;
    const uint64_t before = sizeOf(others) + step.workspace;
    std::vector<Mask> fitting;
    // Operands that die here hand on their bytes; of two choices the one that loses less is the better.
    for (Mask dying = 0;; dying = (dying - mortal) & mortal) {
      if (std::none_of(fitting.begin(), fitting.end(), [&](Mask less) { return (less & ~dying) == 0; }) &&
          before + freshBytes(step, dying) <= budget) {
        fitting.push_back(dying);
        offer(next, (others & ~dying) | step.writes, {seconds + step.seconds, state, step.op});
      }
      if (dying == mortal)
        break;
    }
    return !fitting.empty() && fitting.front() == 0;
  }

  uint64_t freshBytes(const Step &step, Mask dying) const {
    const StepOperation &operation = graph.at(step.op);
    uint64_t bytes = 0;
    for (size_t i = 0; i < operation.writes.size(); ++i) {
      if (!bits[operation.writes[i]])
        continue;
      if (std::optional<uint32_t> over =
              findOverwritten(graph, operation, i, [&](uint32_t read) { return (dying & bits[read]) != 0; }))
        dying &= ~bits[*over];
      else
        bytes += graph.size(operation.writes[i]);
    }
    return bytes;
  }

  Schedule trace(uint64_t state) {
    Schedule schedule;
    for (; best[state].before != UINT64_MAX; state = best[state].before)
      if (best[state].op != none)
        schedule.push_back(best[state].op);
    std::reverse(schedule.begin(), schedule.end());
    return schedule;
  }

  const StepGraph &graph;
  std::span<const uint32_t> order;
  /// Values that take bytes, and per value its bit.
  std::vector<uint32_t> tensors;
  std::vector<Mask> bits;
  Mask kept = 0;
  std::vector<Step> steps, reruns;
  uint64_t budget = 0;
  size_t numStates = 0;
  std::unordered_map<uint64_t, Arrival> best;
  std::priority_queue<std::pair<double, uint64_t>, std::vector<std::pair<double, uint64_t>>, std::greater<>> queue;
};

/// For every budget the cheapest schedule there is that runs the operations for the first time in `order`: by peak,
/// from the smallest that any has to that without recomputation. Nothing if the step is too large for it.
std::optional<std::vector<FittedSchedule>> searchExactly(const StepGraph &graph, std::span<const uint32_t> order) {
  std::optional<Timeline> timeline = evaluate(graph, order);
  ExactSearch search(graph, order);
  if (!timeline || search.isTooLarge())
    return std::nullopt;
  std::vector<FittedSchedule> plans;
  plans.push_back({Schedule(order.begin(), order.end()), std::move(*timeline), "no recomputation"});
  const uint64_t least = findLowerBound(graph).bytes;
  while (plans.back().timeline.peakBytes > least) {
    std::optional<Schedule> schedule = search.run(plans.back().timeline.peakBytes - 1);
    if (search.isTooLarge())
      return std::nullopt;
    if (!schedule)
      break;
    std::optional<Timeline> figures = evaluate(graph, *schedule);
    if (!figures || figures->peakBytes >= plans.back().timeline.peakBytes)
      return std::nullopt;
    // As cheap with fewer bytes: the larger one is of no use, but for the order as it is.
    if (plans.size() > 1 && figures->seconds <= plans.back().timeline.seconds)
      plans.pop_back();
    plans.push_back({std::move(*schedule), std::move(*figures), "trying all"});
  }
  std::reverse(plans.begin(), plans.end());
  return plans;
}

class ExactMethod : public Method {
public:
  using Method::Method;
  std::optional<std::vector<FittedSchedule>> solve() override { return searchExactly(task.graph, task.order); }
};

} // namespace

std::vector<MethodRow> listExactSearchRows() {
  return {{0, "exact", "of a small step the cheapest schedule there is, for every budget", makeMethod<ExactMethod>}};
}

} // namespace lowtide::solve
