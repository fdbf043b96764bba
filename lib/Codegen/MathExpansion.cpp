//===- MathExpansion.cpp - f32 functions as polynomials ---------*- C++ -*-===//
//
// Replaces `math` ops on f32 by arithmetic that vectorizes; 16-bit floats go through f32; f64 stays with the math
// library. test/Codegen/functions.mlir compares with f64.
//
//===----------------------------------------------------------------------===//

#include "MachineCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

namespace {
/// Short spellings for straight-line scalar code.
struct Scalars {
  ImplicitLocOpBuilder b;

  Scalars(PatternRewriter &rewriter, Location loc) : b(loc, rewriter) {}
  Value real(Type type, double value) { return arith::ConstantOp::create(b, FloatAttr::get(type, value)); }
  Value f32(double value) { return real(b.getF32Type(), value); }
  Value f64(double value) { return real(b.getF64Type(), value); }
  Value i32(int32_t value) { return arith::ConstantOp::create(b, b.getI32IntegerAttr(value)); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  /// One rounding, on every target: written out, not found by contraction.
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) { return arith::CmpFOp::create(b, predicate, x, y); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
  Value bits(Value integer) { return arith::BitcastOp::create(b, b.getF32Type(), integer); }
  /// Horner's scheme, highest coefficient first.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value result = real(x.getType(), coefficients[0]);
    for (double c : coefficients.drop_front())
      result = fma(result, x, real(x.getType(), c));
    return result;
  }

  /// e^x = 2^n · e^r, |r| ≤ ln 2 / 2; the polynomial is Cephes' expf. Full range, denormals included.
  Value exp(Value x) {
    // Comparisons in this form are false for NaN: the bound goes on, and NaN comes back at the end.
    Value low = f32(-104.0), high = f32(89.0);
    Value t = select(compare(arith::CmpFPredicate::OGT, x, low), x, low);
    t = select(compare(arith::CmpFPredicate::OLT, t, high), t, high);
    Value n = math::RoundEvenOp::create(b, mul(t, f32(1.44269504088896341)));
    Value r = fma(n, f32(-0.693359375), t);
    r = fma(n, f32(2.12194440e-4), r);
    Value p = polynomial(
        r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
    Value y = add(fma(p, mul(r, r), r), f32(1.0));
    // 2^n in two factors: n reaches beyond the exponents of normal numbers.
    Value exponent = arith::FPToSIOp::create(b, b.getI32Type(), n);
    Value half = arith::ShRSIOp::create(b, exponent, i32(1));
    Value rest = arith::SubIOp::create(b, exponent, half);
    auto power = [&](Value e) {
      return bits(arith::ShLIOp::create(b, arith::AddIOp::create(b, e, i32(127)), i32(23)));
    };
    y = mul(mul(y, power(half)), power(rest));
    return select(compare(arith::CmpFPredicate::UNO, x, x), x, y);
  }

  /// Below 5/8 Cephes' tanhf polynomial, else 1 − 2 / (e^2|x| + 1).
  Value tanh(Value x) {
    Value size = math::AbsFOp::create(b, x);
    Value z = mul(x, x);
    Value p =
        polynomial(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
    Value small = fma(mul(p, z), x, x);
    Value large = sub(f32(1.0), div(f32(2.0), add(exp(add(size, size)), f32(1.0))));
    large = math::CopySignOp::create(b, large, x);
    return select(compare(arith::CmpFPredicate::OLT, size, f32(0.625)), small, large);
  }

  /// Below 475/512 x + x · p(x²), else 1 − e^p(|x|); both polynomials are N. Juffa's. Within one unit in the last
  /// place.
  Value erf(Value x) {
    Value size = math::AbsFOp::create(b, x), z = mul(x, x);
    Value p = fma(
        polynomial(z, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1}), x,
        x);
    Value q =
        fma(polynomial(size, {-1.72853470e-5, 3.83197126e-4}), z, polynomial(size, {-3.88396438e-3, 2.42546219e-2}));
    for (double c : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1})
      q = fma(q, size, f32(c));
    q = fma(q, size, arith::NegFOp::create(b, size));
    Value large = math::CopySignOp::create(b, sub(f32(1.0), exp(q)), x);
    return select(compare(arith::CmpFPredicate::OGT, size, f32(0.927734375)), large, p);
  }

