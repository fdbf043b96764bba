//===- Expr.cpp - tensor expressions that build nn ops ----------*- C++ -*-===//
//
// Operators and functions on tensors.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"

using namespace mlir;
using namespace lowtide::nn;

template <typename Op, typename... Args> static Expr build(Expr at, Args &&...args) {
  auto op = Op::create(at.getBuilder(), at.getLoc(), std::forward<Args>(args)...);
  return at.with(op->getResult(0));
}

Expr lowtide::nn::splat(OpBuilder &builder, Location loc, RankedTensorType type, double value) {
  Type element = type.getElementType();
  Attribute scalar;
  if (isa<FloatType>(element)) {
    scalar = FloatAttr::get(element, value);
  } else {
    APInt bits(element.getIntOrFloatBitWidth(), static_cast<uint64_t>(static_cast<int64_t>(value)), false,
               /*implicitTrunc=*/true);
    scalar = IntegerAttr::get(element, bits);
  }
  auto op = ConstantOp::create(builder, loc, type, cast<ElementsAttr>(DenseElementsAttr::get(type, scalar)));
  return Expr(builder, loc, op.getY());
}

Expr lowtide::nn::constant(OpBuilder &builder, Location loc, ElementsAttr elements) {
  return Expr(builder, loc, ConstantOp::create(builder, loc, elements.getType(), elements)->getResult(0));
}

Expr Expr::like(double value) const { return splat(getBuilder(), getLoc(), type(), value); }

Expr lowtide::nn::operator+(Expr a, Expr b) { return build<AddOp>(a, a.get(), b.get()); }
Expr lowtide::nn::operator-(Expr a, Expr b) { return build<SubOp>(a, a.get(), b.get()); }
Expr lowtide::nn::operator*(Expr a, Expr b) { return build<MulOp>(a, a.get(), b.get()); }
Expr lowtide::nn::operator/(Expr a, Expr b) { return build<DivOp>(a, a.get(), b.get()); }
Expr lowtide::nn::operator-(Expr a) { return build<NegOp>(a, a.get()); }
Expr lowtide::nn::operator+(Expr a, double b) { return a + a.like(b); }
Expr lowtide::nn::operator+(double a, Expr b) { return b.like(a) + b; }
Expr lowtide::nn::operator-(Expr a, double b) { return a - a.like(b); }
Expr lowtide::nn::operator-(double a, Expr b) { return b.like(a) - b; }
Expr lowtide::nn::operator*(Expr a, double b) { return a * a.like(b); }
Expr lowtide::nn::operator*(double a, Expr b) { return b.like(a) * b; }
Expr lowtide::nn::operator/(Expr a, double b) { return a / a.like(b); }
Expr lowtide::nn::operator/(double a, Expr b) { return b.like(a) / b; }

#define LOWTIDE_UNARY(name, Op)                                                                                        \
  Expr lowtide::nn::name(Expr x) { return build<Op>(x, x.get()); }
LOWTIDE_UNARY(abs, AbsOp)
LOWTIDE_UNARY(sign, SignOp)
LOWTIDE_UNARY(floor, FloorOp)
LOWTIDE_UNARY(ceil, CeilOp)
LOWTIDE_UNARY(round, RoundOp)
LOWTIDE_UNARY(exp, ExpOp)
LOWTIDE_UNARY(expm1, Expm1Op)
LOWTIDE_UNARY(log, LogOp)
LOWTIDE_UNARY(log1p, Log1pOp)
LOWTIDE_UNARY(sqrt, SqrtOp)
LOWTIDE_UNARY(rsqrt, RsqrtOp)
LOWTIDE_UNARY(reciprocal, ReciprocalOp)
LOWTIDE_UNARY(erf, ErfOp)
LOWTIDE_UNARY(sin, SinOp)
LOWTIDE_UNARY(cos, CosOp)
LOWTIDE_UNARY(tan, TanOp)
LOWTIDE_UNARY(asin, AsinOp)
LOWTIDE_UNARY(acos, AcosOp)
LOWTIDE_UNARY(atan, AtanOp)
LOWTIDE_UNARY(sinh, SinhOp)
LOWTIDE_UNARY(cosh, CoshOp)
LOWTIDE_UNARY(tanh, TanhOp)
LOWTIDE_UNARY(asinh, AsinhOp)
LOWTIDE_UNARY(acosh, AcoshOp)
LOWTIDE_UNARY(atanh, AtanhOp)
LOWTIDE_UNARY(relu, ReluOp)
LOWTIDE_UNARY(sigmoid, SigmoidOp)
LOWTIDE_UNARY(gelu, GeluOp)
LOWTIDE_UNARY(geluTanh, GeluTanhOp)
LOWTIDE_UNARY(silu, SiluOp)
LOWTIDE_UNARY(softplus, SoftplusOp)
LOWTIDE_UNARY(logicalNot, NotOp)
#undef LOWTIDE_UNARY
Expr lowtide::nn::elu(Expr x, double alpha) {
  return build<EluOp>(x, x.type(), x.get(), x.getBuilder().getF64FloatAttr(alpha));
}

