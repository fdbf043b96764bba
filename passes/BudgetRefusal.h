//===- BudgetRefusal.h - why a step does not fit ----------------*- C++ -*-===//
//
// What train-rematerialize knows of an entry, and what it says of a budget that no plan keeps: what stands in the way,
// by tensor and layer, and what would help.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Solve/Portfolio/OffloadBaselines.h"

namespace lowtide {

/// One entry, posed, and its schedules.
struct PosedEntry {
  mlir::func::FuncOp step;
  StepProblem problem;
  solve::SolvedStep *solved;
  /// The other memories in the order of its graph.
  llvm::SmallVector<Space, 2> spaces = {};
  /// Its schedules with values in another memory, for several prices of copies, and what of the device's memory such
  /// values pass through: those that every schedule moves, and any.
  std::vector<solve::SolvedStep *> offloads = {};
  /// What others do with such a memory; null without one.
  std::shared_ptr<solve::OffloadBaselines> baselines = {};
  uint64_t leastStagingBytes = 0, stagingBytes = 0;
  /// What values may take of each of them.
  llvm::SmallVector<uint64_t, 2> waitingBytes = {};
  /// Of the smallest plans of all entries together (EntryStaging::setSmallest).
  uint64_t smallestStagingBytes = 0;

  /// Makes `plan` of the step, once.
  void apply(const solve::FittedSchedule &plan, FactsTable &facts);
  /// Of the plans with values in other memories that have room for them the one with the smallest arena; nothing: none.
  std::optional<solve::PackedPlan> findSmallestElsewhere() const;
  /// The plan with the smallest arena that was found, and that arena with what copies pass through.
  std::pair<solve::PackedPlan, uint64_t> findSmallest() const;
  uint64_t getSmallestBytes() const { return findSmallest().second; }
  /// Whether one of its schedules, with or without values in another memory, has an arena of that many bytes.
  bool packsInto(uint64_t bytes) const;
};

/// What copies of all entries of a module pass through, in bytes of the device: what every schedule moves, and
/// anything.
struct EntryStaging {
  uint64_t least = 0, most = 0;

  static EntryStaging of(llvm::ArrayRef<PosedEntry> entries);
  /// Whether the smallest plans need less with values in another memory than without. Looks for all smallest arenas,
  /// which takes long.
  bool isWorthIt(llvm::ArrayRef<PosedEntry> entries) const;
  /// Tells all entries which of the two their smallest plans count, before one is refused.
  static void setSmallest(llvm::MutableArrayRef<PosedEntry> entries);
};

/// Bytes of a budget: for the transient arena, for everything else, and of the former what no schedule may use.
struct BudgetRoom {
  uint64_t transientBytes;
  StaticBytes statics;
  uint64_t reserveBytes;
  bool isPart = false; ///< asked for as a part of what the step takes without it

  uint64_t sum() const { return transientBytes + statics.sum(); }
  /// Of the transient arena what a schedule may use.
  uint64_t getUsableBytes() const { return transientBytes - std::min(reserveBytes, transientBytes); }
};

/// Refuses a budget that no schedule of `entry` keeps; `strategy` is the one that was asked for. Nothing can be done
/// with the entry afterwards.
mlir::LogicalResult refuseBudget(PosedEntry &entry, const BudgetRoom &room, llvm::StringRef strategy,
                                 FactsTable &facts);
/// Refuses a budget that what lies outside the transient arena exceeds; `reserveBytes` and `isPart` as in BudgetRoom.
mlir::LogicalResult refuseStatics(mlir::ModuleOp module, llvm::ArrayRef<PosedEntry> entries, uint64_t budgetBytes,
                                  const StaticBytes &statics, uint64_t reserveBytes, bool isPart);

} // namespace lowtide
