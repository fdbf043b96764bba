//===- FuseActivation.cpp - GELU and SiLU from their parts -----*- C++ -*-===//
//
// Recognises the activations that exporters write as products, and logarithms of probabilities, which overflow in
// parts.
//
//===----------------------------------------------------------------------===//

#include "Product.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Patterns.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

namespace {
/// ½ · x · (1 + erf(x/√2)), ½ · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))), in any order of factors.
struct FuseGelu : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;

  /// x, if `argument` is x/√2.
  static Value matchErfArgument(Value argument) {
    double coefficient = 1.0;
    Value x = peelConstants(argument, coefficient);
    return isNearly(coefficient, M_SQRT1_2) ? x : Value();
  }

  /// x, if `argument` is √(2/π) · (x + 0.044715 · x³).
  static Value matchTanhArgument(Value argument) {
    double coefficient = 1.0;
    auto sum = peelConstants(argument, coefficient).getDefiningOp<AddOp>();
    if (!sum || !isNearly(coefficient, std::sqrt(2.0 / M_PI)))
      return {};
    for (auto [x, cubic] : {std::pair(sum.getA(), sum.getB_()), std::pair(sum.getB_(), sum.getA())}) {
      Product product = takeApart(cubic, x);
      if (product.divisors.empty() && product.factors.size() == 3 &&
          llvm::all_of(product.factors, [&](Value factor) { return factor == x; }) &&
          isNearly(product.coefficient, 0.044715))
        return x;
    }
    return {};
  }

  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    for (Value factor : takeApart(op.getY()).factors) {
      double one = 0.0;
      Value function = peelAddend(factor, one);
      if (!function || one != 1.0)
        continue;
      auto erf = function.getDefiningOp<ErfOp>();
      auto tanh = function.getDefiningOp<TanhOp>();
      Value x = erf ? matchErfArgument(erf.getX()) : tanh ? matchTanhArgument(tanh.getX()) : Value();
      if (!x)
        continue;
      Product whole = takeApart(op.getY(), x);
      if (whole.factors.size() != 2 || !whole.divisors.empty() || !llvm::is_contained(whole.factors, x) ||
          !llvm::is_contained(whole.factors, factor) || !isNearly(whole.coefficient, 0.5))
        continue;
      Expr argument(rewriter, op.getLoc(), x);
      rewriter.replaceOp(op, (erf ? gelu(argument) : geluTanh(argument)).get());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "not the product of a GELU");
  }
};

struct FuseSilu : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    for (auto [x, gate] : {std::pair(op.getA(), op.getB_()), std::pair(op.getB_(), op.getA())})
      if (auto sigmoid = gate.getDefiningOp<SigmoidOp>(); sigmoid && sigmoid.getX() == x) {
        rewriter.replaceOp(op, silu(Expr(rewriter, op.getLoc(), x)).get());
        return success();
      }
    return rewriter.notifyMatchFailure(op, "not x · sigmoid(x)");
  }
};

/// log σ(x) → -softplus(-x), log(1 - σ(x)) → -softplus(x), log softmax(x) → log_softmax(x): a probability that rounds
/// to zero has a logarithm.
struct FuseLogProbability : OpRewritePattern<LogOp> {
  using OpRewritePattern::OpRewritePattern;

  /// p of 1 - p; null if value is no such difference.
  static Value matchComplement(Value value) {
    if (auto sub = value.getDefiningOp<SubOp>())
      return getSplat(sub.getA()) == 1.0 ? sub.getB_() : Value();
    double one = 0;
    Value rest = peelAddend(value, one);
    auto neg = rest ? rest.getDefiningOp<NegOp>() : NegOp();
    return neg && one == 1.0 ? neg.getX() : Value();
  }

  LogicalResult matchAndRewrite(LogOp op, PatternRewriter &rewriter) const override {
    if (auto softmax = op.getX().getDefiningOp<SoftmaxOp>()) {
      rewriter.replaceOp(op, logSoftmax(Expr(rewriter, op.getLoc(), softmax.getX()), softmax.getDim()).get());
      return success();
    }
    Value complement = matchComplement(op.getX());
    auto sigmoid = (complement ? complement : op.getX()).getDefiningOp<SigmoidOp>();
    if (!sigmoid)
      return rewriter.notifyMatchFailure(op, "not the logarithm of a probability");
    Expr x(rewriter, op.getLoc(), sigmoid.getX());
    rewriter.replaceOp(op, (-softplus(complement ? x : -x)).get());
    return success();
  }
};
} // namespace

void nn::addActivationFusion(RewritePatternSet &patterns) {
  patterns.add<FuseGelu, FuseSilu, FuseLogProbability>(patterns.getContext());
}
