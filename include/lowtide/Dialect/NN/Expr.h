//===- Expr.h - tensor expressions that build nn ops ------------*- C++ -*-===//
//
// Operators and functions on tensors for derivatives, decompositions, losses and optimizers: what is written is the
// formula, what is built are nn ops. A double operand becomes a splat constant of the other side's type.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include <array>
#include <optional>

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

// Functions of one operand; each is the op of that name.
Expr abs(Expr x);
Expr sign(Expr x);
Expr floor(Expr x);
Expr ceil(Expr x);
/// Halves to even.
Expr round(Expr x);
Expr exp(Expr x);
Expr expm1(Expr x);
Expr log(Expr x);
Expr log1p(Expr x);
Expr sqrt(Expr x);
Expr rsqrt(Expr x);
Expr reciprocal(Expr x);
Expr erf(Expr x);
Expr sin(Expr x);
Expr cos(Expr x);
Expr tan(Expr x);
Expr asin(Expr x);
Expr acos(Expr x);
Expr atan(Expr x);
Expr sinh(Expr x);
Expr cosh(Expr x);
Expr tanh(Expr x);
Expr asinh(Expr x);
Expr acosh(Expr x);
Expr atanh(Expr x);
Expr relu(Expr x);
Expr sigmoid(Expr x);
Expr gelu(Expr x);
Expr geluTanh(Expr x);
Expr silu(Expr x);
Expr softplus(Expr x);
Expr elu(Expr x, double alpha = 1.0);
/// Identity when the type stays.
Expr cast(Expr x, mlir::Type elementType);

// Functions of two operands of equal type.
Expr max(Expr a, Expr b);
Expr max(Expr a, double b);
Expr min(Expr a, Expr b);
Expr min(Expr a, double b);
Expr pow(Expr a, Expr b);
/// Written as products, roots or a reciprocal where the exponent allows.
Expr pow(Expr a, double b);
/// Remainder with the sign of the dividend; `mod`: of the divisor.
Expr rem(Expr a, Expr b);
Expr mod(Expr a, Expr b);
/// Bitwise on integers, logic on i1.
Expr logicalAnd(Expr a, Expr b);
Expr logicalOr(Expr a, Expr b);
Expr logicalXor(Expr a, Expr b);
Expr logicalNot(Expr x);
Expr shiftLeft(Expr a, Expr b);
Expr shiftRight(Expr a, Expr b);

// Comparisons give i1 tensors.
Expr isNaN(Expr x);
Expr isInf(Expr x);
Expr equal(Expr a, Expr b);
Expr equal(Expr a, double b);
Expr notEqual(Expr a, Expr b);
Expr notEqual(Expr a, double b);
Expr greater(Expr a, Expr b);
Expr greater(Expr a, double b);
Expr greaterEqual(Expr a, Expr b);
Expr greaterEqual(Expr a, double b);
Expr less(Expr a, Expr b);
Expr less(Expr a, double b);
Expr lessEqual(Expr a, Expr b);
Expr lessEqual(Expr a, double b);
Expr select(Expr condition, Expr a, Expr b);

/// A splat constant.
Expr splat(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type, double value);
/// A constant from its elements.
Expr constant(mlir::OpBuilder &builder, mlir::Location loc, mlir::ElementsAttr elements);

/// nn.broadcast; identity when nothing changes.
Expr broadcast(Expr x, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims);
/// Numpy broadcasting (aligned at the last dimension) to `shape`.
Expr broadcastTo(Expr x, llvm::ArrayRef<int64_t> shape);
Expr reshape(Expr x, llvm::ArrayRef<int64_t> shape);
/// The same value, through which no gradient flows.
Expr detach(Expr x);
Expr transpose(Expr x, llvm::ArrayRef<int64_t> permutation);
/// `sizes` elements from `starts` in steps of `strides` (empty: 1).
Expr slice(Expr x, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides = {});
Expr pad(Expr x, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high, llvm::ArrayRef<int64_t> interior = {},
         double value = 0.0);
Expr reverse(Expr x, llvm::ArrayRef<int64_t> dims);
Expr concat(llvm::ArrayRef<Expr> xs, int64_t dim);
/// Indices along `dim` in a tensor of `type`.
Expr iota(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type, int64_t dim);

