//===- FileTensors.h - what lies in a file from step to step ----*- C++ -*-===//
//
// Parameters and optimizer state need not be on the device while no instruction reads them: they are loaded before
// their readers, and stored when the step has replaced them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/StepProblem.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace lowtide {

/// Names of tensors that lie in the file.
using FileNames = llvm::SetVector<mlir::StringAttr>;

/// A tensor that may lie in a file from step to step.
struct FileTensor {
  mlir::StringAttr name;
  /// What it takes there.
  uint64_t bytes;
  /// Optimizer state; otherwise a parameter, or another tensor that starts from the model file.
  bool isState;
};

/// What outlives the steps and may lie in a file, the largest first: every entry that has it reads it, or replaces it
/// by what an instruction makes.
std::vector<FileTensor> listFileTensors(mlir::ModuleOp module);

/// Which tensors lie in the file, and whether loops load them in each round; otherwise they are there while a loop
/// runs.
struct FilePlaces {
  FileNames names;
  bool entersLoops = false;

  bool operator==(const FilePlaces &other) const = default;
};

/// Lets tensors lie in the file: each has its memory in its type, and every entry loads it before its first reader.
void moveToFile(mlir::ModuleOp module, const FilePlaces &places);

/// A step as it was fitted, and the bytes of its budget that its arena does not take.
struct FittedEntry {
  mlir::func::FuncOp step;
  uint64_t spareBytes;
};

/// Which of the tensors in the file find room on the device while the fitted steps stay as they are: those that are
/// moved most often for their bytes come first.
mlir::FailureOr<FileNames> findRoomOnDevice(llvm::ArrayRef<FittedEntry> entries, const FactsTable &facts,
                                            const FileNames &names);

} // namespace lowtide