#define LOWTIDE_BINARY(name, Op)                                                                                       \
  Expr lowtide::nn::name(Expr a, Expr b) { return build<Op>(a, a.get(), b.get()); }
LOWTIDE_BINARY(max, MaxOp)
LOWTIDE_BINARY(min, MinOp)
LOWTIDE_BINARY(pow, PowOp)
LOWTIDE_BINARY(rem, RemOp)
LOWTIDE_BINARY(mod, ModOp)
LOWTIDE_BINARY(logicalAnd, AndOp)
LOWTIDE_BINARY(logicalOr, OrOp)
LOWTIDE_BINARY(logicalXor, XorOp)
LOWTIDE_BINARY(shiftLeft, ShiftLeftOp)
LOWTIDE_BINARY(shiftRight, ShiftRightOp)
#undef LOWTIDE_BINARY
Expr lowtide::nn::max(Expr a, double b) { return max(a, a.like(b)); }
Expr lowtide::nn::min(Expr a, double b) { return min(a, a.like(b)); }

Expr lowtide::nn::pow(Expr a, double b) {
  bool isFloat = isa<FloatType>(a.elementType());
  if (b == 0)
    return a.like(1.0);
  if (b == 1)
    return a;
  if (b == 2)
    return a * a;
  if (b == 3)
    return a * a * a;
  if (isFloat && b == 0.5)
    return sqrt(a);
  if (isFloat && b == -0.5)
    return rsqrt(a);
  if (isFloat && b == -1)
    return reciprocal(a);
  return pow(a, a.like(b));
}

Expr lowtide::nn::cast(Expr x, Type elementType) {
  if (x.elementType() == elementType)
    return x;
  return build<CastOp>(x, RankedTensorType::get(x.shape(), elementType), x.get());
}

static RankedTensorType boolType(Expr x) { return RankedTensorType::get(x.shape(), x.getBuilder().getI1Type()); }
static Expr compare(ComparePredicate predicate, Expr a, Expr b) {
  return build<CompareOp>(a, boolType(a), predicate, a.get(), b.get());
}
#define LOWTIDE_COMPARISON(name, predicate)                                                                            \
  Expr lowtide::nn::name(Expr a, Expr b) { return compare(ComparePredicate::predicate, a, b); }                        \
  Expr lowtide::nn::name(Expr a, double b) { return name(a, a.like(b)); }
LOWTIDE_COMPARISON(equal, eq)
LOWTIDE_COMPARISON(notEqual, ne)
LOWTIDE_COMPARISON(greater, gt)
LOWTIDE_COMPARISON(greaterEqual, ge)
LOWTIDE_COMPARISON(less, lt)
LOWTIDE_COMPARISON(lessEqual, le)
#undef LOWTIDE_COMPARISON
Expr lowtide::nn::isNaN(Expr x) { return build<IsNaNOp>(x, boolType(x), x.get()); }
Expr lowtide::nn::isInf(Expr x) { return build<IsInfOp>(x, boolType(x), x.get()); }
Expr lowtide::nn::select(Expr condition, Expr a, Expr b) {
  return build<SelectOp>(a, a.type(), condition.get(), a.get(), b.get());
}
