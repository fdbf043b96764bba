//===- OffloadBaselines.h - published ways to use two memories --*- C++ -*-===//
//
// What others do where values may wait in another memory, on the same graph, with the same count of bytes and the same
// lanes: to compare with, and to be no slower than.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Portfolio/Offload.h"

#include <array>
#include <functional>

namespace lowtide::solve {

/// In the order of the names. All but the first two store what the backward pass reads once no forward instruction
/// does, and load it before its first reader there; they differ in what they store.
enum class OffloadStrategy {
  /// Everything stays on the device.
  KeepAll,
  /// Nothing is stored, what does not fit runs again: the search without another memory.
  Recompute,
  StoreAll,
  /// Everything is stored; then, the smallest first, what finds room stays (DeepSpeed's offload of activations).
  StoreLargest,
  /// What is made in the first layers, of one up to all.
  StoreLayers,
  /// In every layer its largest values, up to a part of its bytes: eighths.
  StoreFractions,
};
inline constexpr std::array<const char *, 6> offloadStrategyNames = {
    "keep-all", "recompute", "store-all", "store-largest", "store-layers", "store-fractions"};

/// Plans of these strategies for one step whose values may be loaded (addLoads).
class OffloadBaselines {
public:
  /// `whole`: the plan without recomputation, whose order and loops these plans keep. The graph outlives this.
  OffloadBaselines(const StepGraph &graph, const FittedSchedule &whole, const PackingOptions &packing);

  /// The cheapest plan of a strategy that stores in the first memory, loads moved up, in `budgetBytes` of the device
  /// and `roomBytes` of the memories; nothing if it has none that takes less than `mostSeconds`.
  std::optional<PackedPlan> find(OffloadStrategy strategy, uint64_t budgetBytes, std::span<const uint64_t> roomBytes,
                                 double mostSeconds) const;

private:
  /// A value that waits for the backward pass, and what brings it back.
  struct Waiting {
    uint32_t value, load;
    /// Positions in the order: of the last forward reader, and of the first backward one.
    uint32_t from, until;
    /// The layer that makes it.
    uint32_t layer;
  };

  /// Makes `schedule` the order with some of `waiting` stored; where in it each of these is loaded.
  std::vector<uint32_t> insertLoads(const std::vector<char> &isStored, Schedule &schedule) const;
  /// Counts a plan's schedule; whether it is valid and stays within the budget.
  bool fits(FittedSchedule &plan, uint64_t budgetBytes) const;
  /// Calls `take` with the plans of a strategy within the budget. Of one that `isWanted` refuses, asked with its
  /// schedule alone, nothing is counted.
  void forEachPlan(OffloadStrategy strategy, uint64_t budgetBytes,
                   const std::function<bool(const FittedSchedule &)> &isWanted,
                   const std::function<void(const FittedSchedule &)> &take) const;

  const StepGraph &graph;
  /// Its loops as plain operations.
  const StepGraph plain;
  const FittedSchedule whole;
  const PackingOptions packing;
  /// In the order in which they are made.
  std::vector<Waiting> waiting;
  uint32_t layers = 0;
};

} // namespace lowtide::solve
