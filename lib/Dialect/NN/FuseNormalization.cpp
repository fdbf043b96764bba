//===- FuseNormalization.cpp - layer norm and RMS norm ---------*- C++ -*-===//
//
// Recognises the normalizations that exporters write as means, roots and products.
//
//===----------------------------------------------------------------------===//

#include "Product.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Patterns.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// The value that is repeated over all dimensions of `type` from `axis` on; null if `value` is something else.
static Value matchRow(Value value, int64_t &axis) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast || !llvm::equal(broadcast.getDims(), llvm::seq<int64_t>(0, broadcast.getDims().size())))
    return {};
  axis = broadcast.getDims().size();
  return broadcast.getX().getType().getShape() == broadcast.getType().getShape().take_front(axis) ? broadcast.getX()
                                                                                                  : Value();
}

/// The value of the shape from `axis` on that is repeated over all dimensions before it.
static Value matchColumns(Value value, int64_t axis) {
  auto type = cast<RankedTensorType>(value.getType());
  if (axis == 0)
    return value;
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast || !llvm::equal(broadcast.getDims(), llvm::seq<int64_t>(axis, type.getRank())) ||
      broadcast.getX().getType().getShape() != type.getShape().drop_front(axis))
    return {};
  return broadcast.getX();
}

/// x, if `value` is its mean over all dimensions from `axis` on.
static Value matchMean(Value value, int64_t axis) {
  double coefficient = 1.0;
  auto sum = peelConstants(value, coefficient).getDefiningOp<ReduceSumOp>();
  if (!sum || !llvm::equal(sum.getDims(), llvm::seq<int64_t>(axis, sum.getX().getType().getRank())))
    return {};
  double count =
      static_cast<double>(sum.getX().getType().getNumElements()) / static_cast<double>(sum.getType().getNumElements());
  return isNearly(coefficient * count, 1.0) ? sum.getX() : Value();
}

/// d, if `value` is the mean of d² plus ε.
static Value matchMeanSquare(Value value, int64_t axis, double &epsilon) {
  Value mean = peelAddend(value, epsilon);
  Value square = mean ? matchMean(mean, axis) : Value();
  auto mul = square ? square.getDefiningOp<MulOp>() : MulOp();
  return mul && mul.getA() == mul.getB_() ? mul.getA() : Value();
}

namespace {
/// d · 1/√(mean(d²) + ε) · scale, in any order of factors, as product or quotient; without a scale where that is null.
struct Normalized {
  Value d, scale;
  int64_t axis = 0;
  double epsilon = 0.0;
};

std::optional<Normalized> matchNormalized(Value value) {
  Normalized match;
  auto matchRoot = [&](Value part, bool isDivisor) -> Value {
    Value row = matchRow(part, match.axis);
    if (!row)
      return {};
    Value square;
    if (auto sqrt = row.getDefiningOp<SqrtOp>(); sqrt && isDivisor)
      square = sqrt.getX();
    else if (auto rsqrt = row.getDefiningOp<RsqrtOp>(); rsqrt && !isDivisor)
      square = rsqrt.getX();
    return square ? matchMeanSquare(square, match.axis, match.epsilon) : Value();
  };
  Product product = takeApart(value);
  Value root;
  for (Value factor : product.factors)
    if (!match.d && (match.d = matchRoot(factor, false)))
      root = factor;
  for (Value divisor : product.divisors)
    if (!match.d && (match.d = matchRoot(divisor, true)))
      root = divisor;
  if (!match.d)
    return std::nullopt;

  Product whole = takeApart(value, match.d);
  SmallVector<Value> rest;
  for (Value factor : llvm::concat<Value>(whole.factors, whole.divisors))
    if (factor != root && factor != match.d)
      rest.push_back(factor);
  if (whole.factors.size() + whole.divisors.size() != 2 + rest.size() || rest.size() > 1 ||
      !llvm::is_contained(whole.factors, match.d) || whole.coefficient != 1.0)
    return std::nullopt;
  if (rest.empty())
    return match;
  if (!llvm::is_contained(whole.factors, rest.front()))
    return std::nullopt;
  match.scale = matchColumns(rest.front(), match.axis);
  if (!match.scale)
    return std::nullopt;
  return match;
}

struct FuseLayerNorm : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    for (auto [product, addend] : {std::pair(op.getA(), op.getB_()), std::pair(op.getB_(), op.getA())}) {
      std::optional<Normalized> match = matchNormalized(product);
      auto centred = match && match->scale ? match->d.getDefiningOp<SubOp>() : SubOp();
      Value bias = centred ? matchColumns(addend, match->axis) : Value();
      int64_t axis = 0;
      Value mean = bias ? matchRow(centred.getB_(), axis) : Value();
      if (!mean || axis != match->axis || matchMean(mean, axis) != centred.getA())
        continue;
      Expr x(rewriter, op.getLoc(), centred.getA());
      rewriter.replaceOp(op, layerNorm(x, x.with(match->scale), x.with(bias), axis, match->epsilon)[0].get());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no normalization by mean and variance plus a bias");
  }
};

struct FuseRMSNorm : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    std::optional<Normalized> match = matchNormalized(op.getY());
    if (!match || !match->scale)
      return rewriter.notifyMatchFailure(op, "no normalization by the root of a mean square");
    int64_t axis;
    if (auto centred = match->d.getDefiningOp<SubOp>())
      if (Value mean = matchRow(centred.getB_(), axis); mean && matchMean(mean, axis) == centred.getA())
        return rewriter.notifyMatchFailure(op, "part of a layer norm");
    Expr x(rewriter, op.getLoc(), match->d);
    rewriter.replaceOp(op, rmsNorm(x, x.with(match->scale), match->axis, match->epsilon)[0].get());
    return success();
  }
};

/// Layer and RMS norm whose scale is missing, or differs from sample to sample.
template <typename Op> struct FuseBareNorm : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    std::optional<Normalized> match = matchNormalized(op.getY());
    if (!match || match->scale)
      return rewriter.notifyMatchFailure(op, "no normalization without a scale");
    for (Operation *user : op.getY().getUsers())
      if (auto product = dyn_cast<MulOp>(user))
        if (matchColumns(product.getA() == op.getY() ? product.getB_() : product.getA(), match->axis))
          return rewriter.notifyMatchFailure(op, "its scale comes after it");
    Expr d(rewriter, op.getLoc(), match->d), x = d, y;
    auto type = RankedTensorType::get(d.shape().drop_front(match->axis), d.elementType());
    Expr ones = splat(rewriter, op.getLoc(), type, 1.0);
    auto centred = match->d.template getDefiningOp<SubOp>();
    int64_t axis = 0;
    Value mean = centred ? matchRow(centred.getB_(), axis) : Value();
    if (mean && axis == match->axis && matchMean(mean, axis) == centred.getA())
      y = layerNorm(x.with(centred.getA()), ones, splat(rewriter, op.getLoc(), type, 0.0), axis, match->epsilon)[0];
    else
      y = rmsNorm(x, ones, match->axis, match->epsilon)[0];
    rewriter.replaceOp(op, y.get());
    return success();
  }
};
} // namespace

void nn::addNormalizationFusion(RewritePatternSet &patterns) {
  patterns.add<FuseLayerNorm, FuseRMSNorm, FuseBareNorm<MulOp>, FuseBareNorm<DivOp>>(patterns.getContext());
}
