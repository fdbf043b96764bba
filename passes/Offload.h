//===- Offload.h - values of a step in another memory -----------*- C++ -*-===//
//
// Which memory besides the device's a target has, how much of it may be used, and the plan that uses it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BudgetRefusal.h"
#include "lowtide/Interfaces/SpaceInterface.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "lowtide/Solve/Portfolio/Offload.h"

namespace lowtide {

/// Attribute of a module: bytes of another memory that its plan may take, an i64.
inline constexpr llvm::StringLiteral offloadBudgetAttrName = "train.offload_budget";

/// Attribute of a step that was fitted where values may wait in another memory: its estimate, a dictionary.
inline constexpr llvm::StringLiteral estimateAttrName = "train.estimate";

/// What such a step takes; bytes are those of all entries together where they say so.
struct StepEstimate {
  /// With its lanes.
  double seconds = 0;
  /// Of the device all told, and in the other memory.
  uint64_t deviceBytes = 0, otherBytes = 0;
  unsigned recomputed = 0;
  uint64_t loadedBytes = 0, storedBytes = 0;
  /// No plan of its kernels in their order takes less with what lies in the other memory where it is; 0: not asked.
  double leastSeconds = 0;

  static std::optional<StepEstimate> get(mlir::func::FuncOp step);
  void set(mlir::func::FuncOp step) const;
};

/// Another memory, in which values of a step may wait.
struct OffloadRoom {
  Space space;
  uint64_t bytes;
  MoveCosts costs;

  /// What `--host-budget` and `--disk-budget` (texts, empty: not given) are on the target: pinned memory of a GPU's
  /// host, a file. A plan uses one of them. Fails, with a diagnostic, for one that the target has no use for.
  static mlir::FailureOr<llvm::SmallVector<OffloadRoom, 2>>
  list(mlir::ModuleOp module, const TargetInfo &target, llvm::StringRef hostBudget, llvm::StringRef diskBudget);
};

/// The other memory that a step's moves reach, and the bytes of the largest value there; nothing: it has no move.
std::optional<std::pair<Space, uint64_t>> findMoves(mlir::func::FuncOp step);
/// Memory of the device through which values pass on their way to a file and back, the largest of which has so many
/// bytes. Those of a GPU pass through memory of the host that is there in any case.
uint64_t countStagingBytes(const TargetInfo &target, Space space, uint64_t largestBytes);

/// Prepares an entry's searches with loads.
void poseOffloads(PosedEntry &entry, const TargetInfo &target, const OffloadRoom &room, solve::SolvedSteps &solved);
/// The plan that takes the least time in `transientBytes` of the device, with values in the room or without; nothing:
/// none fits.
std::optional<solve::PackedPlan> chooseOffload(PosedEntry &entry, const OffloadRoom &room, solve::SolvedSteps &solved,
                                               uint64_t transientBytes);

} // namespace lowtide
