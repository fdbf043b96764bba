//===- StagedPlan.h - what a staged kernel does in which traversal -*- C++ -*-===//
//
// The analysis for emitters "row" and "column"; writes no code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Emitters.h"
#include "ReductionOrder.h"
#include "llvm/ADT/MapVector.h"

namespace lowtide::codegen {

/// Reductions by level, and what is kept between their traversals.
struct StagedPlan {
  StagedPlan(nn::KernelOp kernel, const StagedDomain &domain) : kernel(kernel), domain(domain) {
    findLevels();
    findWriter();
    findBuffers();
  }

  struct Buffer {
    unsigned traversal; // that computes and stores it
    int64_t elements;
    uint64_t offset; // in the scratch
  };

  /// Traversal t computes these reductions.
  llvm::SmallVector<llvm::SmallVector<ReductionInterface>> traversals;
  /// The traversal that writes the results of the full shape: the only one, where none depends on a reduction, else one
  /// more. (Operands that an earlier traversal reads may lie under a result, those that a later one reads may not.)
  unsigned writer = 0;
  llvm::MapVector<mlir::Value, Buffer> buffers;
  /// 0: the buffers are on the stack.
  uint64_t scratchBytes = 0;

private:
  unsigned levelOf(mlir::Value value);
  void findLevels();
  void findWriter();
  void findBuffers();

  nn::KernelOp kernel;
  const StagedDomain &domain;
  llvm::DenseMap<mlir::Value, unsigned> levels;
};

} // namespace lowtide::codegen
