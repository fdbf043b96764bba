//===- RerunOrder.cpp - what runs again between two instructions ----------===//
//
// Breadth first over the sets of values that are there. A value goes where some
// operation does not fit beside it, and only then: until it is in the way, what
// stays does no harm.
//
//===----------------------------------------------------------------------===//
#include "RerunOrder.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace lowtide::solve {

namespace {

constexpr size_t mostSets = 20000;
constexpr uint32_t none = UINT32_MAX;

bool has(const std::vector<uint32_t> &list, uint32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// Values that come and go, a bit of a word each. One without a bit is always there, or never counted.
class Bits {
public:
  void add(uint32_t value) {
    if (!numbers.emplace(value, values.size()).second)
      return;
    values.push_back(value);
  }
  uint64_t get(uint32_t value) const {
    auto found = numbers.find(value);
    return found == numbers.end() ? 0 : uint64_t(1) << found->second;
  }
  uint64_t get(const std::vector<uint32_t> &some) const {
    uint64_t set = 0;
    for (uint32_t value : some)
      set |= get(value);
    return set;
  }
  bool fit() const { return values.size() <= 64; }
  uint64_t countBytes(const StepGraph &graph, uint64_t set) const {
    uint64_t bytes = 0;
    for (; set; set &= set - 1)
      bytes += graph.size(values[std::countr_zero(set)]);
    return bytes;
  }

private:
  std::vector<uint32_t> values;
  std::unordered_map<uint32_t, unsigned> numbers;
};

} // namespace

std::vector<uint32_t> RerunOrder::listUseful(const RerunQuestion &question) const {
  std::vector<uint32_t> ops = question.mayRun;
  auto some = [&](std::vector<uint32_t> StepOperation::*list, uint32_t value) {
    return std::any_of(ops.begin(), ops.end(), [&](uint32_t op) { return has(graph.at(op).*list, value); });
  };
  auto isUseless = [&](uint32_t op) {
    const StepOperation &operation = graph.at(op);
    return std::none_of(operation.writes.begin(), operation.writes.end(),
                        [&](uint32_t value) {
                          return counted[value] && (has(question.wanted, value) || some(&StepOperation::reads, value));
                        }) ||
           std::any_of(operation.reads.begin(), operation.reads.end(), [&](uint32_t value) {
             return counted[value] && !has(question.there, value) && !some(&StepOperation::writes, value);
           });
  };
  for (;;) {
    auto useless = std::find_if(ops.begin(), ops.end(), isUseless);
    if (useless == ops.end())
      return ops;
    ops.erase(useless);
  }
}

RerunAnswer RerunOrder::find(const RerunQuestion &question) const {
  const std::vector<uint32_t> ops = listUseful(question);
  auto isMade = [&](uint32_t value) {
    return std::any_of(ops.begin(), ops.end(), [&](uint32_t op) { return has(graph.at(op).writes, value); });
  };
  // What is wanted and not recomputed stays all the time.
  uint64_t carriedBytes = 0;
  std::vector<uint32_t> carried;
  Bits bits;
  for (uint32_t value : question.wanted)
    if (counted[value] && isMade(value)) {
      bits.add(value);
    } else if (counted[value]) {
      if (!has(question.there, value))
        return {RerunAnswer::State::Impossible};
      carried.push_back(value);
      carriedBytes += graph.size(value);
    }
  for (uint32_t op : ops)
    for (const std::vector<uint32_t> *values : {&graph.at(op).reads, &graph.at(op).writes})
      for (uint32_t value : *values)
        if (counted[value] && !has(carried, value))
          bits.add(value);
  if (!bits.fit())
    return {RerunAnswer::State::Unknown};

  const uint64_t goal = bits.get(question.wanted), start = bits.get(question.there);
  if (carriedBytes + bits.countBytes(graph, goal) > budget)
    return {RerunAnswer::State::Impossible};
  struct Origin {
    uint64_t set;
    uint32_t op;
  };
  std::unordered_map<uint64_t, Origin> origins{{start, {start, none}}};
  std::vector<uint64_t> sets{start};
  for (size_t next = 0; next < sets.size() && sets.size() <= mostSets; ++next) {
    const uint64_t set = sets[next];
    if ((set & goal) == goal) {
      RerunAnswer answer{RerunAnswer::State::Found};
      for (uint64_t at = set; at != start; at = origins.at(at).set)
        if (origins.at(at).op != none)
          answer.order.push_back(origins.at(at).op);
      std::reverse(answer.order.begin(), answer.order.end());
      return answer;
    }
    auto reach = [&](uint64_t to, uint32_t op) {
      if (origins.emplace(to, Origin{set, op}).second)
        sets.push_back(to);
    };
    const uint64_t bytes = carriedBytes + bits.countBytes(graph, set);
    bool isAllFitting = true;
    for (uint32_t op : ops) {
      const StepOperation &operation = graph.at(op);
      const uint64_t reads = bits.get(operation.reads), writes = bits.get(operation.writes), made = writes & ~set;
      if ((set & reads) != reads || !made)
        continue;
      const uint64_t needed = bytes + workspaces[op] + bits.countBytes(graph, made);
      if (needed <= budget)
        reach(set | writes, op);
      else
        isAllFitting = false;
      // The same with results over operands that go: which ones, whoever reads them later decides.
      auto handOver = [&](auto &self, size_t i, uint64_t given, uint64_t saved) -> void {
        if (i == operation.writes.size()) {
          if (saved && needed - saved <= budget)
            reach((set & ~given) | writes, op);
          return;
        }
        self(self, i + 1, given, saved);
        const uint32_t result = operation.writes[i];
        if (!(made & bits.get(result)))
          return;
        for (uint32_t read : operation.overwrites[i]) {
          if (!mayTakeOver(graph, result, read))
            continue;
          if (!counted[read] || (bits.get(read) & ~given))
            self(self, i + 1, given | bits.get(read), saved + graph.size(result));
        }
      };
      handOver(handOver, 0, 0, 0);
    }
    for (uint64_t rest = isAllFitting ? 0 : set; rest; rest &= rest - 1)
      reach(set & ~(rest & -rest), none);
  }
  return {sets.size() > mostSets ? RerunAnswer::State::Unknown : RerunAnswer::State::Impossible};
}

} // namespace lowtide::solve
