//===- GpuSearch.h - additions by the row they land in ----------*- C++ -*-===//
//
// What searching and sorting have in common: which updates land in which row, and how a warp adds them to a row.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "GpuMovement.h"

namespace lowtide::codegen {

/// Lanes of a warp, warps of a block, columns of a lane at most.
inline constexpr int64_t kSearchWarp = 32, kSearchWarps = 4, kSearchColumns = 8;

struct SearchShape {
  mlir::RankedTensorType updates, result;
  /// Of the result: the updates' dimension that each dimension copies, or -1.
  llvm::SmallVector<int64_t> passed;
  /// Dimensions of the result that an index decides, and that are copied; dimensions of the updates that are not.
  llvm::SmallVector<int64_t> decided, copied, free;
  int64_t rows, columns, count;

  explicit SearchShape(ScatterInterface op);
  static llvm::SmallVector<int64_t> extents(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> dims);
  /// Whether every row receives a good share of the updates.
  bool hasFewRows() const { return rows <= kSearchWarps; }
  int64_t columnsPerLane() const;
  int64_t pieces() const;
  int64_t rowBlocks() const;
};

class SearchEmitter {
public:
  SearchEmitter(KernelContext &context, ScatterInterface op)
      : function(context.function), evaluator(context.evaluator), op(op), shape(op),
        scalars(function.builder, function.loc), pointer(function.getPointer(function.getNumPointers() - 1)),
        yielded(context.kernel.getYield().getOperand(0)) {}
  /// A warp per row looks through all places.
  void emitSearch();
  /// Places, sorted by row: the first of two kernels.
  void emitSort();
  /// A warp per row finds its places among the sorted ones.
  void emitSorted();

private:
  mlir::Value i32(int32_t value);
  mlir::Value toWord(mlir::Value index);
  mlir::Value toIndex(mlir::Value word);
  /// Row in which the update at `place` lands, and whether it does.
  std::pair<mlir::Value, mlir::Value> target(mlir::Value place);
  /// Sets the warp's row and its lanes' columns; what is there before any update.
  llvm::SmallVector<mlir::Value> enterRow();
  /// Adds the updates at `place`.
  llvm::SmallVector<mlir::Value> addUpdate(mlir::Value place, mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> getIndex(mlir::Value column);
  void writeRow(mlir::ValueRange sums);
  /// Bits that any lane of the warp has.
  mlir::Value gather(mlir::Value bits);
  mlir::Value found(mlir::Value place);
  llvm::SmallVector<mlir::Value> addHits(mlir::Value bits, mlir::Value firstPlace, mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> when(mlir::Value condition, mlir::ValueRange otherwise,
                                      llvm::function_ref<llvm::SmallVector<mlir::Value>()> body);
  mlir::Value lowerBound(mlir::Value keys, mlir::Value key);

  KernelFunction &function;
  RegionEvaluator &evaluator;
  ScatterInterface op;
  SearchShape shape;
  ScalarBuilder scalars;
  mlir::Value pointer;
  /// What the kernel makes of the sums: themselves, or a function of each element.
  mlir::Value yielded;
  mlir::Value lane, row, active;
  /// The columns of this lane; a lane without one of its own goes along with the last one.
  llvm::SmallVector<mlir::Value> wanted, columns;
};

} // namespace lowtide::codegen
