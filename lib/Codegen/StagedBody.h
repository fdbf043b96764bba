//===- StagedBody.h - a staged kernel's values at a place -------*- C++ -*-===//
//
// What the emitters "row" and "column" share on every target: indices of values from the current kept element and a
// position in the reduced dimensions, reductions that are known for that element, stores of the results.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Emitters.h"

namespace lowtide::codegen {

class StagedBody {
public:
  StagedBody(KernelContext &context, const StagedDomain &domain)
      : context(context), function(context.function), evaluator(context.evaluator), domain(domain),
        shape(domain.getShape()) {}

protected:
  /// Whether `value` has the full shape; else it has that of the kept dimensions.
  bool isFull(mlir::Value value) { return dropUnitExtents(value) == domain.extents; }
  bool hasResults(bool full);
  llvm::SmallVector<mlir::Value> fullIndex(mlir::Value tensor, mlir::Value outer, mlir::Value inner);
  llvm::SmallVector<mlir::Value> keptIndex(mlir::Value tensor) { return expand(tensor, kept); }
  /// The current kept element; `column` is null in a row.
  void setKept(mlir::Value outerKept, mlir::Value column);
  /// The same, for lane `lane` of the tile of columns that begins at `firstColumn`.
  void setColumn(mlir::Value outerKept, mlir::Value firstColumn, mlir::Value lane);
  /// Operands of `ops` at a position.
  llvm::SmallVector<mlir::Value> getElements(llvm::ArrayRef<ReductionInterface> ops, mlir::Value outer,
                                             mlir::Value inner);
  /// From now on `op` is what `load` gives, for the current kept element.
  void bindReduction(ReductionInterface op, std::function<mlir::Value()> load);
  /// Writes the results of one form at a position.
  void storeResults(bool full, mlir::Value outer, mlir::Value inner);
  /// The same at `lanes` places, each of which `enter` makes the current one and gives the position of: everything is
  /// computed before anything is written.
  void storeVector(bool full, int64_t lanes,
                   llvm::function_ref<std::pair<mlir::Value, mlir::Value>(int64_t lane)> enter);

  KernelContext &context;
  KernelFunction &function;
  RegionEvaluator &evaluator;
  const StagedDomain &domain;
  ReductionShape shape;
  /// Index of the current kept element, by kept dimension.
  llvm::SmallVector<mlir::Value> kept;
  /// A reduction was needed elsewhere than at the current kept element: the function is unusable.
  bool failed = false;

private:
  /// `column`: a position in the last `numColumns` kept dimensions.
  void setPlace(mlir::Value outerKept, size_t numColumns, mlir::Value column);
  mlir::Value getResultPointer(unsigned result);
  llvm::SmallVector<mlir::Value> expand(mlir::Value tensor, llvm::ArrayRef<mlir::Value> parts);
};

} // namespace lowtide::codegen
