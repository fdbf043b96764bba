//===- GpuBatch.h - many small kernels in one launch ------------*- C++ -*-===//
//
// A kernel op of emitter "batch" holds kernels that have nothing to do with one another and one form. On a GPU they
// share their code: a block finds out which of them it works for, and takes that one's pointers from a table.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Emitters.h"

namespace lowtide::codegen {

/// The kernels of a batch.
struct Batch {
  /// Of one of them: its operands and results, as numbers of the whole kernel's, and its number of elements (flat).
  struct Item {
    llvm::SmallVector<unsigned> operands, results;
    int64_t count = 0;
  };
  llvm::SmallVector<Item> items;
  /// Operands of the whole kernel.
  unsigned numOperands = 0;
  /// Whether the items differ in their number of elements: each is one loop over positions then.
  bool isRagged = false;
  /// The first one, as a kernel op in a block of its own.
  std::unique_ptr<mlir::Block> block;
  mutable nn::KernelOp first;

  /// Fails, silently, when the parts of the body have different forms.
  static mlir::FailureOr<Batch> get(nn::KernelOp kernel);
  /// Operands that may be overwritten, by result, of the whole kernel.
  llvm::SmallVector<llvm::SmallVector<int, 4>> findInPlace(nn::KernelOp kernel, bool staged) const;
};

/// Blocks of all items when each gets as many as it needs, and their first blocks.
Grid getGpuRaggedGrid(const Batch &batch, llvm::SmallVectorImpl<int64_t> &firstBlocks);
/// A ragged batch: one loop over positions per item.
void emitGpuRagged(const Batch &batch, KernelFunction &function);
/// The number of the item that a block works for when all have `blocks` blocks; `function` then counts its own ones.
mlir::Value enterItem(KernelFunction &function, int64_t blocks);
/// Makes the pointers of item `item` those of the function: operands, then results.
void takePointers(const Batch &batch, KernelFunction &function, mlir::Value item);

/// Computes what a kernel makes of single values before its loops do.
void hoistScalars(KernelContext &context);
/// Lanes of a vector of a flat kernel: elements of its narrowest array in 16 bytes.
int64_t getFlatLanes(nn::KernelOp kernel);
/// Elements [`first`, `first` + `lanes`) of all results of a flat kernel.
void emitFlatVector(KernelContext &context, mlir::Value first, int64_t lanes);

} // namespace lowtide::codegen
