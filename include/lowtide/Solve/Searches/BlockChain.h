//===- BlockChain.h - what each block of a step keeps -----------*- C++ -*-===//
//
// Plans for any budget from a table: what blocks keep for their backward part,
// and which of them run again from a checkpoint.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Searches/Blocks.h"

namespace lowtide::solve {

/// One way to run some blocks, from what stands at the boundary before them.
struct BlockChoice {
  /// The block after the last of them.
  uint32_t end = 0;
  /// Bytes that wait for the backward part, the boundary after them among them; most bytes in their forward and
  /// backward part, next to what blocks before them keep.
  int64_t keptBytes = 0, peakBytes = 0;
  /// What runs again in their backward part.
  double seconds = 0;
  /// Which of the chain's saved sets says what they keep.
  int16_t set = 0;
};

class BlockChain {
public:
  BlockChain(const StepGraph &graph, std::span<const uint32_t> order);

  const Blocks &getBlocks() const { return blocks; }
  /// Those that begin with `block`: none is worse than another in everything.
  const std::vector<BlockChoice> &getChoices(uint32_t block) const { return choices[block]; }

  /// The cheapest plan for peaks of about `budgetBytes`, by estimates that hold for each block alone: its exact peak
  /// may be above. Nothing if there is only one block, or no plan. Budgets that rise from call to call are cheapest.
  std::optional<FittedSchedule> plan(uint64_t budgetBytes);

private:
  /// A step back in a range of blocks: some of them by a choice, or a checkpoint before `end` (`set` is negative).
  struct Cell {
    float seconds;
    int16_t set, end;
  };
  /// Values that are recomputed before a backward part, and of which blocks nothing else is kept from then on.
  struct Rerun {
    std::vector<uint32_t> values;
    uint32_t begin, end;
  };

  void listChoices();
  void measure(const std::vector<char> &saved, int16_t set);
  void solve(uint64_t mostBytes);
  std::vector<Cell> &at(uint32_t first, uint32_t last) { return table[first * blocks.size() + last]; }
  int64_t toUnits(int64_t bytes) const { return std::max<int64_t>(0, (bytes + unitBytes / 2) / unitBytes); }
  int64_t countCrossing(uint32_t from, uint32_t to) const;
  void trace(uint32_t first, uint32_t last, int64_t units, bool isFirstRun);
  std::optional<FittedSchedule> write() const;

  const StepGraph &graph;
  std::span<const uint32_t> order;
  const Blocks blocks;
  /// Of each value, whether it is kept.
  std::vector<std::vector<char>> sets;
  std::vector<std::vector<BlockChoice>> choices;
  /// Per block: seconds to run its forward part again, whole or for its own backward part alone; least peak of it.
  std::vector<double> rerunSeconds, lastRerunSeconds;
  std::vector<int64_t> forwardBytes;
  /// For blocks `first` to `last` and each number of units of memory, how to run them.
  std::vector<std::vector<Cell>> table;
  int64_t unitBytes = 0;
  /// The plan at hand: per value, whether it is kept from its first run; per block, what runs before its backward part.
  std::vector<char> isKept;
  std::vector<std::vector<Rerun>> reruns;
};

} // namespace lowtide::solve
