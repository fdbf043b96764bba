//===- ReductionOrder.h - the order in which reductions combine -*- C++ -*-===//
//
// The one definition of every reduction's order (docs/rationale/kernels.md,
// "Order of reductions"). All emitters build their loops from these parts, so
// that a fused and a lone reduction give the same bits.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RegionEvaluator.h"

namespace lowtide::codegen {

/// Lanes of a trailing reduction; elements of one of its segments; rows of one
/// block of a leading reduction.
inline constexpr int64_t kLanes = 16, kSegment = 256, kBlock = 64;

/// The loops that a reduction stands for, over the operand's dimensions.
struct ReductionShape {
  /// Reduced dimensions of extent > 1, ascending, without those in `inner`.
  llvm::SmallVector<int64_t> outer;
  /// The last contiguous run of reduced dimensions (dimensions of extent 1 do
  /// not interrupt it).
  llvm::SmallVector<int64_t> inner;
  int64_t outerCount = 1, innerCount = 1;
  /// Whether `inner` reaches the end of memory rows: lanes run along it. Else
  /// kept dimensions follow.
  bool trailing = true;

  static ReductionShape get(ReductionInterface op);
};

/// The type that partial results are held in: f32 for 16-bit floats.
mlir::Type accumulatorType(mlir::Type elementType);

/// One element of the result: loops over the reduced elements of operand 0.
mlir::Value emitReduction(RegionEvaluator &evaluator, ReductionInterface op,
                          mlir::ValueRange index);

} // namespace lowtide::codegen
