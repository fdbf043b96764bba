//===- Offload.h - values of a step in another memory -----------*- C++ -*-===//
//
// Which memories besides the device's a target has, how much of them may be used, and the plan that uses them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BudgetRefusal.h"
#include "lowtide/Interfaces/SpaceInterface.h"
#include "lowtide/Interfaces/TargetInfo.h"
#include "lowtide/Solve/Portfolio/Offload.h"

#include <map>

namespace lowtide {

/// Attribute of a step that was fitted where values may wait in another memory: its estimate, a dictionary.
inline constexpr llvm::StringLiteral estimateAttrName = "train.estimate";

/// What such a step takes; bytes are those of all entries together where they say so.
struct StepEstimate {
  /// With its lanes.
  double seconds = 0;
  /// Of the device all told, in pinned memory of the host, and in a file.
  uint64_t deviceBytes = 0, pinnedBytes = 0, fileBytes = 0;
  unsigned recomputed = 0;
  uint64_t loadedBytes = 0, storedBytes = 0;
  /// No plan of its kernels in their order takes less with what lies in other memories where it is; 0: not asked.
  double leastSeconds = 0;

  static std::optional<StepEstimate> get(mlir::func::FuncOp step);
  void set(mlir::func::FuncOp step) const;
};

/// Another memory, in which values of a step may wait, and tensors lie from step to step.
struct OffloadRoom {
  OtherMemory memory;
  uint64_t bytes;

  /// What `--host-budget` and `--disk-budget` (texts, empty: not given) are on the target: pinned memory of a GPU's
  /// host, a file, in this order. Fails, with a diagnostic, for one that the target has no use for.
  static mlir::FailureOr<llvm::SmallVector<OffloadRoom, 2>>
  list(mlir::ModuleOp module, const TargetInfo &target, llvm::StringRef hostBudget, llvm::StringRef diskBudget);
  /// Attribute of a module: bytes of a memory that its plan may take, an i64.
  static llvm::StringRef getBudgetAttrName(Space space);
  /// Whether a copy of any size takes no longer to this memory than to the other one, and back.
  bool isAsFastAs(const OffloadRoom &other) const;
  /// Whether it has place for all tensors that may lie there, and for every value that any one step makes.
  bool holdsEverything(mlir::ModuleOp module) const;
};

/// Of each other memory that moves reach, the bytes of the largest value there.
using LargestMoves = std::map<Space, uint64_t>;
LargestMoves findMoves(mlir::func::FuncOp step);
/// Memory of the device through which values pass on their way to a file and back. Those of a GPU pass through memory
/// of the host that is there in any case.
uint64_t countStagingBytes(const TargetInfo &target, const LargestMoves &moves);

/// Prepares an entry's searches with loads: the rooms, in the order of its graph, are left for values that wait.
void poseOffloads(PosedEntry &entry, const TargetInfo &target, llvm::ArrayRef<OffloadRoom> rooms,
                  solve::SolvedSteps &solved);
/// The plan that takes the least time in `transientBytes` of the device, with values in the rooms or without; nothing:
/// none fits. Where all that fit take `mostSeconds` or more: nothing, or one of them.
std::optional<solve::PackedPlan> chooseOffload(PosedEntry &entry, solve::SolvedSteps &solved, uint64_t transientBytes,
                                               double mostSeconds);

} // namespace lowtide
