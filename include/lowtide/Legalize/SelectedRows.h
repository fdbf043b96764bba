//===- SelectedRows.h - rows of which data decide the number ----*- C++ -*-===//
//
// `x[mask]` has as many rows as the mask has ones. Shapes are static here: such rows have room for as many as there can
// be. The selected ones come first, in order, so that each has the number that the program gives it. What follows
// repeats the first of them: numbers that the program computes with, so that nothing of them is infinite where the
// program's are not. Rules compute with all rows; wherever rows meet each other (a sum, a softmax over them, a
// scatter), what is not selected is masked.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Interfaces/BatchSplit.h"
#include "lowtide/Legalize/NodeView.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <memory>
#include <vector>

namespace lowtide {

/// Rows that data select.
struct Selection {
  /// What selects them, [capacity] of i1.
  mlir::Value condition;
  /// Rows that there can be.
  int64_t capacity;
  /// How many there are, a scalar of i64, and for which numbers of rows there is one, [capacity] of i1.
  mlir::Value count, valid;
  /// Where each row lies in what it was selected of, [capacity] of i64.
  mlir::Value positions;
  /// A prime that stands for the number of rows wherever the file computes sizes: no other size is divisible by it.
  int64_t tag;
};

/// What the file computes of sizes: with each selection's capacity, with its tag, and with one row. What is the same
/// with capacity and tag is the same with any number.
struct Sizes {
  mlir::DenseElementsAttr atCapacity, tagged, atOne;
};

/// The values of one legalization that have such rows.
class SelectedRows {
public:
  /// The rows for which `condition` ([n] of i1) holds. The same condition makes the same selection.
  const Selection &select(nn::Expr condition);
  /// The elements for which `condition` holds, row-major: `inner` for each row of a selection, where the condition is
  /// repeated along its last dimensions.
  struct Elements {
    const Selection *selection;
    int64_t inner;
    /// Where each lies among all, [capacity · inner] of i64.
    nn::Expr positions;
  };
  Elements selectElements(nn::Expr condition);
  /// Where `elements` of a tensor of `shape` lie, a value for each dimension.
  llvm::SmallVector<nn::Expr> coordinates(const Elements &elements, llvm::ArrayRef<int64_t> shape);
  /// Whether `value` is one of these, repeated and under whatever shape: it counts from the front.
  bool isCoordinate(mlir::Value value) const;
  /// The elements that the last dimension of `indices` names in a tensor of `shape`, where it holds all of their
  /// coordinates; nothing elsewhere.
  std::optional<Elements> elementsAt(nn::Expr indices, llvm::ArrayRef<int64_t> shape) const;
  /// `value` counts the rows of `selection` at `position`.
  void mark(mlir::Value value, const Selection &selection, const BatchPosition &position) {
    rows[value] = {&selection, position};
  }
  /// `value`, made of nothing but the shape of `like`, has its rows.
  void markLike(mlir::Value value, mlir::Value like);
  bool has(mlir::Value value) const { return value && rows.contains(value); }
  bool isEmpty() const { return selections.empty(); }
  /// `value` goes, and `by` has what it had.
  void replace(mlir::Value value, mlir::Value by);

  /// The first `extent` rows of x along `dim`, of which the program says that there are so many: it puts them next to a
  /// tensor of this size. Null where these are no selected rows, or cannot be so many.
  nn::Expr narrowed(nn::Expr x, int64_t dim, int64_t extent);
  /// Selected rows, dimension 0 of x, in `groups` of equally many: [groups, rows of one, …]. Null where x has no such
  /// rows.
  nn::Expr grouped(nn::Expr x, int64_t groups);
  /// How many elements there are along `dims` of x, a scalar of i64; null where no data decide it.
  nn::Expr countAlong(nn::Expr x, llvm::ArrayRef<int64_t> dims) const;
  /// x with zeros in place of rows that are not there; x itself where all are.
  nn::Expr withZeros(nn::Expr x);
  /// The extents of x from dimension `start` to `end`, which data decide in part; null where none do.
  nn::Expr extents(nn::Expr x, int64_t start, int64_t end);
  /// What `value` is where it is computed of sizes; null where it is not.
  const Sizes *findSizes(mlir::Value value) const;

  /// Follows the rows through the ops that a node became, from `first` on, and masks them where they meet.
  mlir::LogicalResult follow(NodeView &node, mlir::Operation *first);

private:
  struct Rows {
    const Selection *selection;
    BatchPosition position;
  };

  struct Coordinate {
    Elements elements;
    Shape shape;
    int64_t dim;
  };

  std::optional<Rows> find(mlir::Value value) const;
  const Coordinate *findCoordinate(mlir::Value value) const;
  mlir::LogicalResult followOp(NodeView &node, mlir::Operation *op);
  /// Rows that are put after others move up to them.
  mlir::LogicalResult followConcat(NodeView &node, mlir::Operation *op, int64_t dim);
  /// Rows of the result that are not there, which the mask of an operand made zero or infinite, repeat the first again.
  void refill(NodeView &node, mlir::Operation *op, const Rows &where);
  /// All that reads the result of `op` reads `by`.
  static void replaceResult(NodeView &node, mlir::Operation *op, nn::Expr by);
  /// Whether `op` scatters selected rows, or among them; those that are not there land nowhere then.
  bool followScatter(mlir::Operation *op);
  bool followSizes(mlir::Operation *op);
  /// A sum of what selects rows is a size: the number of rows.
  void noteCount(mlir::Operation *op);
  /// What is counted, without its shape, its type and masks.
  mlir::Value bare(mlir::Value value) const;
  mlir::LogicalResult markStated(NodeView &node);
  /// `x` where its rows are there, `filler` elsewhere.
  nn::Expr masked(nn::Expr x, const Rows &where, nn::Expr filler);

  std::vector<std::shared_ptr<Selection>> selections;
  llvm::DenseMap<mlir::Value, Rows> rows;
  llvm::DenseMap<mlir::Value, Sizes> sizes;
  llvm::DenseMap<mlir::Value, Coordinate> places;
  /// What masks rows: its result has none that are not there.
  llvm::DenseSet<mlir::Operation *> masks;
};

} // namespace lowtide
