//===- ScalarBuilder.h - arithmetic on scalars, whatever their type -*- C++ -*-===//
//
// The vocabulary in which op records state their scalar bodies. One spelling covers floats, signed and unsigned
// integers and booleans; every call folds constants on the way.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

namespace lowtide {

enum class Compare : uint32_t { EQ, NE, LT, LE, GT, GE };

/// Emits `arith`/`math` scalar code at an insertion point. Integers of type `uiN` are held as signless `iN`; the
/// functions that care take `isUnsigned`.
class ScalarBuilder {
public:
  ScalarBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}
  virtual ~ScalarBuilder() = default;

  mlir::OpBuilder &builder;
  mlir::Location loc;

  /// A constant of float, integer or index type.
  mlir::Value constant(mlir::Type type, double value);
  mlir::Value constantInt(mlir::Type type, int64_t value);
  mlir::Value index(int64_t value);

  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  /// Integer division truncates; division by zero of constants is left unfolded.
  mlir::Value div(mlir::Value x, mlir::Value y, bool isUnsigned = false);
  /// Remainder with the sign of the dividend (C's fmod and %).
  mlir::Value rem(mlir::Value x, mlir::Value y, bool isUnsigned = false);
  /// NaN if either is NaN.
  mlir::Value max(mlir::Value x, mlir::Value y, bool isUnsigned = false);
  mlir::Value min(mlir::Value x, mlir::Value y, bool isUnsigned = false);
  mlir::Value neg(mlir::Value x);
  mlir::Value abs(mlir::Value x);
  mlir::Value logicalAnd(mlir::Value x, mlir::Value y);
  mlir::Value logicalOr(mlir::Value x, mlir::Value y);
  mlir::Value logicalXor(mlir::Value x, mlir::Value y);
  mlir::Value logicalNot(mlir::Value x);
  /// Bits of an integer moved by `y`, which counts as unsigned; zeros come in; 0 when y is not below the width.
  mlir::Value shiftLeft(mlir::Value x, mlir::Value y);
  mlir::Value shiftRight(mlir::Value x, mlir::Value y);
  /// i1. Float comparisons are ordered (false with NaN), NE is unordered (true with NaN).
  mlir::Value compare(Compare predicate, mlir::Value x, mlir::Value y, bool isUnsigned = false);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  /// Conversion as ONNX's Cast: float → integer truncates, anything → bool is `!= 0`.
  mlir::Value cast(mlir::Value x, mlir::Type to, bool fromUnsigned = false, bool toUnsigned = false);

  // Floats only.
  mlir::Value exp(mlir::Value x);
  mlir::Value expm1(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value sqrt(mlir::Value x);
  mlir::Value rsqrt(mlir::Value x);
  mlir::Value sin(mlir::Value x);
  mlir::Value cos(mlir::Value x);
  mlir::Value tan(mlir::Value x);
  mlir::Value asin(mlir::Value x);
  mlir::Value acos(mlir::Value x);
  mlir::Value atan(mlir::Value x);
  mlir::Value sinh(mlir::Value x);
  mlir::Value cosh(mlir::Value x);
  mlir::Value asinh(mlir::Value x);
  mlir::Value acosh(mlir::Value x);
  mlir::Value atanh(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value pow(mlir::Value x, mlir::Value y);
  mlir::Value floor(mlir::Value x);
  mlir::Value ceil(mlir::Value x);
  /// Half to even.
  mlir::Value round(mlir::Value x);
  mlir::Value isNaN(mlir::Value x);
  mlir::Value isInf(mlir::Value x);

  // Shorthands with a literal operand of x's type.
  mlir::Value add(mlir::Value x, double y) { return add(x, constant(x.getType(), y)); }
  mlir::Value sub(double x, mlir::Value y) { return sub(constant(y.getType(), x), y); }
  mlir::Value mul(mlir::Value x, double y) { return mul(x, constant(x.getType(), y)); }
  mlir::Value div(double x, mlir::Value y) { return div(constant(y.getType(), x), y); }
  mlir::Value compare(Compare p, mlir::Value x, double y) { return compare(p, x, constant(x.getType(), y)); }
};

/// Adds access to the elements of an op's operands. Emitters implement it: by a load, by inlining the producer, or by
/// reading a constant.
class ElementBuilder : public ScalarBuilder {
public:
  using ScalarBuilder::ScalarBuilder;

  /// Element of operand `number` of the op being emitted, at `index` (index-typed, one per dimension). Types: as the
  /// tensor's element type, unsigned ones as signless. The index must be in bounds whenever it is executed.
  virtual mlir::Value operand(unsigned number, mlir::ValueRange index) = 0;

  /// Element of a table of constants at `index`. Emitters put the table into the kernel's read-only data; by default it
  /// becomes a chain of selects, which only few elements can afford.
  virtual mlir::Value table(mlir::DenseElementsAttr values, mlir::ValueRange index);

  /// Accumulates over a box of `extents` (all static): `body(accumulators, index)` in row-major order. For small
  /// element-local loops (windows, contractions in reference kernels).
  virtual llvm::SmallVector<mlir::Value>
  loop(llvm::ArrayRef<int64_t> extents, mlir::ValueRange initial,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(ElementBuilder &, mlir::ValueRange accumulators,
                                                         mlir::ValueRange index)>
           body) = 0;
  /// Evaluates `then` only when `condition` holds, else `otherwise`: for reads that are in bounds only then.
  virtual mlir::Value guarded(mlir::Value condition, mlir::Type type,
                              llvm::function_ref<mlir::Value(ElementBuilder &)> then,
                              llvm::function_ref<mlir::Value(ElementBuilder &)> otherwise) = 0;
};

} // namespace lowtide