  /// Quadrant and remainder in f64, exact enough for |x| < 2^30; beyond that NaN-free but meaningless digits, as f32
  /// has no fraction left there.
  Value sinOrCos(Value x, int32_t shift) {
    Type wideType = b.getF64Type();
    Value wide = arith::ExtFOp::create(b, wideType, x);
    Value n = math::RoundEvenOp::create(b, mul(wide, f64(0.63661977236758134308)));
    Value r = fma(n, f64(-1.57079632679489655800), wide);
    r = fma(n, f64(-6.12323399573676603587e-17), r);
    Value bound = f64(1 << 30);
    Value inRange = compare(arith::CmpFPredicate::OLT, math::AbsFOp::create(b, n), bound);
    Value quadrant = arith::FPToSIOp::create(b, b.getI32Type(), select(inRange, n, f64(0.0)));
    quadrant = arith::AddIOp::create(b, quadrant, i32(shift));
    Value s = arith::TruncFOp::create(b, b.getF32Type(), r);
    Value z = mul(s, s);
    Value sine = fma(mul(polynomial(z, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}), z), s, s);
    Value cosine = polynomial(z, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2});
    cosine = add(fma(mul(cosine, z), z, mul(z, f32(-0.5))), f32(1.0));
    auto bit = [&](int32_t mask) {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, arith::AndIOp::create(b, quadrant, i32(mask)), i32(0));
    };
    Value y = select(bit(1), cosine, sine);
    y = select(bit(2), arith::NegFOp::create(b, y), y);
    // Infinity and NaN give NaN.
    return select(compare(arith::CmpFPredicate::ORD, sub(x, x), x), y, sub(x, x));
  }
};

template <typename Op, Value (*Expand)(Scalars &, Value)> struct Expansion : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Scalars scalars(rewriter, op.getLoc());
    rewriter.replaceOp(op, Expand(scalars, op.getOperand()));
    return success();
  }
};

/// The one test of a float that MLIR does not lower: |x| = ∞.
struct IsInfExpansion : OpRewritePattern<math::IsInfOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::IsInfOp op, PatternRewriter &rewriter) const override {
    Value x = op.getOperand(), magnitude = math::AbsFOp::create(rewriter, op.getLoc(), x);
    auto element = cast<FloatType>(getElementTypeOrSelf(x.getType()));
    TypedAttr infinity = rewriter.getFloatAttr(element, APFloat::getInf(element.getFloatSemantics()));
    if (auto shaped = dyn_cast<ShapedType>(x.getType()))
      infinity = DenseElementsAttr::get(shaped, infinity);
    Value bound = arith::ConstantOp::create(rewriter, op.getLoc(), infinity);
    rewriter.replaceOpWithNewOp<arith::CmpFOp>(op, arith::CmpFPredicate::OEQ, magnitude, bound);
    return success();
  }
};
} // namespace

static Value expandExp(Scalars &s, Value x) { return s.exp(x); }
static Value expandTanh(Scalars &s, Value x) { return s.tanh(x); }
static Value expandErf(Scalars &s, Value x) { return s.erf(x); }
static Value expandSin(Scalars &s, Value x) { return s.sinOrCos(x, 0); }
static Value expandCos(Scalars &s, Value x) { return s.sinOrCos(x, 1); }

void codegen::expandMath(ModuleOp module, bool useLibm) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<IsInfExpansion>(module.getContext());
  if (useLibm) {
    (void)applyPatternsGreedily(module, std::move(patterns));
    return;
  }
  patterns.add<Expansion<math::ExpOp, expandExp>, Expansion<math::TanhOp, expandTanh>,
               Expansion<math::ErfOp, expandErf>, Expansion<math::SinOp, expandSin>, Expansion<math::CosOp, expandCos>>(
      module.getContext());
  auto upstream = [](StringRef name) { return llvm::is_contained({"math.log", "math.log1p", "math.expm1"}, name); };
  auto widened = [&](StringRef name) {
    return upstream(name) || llvm::is_contained({"math.exp", "math.tanh", "math.erf", "math.sin", "math.cos"}, name);
  };
  populateMathF32ExpansionPatterns(patterns, widened);
  populateMathPolynomialApproximationPatterns(patterns, upstream);
  (void)applyPatternsGreedily(module, std::move(patterns));
}

