//===- BatchLoops.h - a step on parts of its batch --------------*- C++ -*-===//
//
// Rewrites a step so that everything with one row per sample is computed part by part, in loops that add up what is a
// sum over the samples.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Analysis/BatchTracking.h"

namespace lowtide {

/// What the rewrite did, for remarks.
struct BatchLoopFacts {
  unsigned loops = 0;
  /// Values that rounds add up, and rows that they lay one after another.
  unsigned sums = 0, rows = 0;
  uint64_t sumBytes = 0, rowBytes = 0;
  /// Ops that an earlier loop computes and a later one computes again.
  unsigned repeatedOps = 0;
};

/// 1. Sums over the samples that are needed whole (by an update, a result, an op that is not linear, or by another
/// loop)
///    are what a loop is for. A sum that a loop needs before it starts (the number of labels that count, say) is made
///    by a loop before it; every other by the last.
/// 2. A loop computes what its sums need and nothing else, each op once a round, on `samples / parts` rows.
/// 3. What does not depend on samples stays outside; where an op inside needs rows of it, a value that repeats itself
/// is
///    built smaller, any other is cut into slices.
///
/// `parts` must divide the samples. 16-bit sums are added up in f32. Fails, with a diagnostic, if a result of the step
/// is neither a sum nor rows nor a state.
mlir::FailureOr<BatchLoopFacts> buildBatchLoops(mlir::func::FuncOp step, const BatchTracking &tracking, int64_t parts);

/// The same of rows that ops of `block` have (RowRegion): `parts` rounds, in each of which sums go over `tiles` equal
/// tiles of rows, one after the other, so that bits depend on the tiles and not on the rounds.
mlir::FailureOr<BatchLoopFacts> buildRowLoops(mlir::Block &block, mlir::Location loc, const BatchTracking &tracking,
                                              int64_t parts, int64_t tiles);

} // namespace lowtide
