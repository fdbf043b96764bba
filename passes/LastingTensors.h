//===- LastingTensors.h - what lies elsewhere from step to step -*- C++ -*-===//
//
// Parameters and optimizer state need not be on the device while no instruction reads them: they are loaded before
// their readers, and stored when the step has replaced them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CarriedSums.h"
#include "lowtide/Analysis/StepProblem.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace lowtide {

/// Names of tensors that lie in another memory: a file, or pinned memory of the host.
using TensorNames = llvm::SetVector<mlir::StringAttr>;

/// A tensor that may lie in another memory from step to step.
struct LastingTensor {
  mlir::StringAttr name;
  /// Without what aligns it.
  uint64_t bytes;
  /// Optimizer state; otherwise a parameter, or another tensor that starts from the model file.
  bool isState;
};

/// What outlives the steps and may lie in another memory, the largest first: every entry that has it reads it, or
/// replaces it by what an instruction makes.
std::vector<LastingTensor> listLastingTensors(mlir::ModuleOp module);

/// Which tensors lie in which other memory, and whether loops load them in each round; otherwise they are there while a
/// loop runs.
struct TensorPlaces {
  llvm::MapVector<mlir::StringAttr, Space> spaces;
  bool entersLoops = false;
  /// Of what loops add up, by number in `listCarriedSums`, what each round loads and stores, and where.
  llvm::MapVector<unsigned, Space> sums = {};

  bool operator==(const TensorPlaces &other) const;
};

/// Lets tensors lie in their places: each has its memory in its type, and every entry loads it before its first reader.
void moveElsewhere(mlir::ModuleOp module, const TensorPlaces &places);

/// A number is no burden: what a copy begins with takes longer than all of it.
inline constexpr uint64_t leastMovedBytes = 1 << 14;

/// The type of the same tensor in another memory.
mlir::RankedTensorType getTypeIn(mlir::RankedTensorType type, Space space);
/// Loads `value`, which lies in another memory, before the first of its readers in the block: those of `uses` read it
/// on the device, as `type`.
void loadForReaders(mlir::Block &block, mlir::Value value, mlir::RankedTensorType type,
                    llvm::ArrayRef<mlir::OpOperand *> uses);

/// A step as it was fitted, and the bytes of its budget that its arena does not take.
struct FittedEntry {
  mlir::func::FuncOp step;
  uint64_t spareBytes;
};

/// Which of the tensors in other memories find room on the device while the fitted steps stay as they are: those that
/// are moved most often for their bytes come first.
mlir::FailureOr<TensorNames> findRoomOnDevice(llvm::ArrayRef<FittedEntry> entries, const FactsTable &facts,
                                              const TensorPlaces &places);

} // namespace lowtide
