//===- CrossKernel.h - rows of a matrix and sums over its columns -*- C++ -*-===//
//
// The two parts of a kernel of emitter "cross": what is computed row by row, and column reductions of values that the
// rows read or write. One traversal of memory serves both.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Emitters.h"

namespace lowtide::codegen {

struct CrossKernel {
  /// Holds the parts; its arguments are what they read.
  std::unique_ptr<mlir::Block> block;
  /// The parts as kernel ops of their own. `columns` has one level of reductions.
  nn::KernelOp rows, columns;
  StagedDomain rowDomain, columnDomain;
  /// Operands and results of the whole that are those of a part, in the part's order.
  llvm::SmallVector<unsigned> rowOperands, columnOperands, rowResults, columnResults;
  /// Results of the whole that `columns` reads, after its other operands.
  llvm::SmallVector<unsigned> handedOn;
  /// The matrix.
  int64_t numRows = 0, numColumns = 0;

  /// Sums that each of `threads` threads keeps that share the columns.
  int64_t countSums(int64_t threads) const;
  /// Fails, silently, where the body has another form.
  static mlir::FailureOr<CrossKernel> get(nn::KernelOp kernel);
};

} // namespace lowtide::codegen
