//===- HeadRows.h - logits under other shapes -------------------*- C++ -*-===//
//
// What patterns of loss heads share: which products make logits, and how exporters reshape and transpose what is made
// of them on the way to the loss.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>

namespace lowtide::nn {

int64_t countBytes(mlir::RankedTensorType type);

/// Whether keeping the result of `product` whole takes clearly more bytes than a chunk of its rows next to the weight's
/// gradient, as it is added up, and one term of it.
bool isLargeHead(DotOp product);

/// Whether `value` [rows, classes] is a product of rows with one matrix of more classes than features, or is made of
/// one element by element; a large one unless `always`.
bool isHeadRows(mlir::Value value, bool always);

/// Whether each result of `op` along dimension `classes` is made of what operands of its shape hold there.
bool keepsRows(mlir::Operation *op, int64_t classes);

/// Whether `value` [rows, classes], which no head makes, is combined with what `isHeadRows` takes, row by row.
bool meetsHead(mlir::Value value, bool always);

/// Whether `value` is reduced by way of shapes, orders and elements alone, as for a loss, and no layer reads it.
bool feedsLoss(mlir::Value value);

/// A splat of another shape; null if `value` is none.
Expr resizeSplat(Expr at, mlir::Value value, llvm::ArrayRef<int64_t> shape);

/// What `addHeadFlattening` does for two heads that are stacked.
void addHeadUnstacking(mlir::RewritePatternSet &patterns, bool always);

/// A product whose loss reads it transposed, too, is two.
void addHeadTurning(mlir::RewritePatternSet &patterns, bool always);

/// A change of shape or, with a permutation, of order.
struct HeadMove {
  llvm::SmallVector<int64_t> from, to, permutation;
  bool operator==(const HeadMove &) const = default;
};

/// A tensor of the elements of rows [rows, classes] in another shape or order.
class HeadView {
public:
  /// Nothing where `value` is not made so of what `isHeadRows` takes.
  static std::optional<HeadView> get(mlir::Value value, bool always);

  mlir::Value rows;
  /// From rows on; those that undo one another are left out.
  llvm::SmallVector<HeadMove> moves;
  /// The reshapes and transposes that there are.
  llvm::SmallVector<mlir::Operation *> ops;

  bool isPlain() const { return moves.empty(); }
  int64_t getNumRows() const { return rowsType().getDimSize(0); }
  int64_t getNumClasses() const { return rowsType().getDimSize(1); }
  llvm::ArrayRef<int64_t> shape() const { return isPlain() ? rowsType().getShape() : llvm::ArrayRef(moves.back().to); }
  /// Rows and classes of a tensor of the view's shape, and the other way round.
  Expr undo(Expr x) const;
  Expr redo(Expr x) const;
  bool hasSameMoves(const HeadView &other) const {
    return rowsType().getShape() == other.rowsType().getShape() && moves == other.moves;
  }
  /// The dimension that counts classes; nothing where they are mixed with rows, or rows changed their order.
  std::optional<int64_t> findClassDim() const;

private:
  void add(HeadMove move);
  mlir::RankedTensorType rowsType() const { return llvm::cast<mlir::RankedTensorType>(rows.getType()); }
};

} // namespace lowtide::nn
