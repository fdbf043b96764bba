//===- ScalarBuilder.cpp - arithmetic on scalars ----------------*- C++ -*-===//
//
// One spelling for floats, integers and booleans, folding constants on the way.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Interfaces/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace lowtide;

static bool isFloat(Value x) { return isa<FloatType>(x.getType()); }
static bool isBool(Value x) { return x.getType().isInteger(1); }

Value ScalarBuilder::constant(Type type, double value) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(builder, loc, FloatAttr::get(floatType, value));
  return constantInt(type, static_cast<int64_t>(value));
}

Value ScalarBuilder::constantInt(Type type, int64_t value) {
  if (isa<IndexType>(type))
    return arith::ConstantOp::create(builder, loc, IntegerAttr::get(type, value));
  unsigned width = type.getIntOrFloatBitWidth();
  return arith::ConstantOp::create(
      builder, loc, IntegerAttr::get(type, APInt(width, static_cast<uint64_t>(value), false, /*implicitTrunc=*/true)));
}

Value ScalarBuilder::index(int64_t value) { return constantInt(builder.getIndexType(), value); }

Value ScalarBuilder::add(Value x, Value y) {
  if (isFloat(x))
    return builder.createOrFold<arith::AddFOp>(loc, x, y);
  if (isBool(x))
    return logicalOr(x, y);
  return builder.createOrFold<arith::AddIOp>(loc, x, y);
}

Value ScalarBuilder::sub(Value x, Value y) {
  if (isFloat(x))
    return builder.createOrFold<arith::SubFOp>(loc, x, y);
  return builder.createOrFold<arith::SubIOp>(loc, x, y);
}

Value ScalarBuilder::mul(Value x, Value y) {
  if (isFloat(x))
    return builder.createOrFold<arith::MulFOp>(loc, x, y);
  if (isBool(x))
    return logicalAnd(x, y);
  return builder.createOrFold<arith::MulIOp>(loc, x, y);
}

Value ScalarBuilder::div(Value x, Value y, bool isUnsigned) {
  if (isFloat(x))
    return builder.createOrFold<arith::DivFOp>(loc, x, y);
  if (isUnsigned)
    return builder.createOrFold<arith::DivUIOp>(loc, x, y);
  return builder.createOrFold<arith::DivSIOp>(loc, x, y);
}

Value ScalarBuilder::rem(Value x, Value y, bool isUnsigned) {
  if (isFloat(x))
    return builder.createOrFold<arith::RemFOp>(loc, x, y);
  if (isUnsigned)
    return builder.createOrFold<arith::RemUIOp>(loc, x, y);
  return builder.createOrFold<arith::RemSIOp>(loc, x, y);
}

Value ScalarBuilder::max(Value x, Value y, bool isUnsigned) {
  if (isFloat(x))
    return builder.createOrFold<arith::MaximumFOp>(loc, x, y);
  if (isUnsigned || isBool(x))
    return builder.createOrFold<arith::MaxUIOp>(loc, x, y);
  return builder.createOrFold<arith::MaxSIOp>(loc, x, y);
}

Value ScalarBuilder::min(Value x, Value y, bool isUnsigned) {
  if (isFloat(x))
    return builder.createOrFold<arith::MinimumFOp>(loc, x, y);
  if (isUnsigned || isBool(x))
    return builder.createOrFold<arith::MinUIOp>(loc, x, y);
  return builder.createOrFold<arith::MinSIOp>(loc, x, y);
}

Value ScalarBuilder::neg(Value x) {
  if (isFloat(x))
    return builder.createOrFold<arith::NegFOp>(loc, x);
  return sub(constantInt(x.getType(), 0), x);
}

Value ScalarBuilder::abs(Value x) {
  if (isFloat(x))
    return builder.createOrFold<math::AbsFOp>(loc, x);
  return builder.createOrFold<math::AbsIOp>(loc, x);
}

Value ScalarBuilder::logicalAnd(Value x, Value y) { return builder.createOrFold<arith::AndIOp>(loc, x, y); }
Value ScalarBuilder::logicalOr(Value x, Value y) { return builder.createOrFold<arith::OrIOp>(loc, x, y); }
Value ScalarBuilder::logicalXor(Value x, Value y) { return builder.createOrFold<arith::XOrIOp>(loc, x, y); }
Value ScalarBuilder::logicalNot(Value x) { return logicalXor(x, constantInt(x.getType(), -1)); }

