//===- DimensionOrder.h - in which order a tensor is stored -----*- C++ -*-===//
//
// The question that OrderInterface answers: given that some operands and results are stored in another order than their
// dimensions are listed in, how are the others, and what computes them so?
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace lowtide {

/// The order of a tensor's elements in memory: their row-major index is divided into factors of `extents`, and factor
/// `order[i]` is the i-th from outside. It says nothing of dimensions, so a reshape changes nothing. Kept in one form:
/// no factor is 1, and no two neighbours could be one.
struct DimensionOrder {
  llvm::SmallVector<int64_t> extents, order;

  DimensionOrder() = default;
  DimensionOrder(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> order);
  /// Batch, what lies between, and dimension 1 as the last: channels last.
  static DimensionOrder channelsLast(llvm::ArrayRef<int64_t> shape);

  bool isNatural() const { return order.size() <= 1; }
  bool operator==(const DimensionOrder &) const = default;
};

/// An order under a shape: each factor belongs to one dimension.
struct PlacedOrder {
  llvm::SmallVector<int64_t> extents, dims; ///< of the factors, in row-major order; `dims` ascends
  llvm::SmallVector<int64_t> order;         ///< the factor at each place in memory

  /// Nothing where a factor lies across dimensions. The natural order has one factor per dimension, units included.
  static std::optional<PlacedOrder> get(const DimensionOrder &order, llvm::ArrayRef<int64_t> shape);

  /// Extents as they lie in memory.
  llvm::SmallVector<int64_t> getStoredShape() const;
  /// Places in memory of the factors of `dim`, ascending.
  llvm::SmallVector<int64_t> getPlaces(int64_t dim) const;
  /// The order of a tensor that has the factors of some dimensions only, given in its row-major order.
  DimensionOrder restrictTo(llvm::ArrayRef<int64_t> dims) const;
};

/// A question about one op, and its answer. First the orders are found; then, with a builder, the op is built anew on
/// operands that are stored so.
class OrderFlow {
public:
  explicit OrderFlow(mlir::Operation *op) : op(op), operands(op->getNumOperands()), results(op->getNumResults()) {}

  mlir::Operation *op;
  /// Nothing: not known yet.
  llvm::SmallVector<std::optional<DimensionOrder>> operands, results;

  /// Sets, or checks, the order of an operand or result; fails where it has another one.
  llvm::LogicalResult setOperand(unsigned i, const DimensionOrder &order) { return set(operands[i], order); }
  llvm::LogicalResult setResult(unsigned i, const DimensionOrder &order) { return set(results[i], order); }

  /// In these orders the result is the operand: nothing moves.
  bool isView = false;

  /// Null while orders are asked for.
  mlir::OpBuilder *builder = nullptr;
  /// The operands as they are stored: under the stored shape of their placed order.
  llvm::SmallVector<mlir::Value> stored;
  /// What the op gives, in the order of `results`, under any shape of as many elements.
  llvm::SmallVector<mlir::Value> made;

  /// Builds the op on `values`, with results of `shapes` and other attributes: what it gives.
  llvm::SmallVector<mlir::Value> make(mlir::ValueRange values, llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes,
                                      llvm::ArrayRef<mlir::NamedAttribute> changed = {});

private:
  static llvm::LogicalResult set(std::optional<DimensionOrder> &place, const DimensionOrder &order);
};

} // namespace lowtide
