//===- OrderSearch.h - the same plan in another order -----------*- C++ -*-===//
//
// Moves single operations of a plan: other live ranges, no byte more at the peak.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Model/Walk.h"

#include <deque>
#include <random>

namespace lowtide::solve {

/// Orders of one plan's operations, those of its loops' bodies included. None has a larger peak, and all take the time
/// of the plan. The same seed gives the same orders.
class OrderSearch {
public:
  OrderSearch(const StepGraph &graph, const FittedSchedule &plan, uint64_t seed);

  /// `plan`, an order of these operations, after up to `moves` moves of one operation each. Moves that leave more bytes
  /// alive near the peak than `looseness` times as many as before are not made.
  FittedSchedule disturb(const FittedSchedule &plan, unsigned moves, double looseness);

private:
  /// The step or the body of a loop, its own loops as plain operations.
  struct Level {
    Level(StepGraph given, uint64_t peakBytes) : graph(std::move(given)), peakBytes(peakBytes), walk(graph) {}

    const StepGraph graph;
    const uint64_t peakBytes;
    Walk walk;
  };

  void addLevels(const StepGraph &graph, const FittedSchedule &plan);
  bool tryMove(Level &level, FittedSchedule &plan, double looseness);

  /// Each stays where it is: its walk refers to its graph.
  std::deque<Level> levels;
  std::mt19937_64 random;
};

} // namespace lowtide::solve