/// Applies a shift where the amount is below the width; MLIR leaves the rest undefined.
template <typename Op> static Value shift(ScalarBuilder &b, Value x, Value y) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  Value inRange = b.compare(Compare::LT, y, b.constantInt(y.getType(), width), /*isUnsigned=*/true);
  Value amount = b.select(inRange, y, b.constantInt(y.getType(), 0));
  return b.select(inRange, b.builder.createOrFold<Op>(b.loc, x, amount), b.constantInt(x.getType(), 0));
}
Value ScalarBuilder::shiftLeft(Value x, Value y) { return shift<arith::ShLIOp>(*this, x, y); }
Value ScalarBuilder::shiftRight(Value x, Value y) { return shift<arith::ShRUIOp>(*this, x, y); }

Value ScalarBuilder::compare(Compare predicate, Value x, Value y, bool isUnsigned) {
  if (isFloat(x)) {
    constexpr arith::CmpFPredicate table[] = {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
                                              arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
                                              arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
    return builder.createOrFold<arith::CmpFOp>(loc, table[static_cast<unsigned>(predicate)], x, y);
  }
  constexpr arith::CmpIPredicate signedTable[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                  arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
                                                  arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge};
  constexpr arith::CmpIPredicate unsignedTable[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                    arith::CmpIPredicate::ult, arith::CmpIPredicate::ule,
                                                    arith::CmpIPredicate::ugt, arith::CmpIPredicate::uge};
  const auto *table = isUnsigned || isBool(x) ? unsignedTable : signedTable;
  return builder.createOrFold<arith::CmpIOp>(loc, table[static_cast<unsigned>(predicate)], x, y);
}

Value ScalarBuilder::select(Value condition, Value x, Value y) {
  return builder.createOrFold<arith::SelectOp>(loc, condition, x, y);
}

/// f64 → f32 with an inexact result made odd, so that a second rounding to 16 bits gives what one would have given
/// (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008). No CPU rounds f64 to bf16 itself.
static Value roundToOdd(ScalarBuilder &b, Value x) {
  Type i32 = b.builder.getI32Type();
  Value nearest = b.cast(x, b.builder.getF32Type()), back = b.cast(nearest, x.getType());
  Value bits = b.builder.createOrFold<arith::BitcastOp>(b.loc, i32, nearest);
  // Toward zero first, then the last bit says whether anything was lost. NaN stays NaN.
  bits = b.sub(bits, b.cast(b.compare(Compare::GT, b.abs(back), b.abs(x)), i32));
  bits = b.logicalOr(bits, b.cast(b.compare(Compare::NE, back, x), i32));
  return b.builder.createOrFold<arith::BitcastOp>(b.loc, b.builder.getF32Type(), bits);
}

Value ScalarBuilder::cast(Value x, Type to, bool fromUnsigned, bool toUnsigned) {
  Type from = x.getType();
  if (from == to)
    return x;
  if (to.isInteger(1))
    return compare(Compare::NE, x, constant(from, 0.0));
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  if (fromFloat && toFloat) {
    if (fromFloat.getWidth() == toFloat.getWidth()) // f16 ↔ bf16
      return cast(cast(x, builder.getF32Type()), to);
    if (fromFloat.isBF16() && toFloat.isF64())
      return cast(cast(x, builder.getF32Type()), to);
    if (fromFloat.getWidth() < toFloat.getWidth())
      return builder.createOrFold<arith::ExtFOp>(loc, to, x);
    if (fromFloat.isF64() && toFloat.getWidth() < 32)
      return cast(roundToOdd(*this, x), to);
    return builder.createOrFold<arith::TruncFOp>(loc, to, x);
  }
  if (fromFloat) {
    if (toUnsigned)
      return builder.createOrFold<arith::FPToUIOp>(loc, to, x);
    return builder.createOrFold<arith::FPToSIOp>(loc, to, x);
  }
  bool zeroExtend = fromUnsigned || from.isInteger(1);
  if (toFloat) {
    // Through a type that holds the integer (f64: up to 2^53), then rounded once.
    if (toFloat.getWidth() < 32)
      return cast(
          cast(x, from.getIntOrFloatBitWidth() > 16 ? Type(builder.getF64Type()) : builder.getF32Type(), fromUnsigned),
          to);
    if (zeroExtend)
      return builder.createOrFold<arith::UIToFPOp>(loc, to, x);
    return builder.createOrFold<arith::SIToFPOp>(loc, to, x);
  }
  if (isa<IndexType>(from) || isa<IndexType>(to))
    return builder.createOrFold<arith::IndexCastOp>(loc, to, x);
  unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = to.getIntOrFloatBitWidth();
  if (fromWidth == toWidth)
    return x;
  if (fromWidth > toWidth)
    return builder.createOrFold<arith::TruncIOp>(loc, to, x);
  if (zeroExtend)
    return builder.createOrFold<arith::ExtUIOp>(loc, to, x);
  return builder.createOrFold<arith::ExtSIOp>(loc, to, x);
}

#define LOWTIDE_MATH_UNARY(name, Op)                                                                                   \
  Value ScalarBuilder::name(Value x) { return builder.createOrFold<math::Op>(loc, x); }
LOWTIDE_MATH_UNARY(exp, ExpOp)
LOWTIDE_MATH_UNARY(expm1, ExpM1Op)
LOWTIDE_MATH_UNARY(log, LogOp)
LOWTIDE_MATH_UNARY(log1p, Log1pOp)
LOWTIDE_MATH_UNARY(sqrt, SqrtOp)
LOWTIDE_MATH_UNARY(sin, SinOp)
LOWTIDE_MATH_UNARY(cos, CosOp)
LOWTIDE_MATH_UNARY(tan, TanOp)
LOWTIDE_MATH_UNARY(asin, AsinOp)
LOWTIDE_MATH_UNARY(acos, AcosOp)
LOWTIDE_MATH_UNARY(atan, AtanOp)
LOWTIDE_MATH_UNARY(sinh, SinhOp)
LOWTIDE_MATH_UNARY(cosh, CoshOp)
LOWTIDE_MATH_UNARY(asinh, AsinhOp)
LOWTIDE_MATH_UNARY(acosh, AcoshOp)
LOWTIDE_MATH_UNARY(atanh, AtanhOp)
LOWTIDE_MATH_UNARY(tanh, TanhOp)
LOWTIDE_MATH_UNARY(erf, ErfOp)
LOWTIDE_MATH_UNARY(floor, FloorOp)
LOWTIDE_MATH_UNARY(ceil, CeilOp)
LOWTIDE_MATH_UNARY(round, RoundEvenOp)
LOWTIDE_MATH_UNARY(isNaN, IsNaNOp)
LOWTIDE_MATH_UNARY(isInf, IsInfOp)
#undef LOWTIDE_MATH_UNARY

// 1/√x by division: correctly rounded twice, the same on every target.
Value ScalarBuilder::rsqrt(Value x) { return div(1.0, sqrt(x)); }

Value ScalarBuilder::pow(Value x, Value y) {
  if (isFloat(x))
    return builder.createOrFold<math::PowFOp>(loc, x, y);
  return builder.createOrFold<math::IPowIOp>(loc, x, y);
}

Value ElementBuilder::table(DenseElementsAttr values, ValueRange index) {
  Type type = values.getElementType();
  if (type.isInteger())
    type = builder.getIntegerType(type.getIntOrFloatBitWidth());
  auto scalar = [&](Attribute value) -> Value {
    if (auto real = dyn_cast<FloatAttr>(value))
      return constant(type, real.getValueAsDouble());
    return constantInt(type, cast<IntegerAttr>(value).getValue().getSExtValue());
  };
  if (values.isSplat())
    return scalar(values.getSplatValue<Attribute>());
  Value linear = this->index(0);
  for (auto [i, extent] : llvm::zip(index, values.getType().getShape()))
    linear = add(mul(linear, this->index(extent)), i);
  Value result;
  int64_t position = 0;
  for (Attribute value : values.getValues<Attribute>()) {
    Value element = scalar(value);
    result = result ? select(compare(Compare::EQ, linear, this->index(position)), element, result) : element;
    ++position;
  }
  return result;
}