namespace {
/// What two bitcasts leave once both sides are integers.
struct SameTypeBitcast : OpRewritePattern<arith::BitcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::BitcastOp op, PatternRewriter &rewriter) const override {
    if (op.getType() != op.getIn().getType())
      return rewriter.notifyMatchFailure(op, "changes the type");
    rewriter.replaceOp(op, op.getIn());
    return success();
  }
};
/// LLVM asks for the class of a float; bf16 becomes bits.
struct NarrowIsNaN : OpRewritePattern<math::IsNaNOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::IsNaNOp op, PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    if (!getElementTypeOrSelf(x.getType()).isBF16())
      return rewriter.notifyMatchFailure(op, "not bf16");
    rewriter.replaceOpWithNewOp<arith::CmpFOp>(op, arith::CmpFPredicate::UNO, x, x);
    return success();
  }
};
} // namespace

/// bf16 values as the i16 that holds their bits. Nothing computes with them any more; LLVM would hold what only moves
/// (through a branch, a select) in f32 and call the compiler's runtime to come back.
static void holdAsBits(ModuleOp module) {
  Type bf16 = BFloat16Type::get(module.getContext()), bits = IntegerType::get(module.getContext(), 16);
  AttrTypeReplacer replacer;
  replacer.addReplacement([=](BFloat16Type) -> Type { return bits; });
  replacer.addReplacement([=](FloatAttr value) -> std::optional<Attribute> {
    if (value.getType() != bf16)
      return std::nullopt;
    return IntegerAttr::get(bits, value.getValue().bitcastToAPInt());
  });
  replacer.addReplacement([=](DenseElementsAttr values) -> std::optional<Attribute> {
    if (values.getElementType() != bf16)
      return std::nullopt;
    return values.mapValues(bits, [](const APFloat &value) { return value.bitcastToAPInt(); });
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
}

/// Marks what rounds f32 to bf16, whose type is about to change.
static void markRounding(ModuleOp module) {
  module.walk([](arith::TruncFOp op) {
    if (!op.getIn().getType().isF32() || !op.getType().isBF16())
      return;
    OpBuilder b(op);
    op.replaceAllUsesWith(
        UnrealizedConversionCastOp::create(b, op.getLoc(), TypeRange(op.getType()), op.getIn()).getResult(0));
    op.erase();
  });
}

/// Rounds where `markRounding` has left a mark.
static void unmarkRounding(ModuleOp module) {
  module.walk([](UnrealizedConversionCastOp op) {
    OpBuilder b(op);
    Value rounded = arith::TruncFOp::create(b, op.getLoc(), b.getBF16Type(), op.getOperand(0));
    op.getResult(0).replaceAllUsesWith(
        arith::BitcastOp::create(b, op.getLoc(), op.getResult(0).getType(), rounded).getResult());
    op.erase();
  });
}

void codegen::expandNarrowFloats(ModuleOp module, bool canRound) {
  MLIRContext *context = module.getContext();
  RewritePatternSet functions(context);
  // Functions of 16-bit floats first: the library has none.
  populateMathF32ExpansionPatterns(functions, [](StringRef) { return true; });
  functions.add<NarrowIsNaN>(context);
  (void)applyPatternsGreedily(module, std::move(functions));
  bool hasBF16 = false;
  module.walk([&](Operation *op) {
    auto isBF16 = [](Type type) { return getElementTypeOrSelf(type).isBF16(); };
    hasBF16 |= llvm::any_of(op->getOperandTypes(), isBF16) || llvm::any_of(op->getResultTypes(), isBF16);
  });
  if (!hasBF16)
    return;
  // Then arithmetic on bf16, which is f32's rounded, then the rounding itself.
  TypeConverter converter;
  arith::populateEmulateUnsupportedFloatsConversions(converter, {BFloat16Type::get(context)},
                                                     Float32Type::get(context));
  RewritePatternSet arithmetic(context);
  arith::populateEmulateUnsupportedFloatsPatterns(arithmetic, converter);
  ConversionTarget target(*context);
  arith::populateEmulateUnsupportedFloatsLegality(target, converter);
  (void)applyPartialConversion(module, target, std::move(arithmetic));
  if (canRound)
    markRounding(module);
  RewritePatternSet rounding(context);
  arith::populateExpandBFloat16Patterns(rounding);
  (void)applyPatternsGreedily(module, std::move(rounding));
  holdAsBits(module);
  RewritePatternSet rest(context);
  rest.add<SameTypeBitcast>(context);
  (void)applyPatternsGreedily(module, std::move(rest));
  if (canRound)
    unmarkRounding(module);
}