/// Reductions; `dims` ascending, non-negative; reduced dimensions vanish.
Expr sum(Expr x, llvm::ArrayRef<int64_t> dims);
Expr mean(Expr x, llvm::ArrayRef<int64_t> dims);
Expr product(Expr x, llvm::ArrayRef<int64_t> dims);
Expr maximum(Expr x, llvm::ArrayRef<int64_t> dims);
Expr minimum(Expr x, llvm::ArrayRef<int64_t> dims);
Expr any(Expr x, llvm::ArrayRef<int64_t> dims);
Expr all(Expr x, llvm::ArrayRef<int64_t> dims);
/// Spreads a reduced value over the shape that it was reduced from.
Expr unreduce(Expr reduced, mlir::RankedTensorType from, llvm::ArrayRef<int64_t> dims);
Expr argmax(Expr x, int64_t dim, mlir::Type indexType, bool selectLast = false);
Expr argmin(Expr x, int64_t dim, mlir::Type indexType, bool selectLast = false);
Expr cumsum(Expr x, int64_t dim, bool exclusive = false, bool reverse = false);

/// Indexing; indices are in [0, extent). `untrainedRow`: see nn.gather.
Expr gather(Expr x, Expr indices, int64_t axis, std::optional<int64_t> untrainedRow = std::nullopt);
Expr gatherElements(Expr x, Expr indices, int64_t axis);
Expr scatterAdd(Expr indices, Expr updates, llvm::ArrayRef<int64_t> shape, int64_t axis);
/// Numbers of the elements of rows for which `condition` ([n] of i1) holds, [n · elements], and which of n rows there
/// are (nn.select_rows).
std::pair<Expr, Expr> selectRows(Expr condition, int64_t elements);
Expr scatterElementsAdd(Expr indices, Expr updates, llvm::ArrayRef<int64_t> shape, int64_t axis);
/// ONNX GatherND and its transpose: the last dimension of `indices` names a position in the dimensions of x after the
/// first `batchDims`; written as linear indices into a reshaped x.
Expr gatherND(Expr x, Expr indices, int64_t batchDims = 0);
Expr scatterNDAdd(Expr indices, Expr updates, llvm::ArrayRef<int64_t> shape);

/// nn.dot.
Expr dot(Expr a, Expr b, bool transposeA = false, bool transposeB = false);

/// How a window moves over the spatial dimensions: one entry for each.
struct Window {
  llvm::SmallVector<int64_t> strides, padsBegin, padsEnd, dilations;
  /// Strides and dilations 1, no padding.
  static Window unit(int64_t spatialRank);
};
/// Extents of the result of moving a `kernel` over `input`, spatial dimensions only.
llvm::SmallVector<int64_t> windowedShape(llvm::ArrayRef<int64_t> input, llvm::ArrayRef<int64_t> kernel,
                                         const Window &window);
Expr conv(Expr input, Expr filter, const Window &window, int64_t groups = 1);
Expr convInputGrad(Expr dy, Expr filter, llvm::ArrayRef<int64_t> inputShape, const Window &window, int64_t groups = 1);
Expr convFilterGrad(Expr input, Expr dy, llvm::ArrayRef<int64_t> filterShape, const Window &window, int64_t groups = 1);
Expr maxPool(Expr x, llvm::ArrayRef<int64_t> kernel, const Window &window);
Expr avgPool(Expr x, llvm::ArrayRef<int64_t> kernel, const Window &window, bool countIncludePad = false);

/// Normalizations and losses; several results come in the order of the op's.
Expr softmax(Expr x, int64_t dim);
Expr logSoftmax(Expr x, int64_t dim);
std::array<Expr, 3> layerNorm(Expr x, Expr scale, Expr bias, int64_t axis, double epsilon);
std::array<Expr, 2> rmsNorm(Expr x, Expr scale, int64_t axis, double epsilon);
std::array<Expr, 3> batchNorm(Expr x, Expr scale, Expr bias, double epsilon);
Expr unbiasedVariance(Expr variance, Expr x);
std::array<Expr, 2> softmaxCrossEntropy(Expr logits, Expr labels, Expr weights = {},
                                        std::optional<int64_t> ignoreIndex = std::nullopt);
/// Of the logits x · weightᵀ + bias (null: none), or x · weight + bias with `classLast`.
std::array<Expr, 2> linearCrossEntropy(Expr x, Expr weight, Expr bias, Expr labels, bool classLast = false,
                                       std::optional<int64_t> ignoreIndex = std::nullopt);
std::array<Expr, 2> attention(Expr q, Expr k, Expr v, Expr mask, double scale, bool causal);

/// Uniform numbers; seed, step and row are rank-0 i64.
Expr randomUniform(mlir::RankedTensorType type, Expr seed, Expr step, Expr row, int64_t opId, int64_t batchDim);

} // namespace lowtide::nn
