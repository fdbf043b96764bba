//===- Expr.h - tensor expressions that build nn ops ------------*- C++ -*-===//
//
// Operators and functions on tensors for derivatives, decompositions, losses and optimizers: what is written is the
// formula, what is built are nn ops. A double operand becomes a splat constant of the other side's type.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace lowtide::nn {

/// A tensor value with the place where further ops go. Null when default-constructed.
class Expr {
public:
  Expr() = default;
  Expr(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value) : builder(&builder), loc(loc), value(value) {}

  explicit operator bool() const { return static_cast<bool>(value); }
  operator mlir::Value() const { return value; }
  mlir::Value get() const { return value; }
  mlir::OpBuilder &getBuilder() const { return *builder; }
  mlir::Location getLoc() const { return mlir::Location(loc); }
  mlir::RankedTensorType type() const { return llvm::cast<mlir::RankedTensorType>(value.getType()); }
  mlir::Type elementType() const { return type().getElementType(); }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
  int64_t rank() const { return type().getRank(); }
  int64_t dim(int64_t i) const { return shape()[i < 0 ? i + rank() : i]; }

  /// A splat of this expression's type.
  Expr like(double splat) const;
  /// Another value at the same place.
  Expr with(mlir::Value other) const { return Expr(*builder, getLoc(), other); }

private:
  mlir::OpBuilder *builder = nullptr;
  mlir::LocationAttr loc;
  mlir::Value value;
};

// Equal shapes and types on both sides.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator+(Expr a, double b);
Expr operator+(double a, Expr b);
Expr operator-(Expr a, double b);
Expr operator-(double a, Expr b);
Expr operator*(Expr a, double b);
Expr operator*(double a, Expr b);
Expr operator/(Expr a, double b);
Expr operator/(double a, Expr b);

Expr exp(Expr x);
Expr log(Expr x);
Expr tanh(Expr x);
Expr relu(Expr x);
Expr cast(Expr x, mlir::Type elementType);

/// i1 tensors.
Expr equal(Expr a, Expr b);
Expr greater(Expr a, Expr b);
Expr greater(Expr a, double b);
Expr less(Expr a, Expr b);
Expr select(Expr condition, Expr a, Expr b);

/// A splat constant.
Expr splat(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type, double value);

/// nn.broadcast; identity when nothing changes.
Expr broadcast(Expr x, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims);
/// Numpy broadcasting (aligned at the last dimension) to `shape`.
Expr broadcastTo(Expr x, llvm::ArrayRef<int64_t> shape);
Expr reshape(Expr x, llvm::ArrayRef<int64_t> shape);
Expr transpose(Expr x, llvm::ArrayRef<int64_t> permutation);

/// Reductions; `dims` ascending, non-negative; reduced dimensions vanish.
Expr sum(Expr x, llvm::ArrayRef<int64_t> dims);
Expr maximum(Expr x, llvm::ArrayRef<int64_t> dims);
/// Spreads a reduced value over the shape that it was reduced from.
Expr unreduce(Expr reduced, mlir::RankedTensorType from, llvm::ArrayRef<int64_t> dims);

/// nn.dot.
Expr dot(Expr a, Expr b, bool transposeA = false, bool transposeB = false);

} // namespace lowtide::nn
