//===- ReductionOrder.h - the order in which reductions combine -*- C++ -*-===//
//
// The one definition of every reduction's order (docs/rationale/kernels.md, "Order of reductions"). All emitters
// build their loops from these parts, so that a fused and a lone reduction give the same bits.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "RegionEvaluator.h"

namespace lowtide::codegen {

/// Lanes of a trailing reduction; elements of one of its segments; rows of one block of a leading reduction.
inline constexpr int64_t kLanes = 16, kSegment = 256, kBlock = 64;

/// The loops that a reduction stands for. Dimensions of extent 1 are left out of both lists.
struct ReductionShape {
  /// Reduced dimensions of the operand, ascending, without those in `inner`.
  llvm::SmallVector<int64_t> outer;
  /// The last contiguous run of reduced dimensions.
  llvm::SmallVector<int64_t> inner;
  int64_t outerCount = 1, innerCount = 1;
  /// Whether no kept dimension follows.
  bool trailing = true;

  static ReductionShape get(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> reduced);
};

/// The type that partial results are held in: f32 for 16-bit floats.
mlir::Type accumulatorType(mlir::Type elementType);

/// Reductions over the same dimensions of operands of the same shape, computed in one traversal.
class ReductionSet {
public:
  ReductionSet(RegionEvaluator &evaluator, llvm::ArrayRef<ReductionInterface> ops, int64_t outerCount,
               int64_t innerCount);

  /// One operand element per op, at linear positions in the outer and inner reduced dimensions (and, in a tile, at a
  /// column). Called at the place of the loop body, once per element.
  using Elements = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value outer, mlir::Value inner)>;
  using TileElements =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value outer, mlir::Value inner, mlir::Value column)>;

  /// The order named "trailing"; one result per op.
  llvm::SmallVector<mlir::Value> emitTrailing(Elements elements);
  /// The order named "leading", for one kept element.
  llvm::SmallVector<mlir::Value> emitLeading(Elements elements);
  /// The same for `width` ≤ `maxWidth` neighbouring kept elements at once. Returns arrays of accumulators;
  /// `loadTile` reads one.
  llvm::SmallVector<mlir::Value> emitLeadingTile(mlir::Value width, int64_t maxWidth, TileElements elements);
  mlir::Value loadTile(unsigned op, mlir::Value array, mlir::Value column);

private:
  llvm::SmallVector<mlir::Value> initials();
  llvm::SmallVector<mlir::Value> combine(mlir::ValueRange accumulators, mlir::ValueRange elements);
  llvm::SmallVector<mlir::Value> emitSegment(mlir::Value outer, mlir::Value outerEnd, mlir::Value inner,
                                             mlir::ValueRange lanes, Elements elements);
  llvm::SmallVector<mlir::Value> allocate(int64_t count);
  llvm::SmallVector<mlir::Value> loadAll(mlir::ValueRange arrays, mlir::Value offset);
  void storeAll(mlir::ValueRange arrays, mlir::Value offset, mlir::ValueRange values);
  llvm::SmallVector<mlir::Value> finish(llvm::SmallVector<mlir::Value> totals);

  RegionEvaluator &evaluator;
  KernelFunction &function;
  llvm::SmallVector<ReductionInterface> ops;
  int64_t outerCount, innerCount;
  ScalarBuilder scalars;
  /// Per op: type of the result's elements, type of the accumulator.
  llvm::SmallVector<mlir::Type> resultTypes, types;
};

/// One element of one reduction's result: loops over the reduced elements of operand 0.
mlir::Value emitReduction(RegionEvaluator &evaluator, ReductionInterface op, mlir::ValueRange index);

} // namespace lowtide::codegen
