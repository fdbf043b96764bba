//===- CanonicalizeContraction.cpp - sums and matrix products --*- C++ -*-===//
//
// What differentiation leaves behind: sums of what was repeated, transposes around products.
//
//===----------------------------------------------------------------------===//

#include "CanonicalizePatterns.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/OrderRules.h"

using namespace mlir;
using namespace lowtide::nn;

namespace {
/// Summing over unit dimensions is a reshape.
struct SumOverUnits : OpRewritePattern<ReduceSumOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceSumOp op, PatternRewriter &rewriter) const override {
    auto type = op.getX().getType();
    if (llvm::none_of(op.getDims(), [&](int64_t dim) { return type.getDimSize(dim) == 1; }))
      return rewriter.notifyMatchFailure(op, "no summed dimension is a unit");
    SmallVector<int64_t> shape, dims;
    for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
      bool isSummed = llvm::is_contained(op.getDims(), static_cast<int64_t>(dim));
      if (isSummed && extent == 1)
        continue;
      if (isSummed)
        dims.push_back(shape.size());
      shape.push_back(extent);
    }
    rewriter.replaceOp(op, sum(reshape(Expr(rewriter, op.getLoc(), op.getX()), shape), dims).get());
    return success();
  }
};

/// sum(sum(x)) → sum(x).
struct MergeSums : OpRewritePattern<ReduceSumOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceSumOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<ReduceSumOp>();
    if (inner && (inner->hasAttr(dividedAttrName) || inner->hasAttr(byRowsAttrName)))
      return rewriter.notifyMatchFailure(op, "the sum is meant to have two parts");
    if (!inner || !inner->hasOneUse())
      return rewriter.notifyMatchFailure(op, "the operand is no sum of its own");
    SmallVector<int64_t> kept, dims(inner.getDims());
    for (int64_t dim = 0; dim < inner.getX().getType().getRank(); ++dim)
      if (!llvm::is_contained(inner.getDims(), dim))
        kept.push_back(dim);
    for (int64_t dim : op.getDims())
      dims.push_back(kept[dim]);
    llvm::sort(dims);
    rewriter.replaceOp(op, sum(Expr(rewriter, op.getLoc(), inner.getX()), dims).get());
    return success();
  }
};

/// Σ_a x[…, a, b, …] · [a = b] → x[…, b, b, …]: what exporters make of a diagonal. Reading it is no product with zeros,
/// which would make infinite neighbors NaN.
struct SumOfDiagonal : OpRewritePattern<ReduceSumOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceSumOp op, PatternRewriter &rewriter) const override {
    auto product = op.getX().getDefiningOp<MulOp>();
    if (!product || op.getDims().size() != 1)
      return rewriter.notifyMatchFailure(op, "no sum of products along one dimension");
    for (auto [x, mask] : {std::pair(product.getA(), product.getB_()), std::pair(product.getB_(), product.getA())}) {
      std::optional<std::pair<int64_t, int64_t>> dims = findDiagonal(mask);
      const int64_t summed = op.getDims()[0];
      auto type = cast<RankedTensorType>(x.getType());
      if (!dims || (summed != dims->first && summed != dims->second) ||
          type.getDimSize(dims->first) != type.getDimSize(dims->second))
        continue;
      int64_t other = std::min(dims->first, dims->second), axis = std::max(dims->first, dims->second);
      // Of neighbors either may be read along: what is left stands at the same place.
      if (axis != other + 1 && summed != axis)
        std::swap(other, axis);
      SmallVector<int64_t> shape(type.getShape());
      shape[axis] = 1;
      Expr from(rewriter, op.getLoc(), x);
      Expr places = iota(rewriter, op.getLoc(), RankedTensorType::get(shape, rewriter.getI64Type()), other);
      rewriter.replaceOp(op, reshape(gatherElements(from, places, axis), op.getType().getShape()).get());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no factor is one on a diagonal and zero elsewhere");
  }

private:
  /// The two dimensions along which `mask` is one where places are equal and zero where they are not.
  static std::optional<std::pair<int64_t, int64_t>> findDiagonal(Value mask) {
    if (auto broadcast = mask.getDefiningOp<BroadcastOp>()) {
      auto inner = findDiagonal(broadcast.getX());
      auto type = broadcast.getX().getType();
      if (!inner || type.getDimSize(inner->first) == 1)
        return std::nullopt;
      return std::pair(broadcast.getDims()[inner->first], broadcast.getDims()[inner->second]);
    }
    auto truth = mask.getDefiningOp<CastOp>();
    auto equal = truth ? truth.getX().getDefiningOp<CompareOp>() : CompareOp();
    if (!equal || equal.getPredicate() != ComparePredicate::eq)
      return std::nullopt;
    auto a = equal.getA().getDefiningOp<IotaOp>(), b = equal.getB_().getDefiningOp<IotaOp>();
    if (!a || !b || a.getDim() == b.getDim())
      return std::nullopt;
    return std::pair(int64_t(a.getDim()), int64_t(b.getDim()));
  }
};

/// sum(broadcast(x)) → broadcast(sum(x) · repetitions).
struct SumOfRepeated : OpRewritePattern<ReduceSumOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceSumOp op, PatternRewriter &rewriter) const override {
    auto broadcast = op.getX().getDefiningOp<BroadcastOp>();
    if (!broadcast || !isa<FloatType>(op.getType().getElementType()))
      return rewriter.notifyMatchFailure(op, "the operand is no broadcast of floats");
    if (llvm::is_contained(broadcast.getX().getType().getShape(), 1))
      return rewriter.notifyMatchFailure(op, "unit dimensions are dropped first");
    int64_t repetitions = 1;
    for (int64_t dim : op.getDims())
      if (!llvm::is_contained(broadcast.getDims(), dim))
        repetitions *= broadcast.getType().getDimSize(dim);
    if (repetitions == 1)
      return rewriter.notifyMatchFailure(op, "no summed dimension is repeated");

    SmallVector<int64_t> summed, dims; // of x; of the result, for what is kept of x
    for (auto [i, dim] : llvm::enumerate(broadcast.getDims())) {
      if (llvm::is_contained(op.getDims(), dim))
        summed.push_back(i);
      else
        dims.push_back(dim - llvm::count_if(op.getDims(), [&](int64_t reduced) { return reduced < dim; }));
    }
    Expr x(rewriter, op.getLoc(), broadcast.getX());
    Expr total = sum(x, summed) * static_cast<double>(repetitions);
    rewriter.replaceOp(op, lowtide::nn::broadcast(total, op.getType().getShape(), dims).get());
    return success();
  }
};

/// Whether the transpose swaps the last two dimensions and keeps the others.
bool swapsMatrix(TransposeOp op) {
  if (!op)
    return false;
  ArrayRef<int64_t> permutation = op.getPermutation();
  int64_t rank = permutation.size();
  if (rank < 2 || permutation[rank - 1] != rank - 2 || permutation[rank - 2] != rank - 1)
    return false;
  return llvm::equal(permutation.drop_back(2), llvm::seq<int64_t>(0, rank - 2));
}

/// x, if `value` is x with the matrices transposed; a reshape of the dimensions before the matrix may come after.
Value matchTransposed(Value value, PatternRewriter &rewriter) {
  if (auto transpose = value.getDefiningOp<TransposeOp>(); swapsMatrix(transpose))
    return transpose.getX();
  auto reshaped = value.getDefiningOp<ReshapeOp>();
  auto transpose = reshaped ? reshaped.getX().getDefiningOp<TransposeOp>() : TransposeOp();
  if (!swapsMatrix(transpose))
    return {};
  SmallVector<int64_t> shape(reshaped.getType().getShape());
  if (shape.size() < 2 || ArrayRef(shape).take_back(2) != transpose.getType().getShape().take_back(2))
    return {};
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return reshape(Expr(rewriter, reshaped.getLoc(), transpose.getX()), shape);
}

/// dot(transpose(a), b) → dot(a, b) with the flag.
struct TransposeIntoDot : OpRewritePattern<DotOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotOp op, PatternRewriter &rewriter) const override {
    Value a = matchTransposed(op.getA(), rewriter), b = matchTransposed(op.getB(), rewriter);
    if (!a && !b)
      return rewriter.notifyMatchFailure(op, "no operand is a transposed matrix");
    rewriter.replaceOpWithNewOp<DotOp>(op, op.getType(), a ? a : op.getA(), b ? b : op.getB(),
                                       op.getTransposeA() != static_cast<bool>(a),
                                       op.getTransposeB() != static_cast<bool>(b));
    return success();
  }
};

/// Matrices transposed twice, with a reshape of the dimensions before them between.
struct TransposeTwice : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    Value x = swapsMatrix(op) ? matchTransposed(op.getX(), rewriter) : Value();
    if (!x)
      return rewriter.notifyMatchFailure(op, "not transposed twice");
    rewriter.replaceOp(op, x);
    return success();
  }
};

/// transpose(dot(a, b)) → dot(b, a), both transposed.
struct TransposeOfDot : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto dot = op.getX().getDefiningOp<DotOp>();
    if (!dot || !dot->hasOneUse() || !swapsMatrix(op))
      return rewriter.notifyMatchFailure(op, "not the transpose of a product of its own");
    rewriter.replaceOpWithNewOp<DotOp>(op, op.getType(), dot.getB(), dot.getA(), !dot.getTransposeB(),
                                       !dot.getTransposeA());
    return success();
  }
};

/// dot(a[B, M, K], broadcast(w)) → one product of a[B · M, K] with w. Its derivative with respect to w is then one
/// product too, instead of a batch of them and a sum.
struct SharedWeight : OpRewritePattern<DotOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotOp op, PatternRewriter &rewriter) const override {
    auto broadcast = op.getB().getDefiningOp<BroadcastOp>();
    int64_t rank = op.getType().getRank();
    if (!broadcast || rank < 3 || op.getTransposeA())
      return rewriter.notifyMatchFailure(op, "the second operand is not repeated over a batch");
    if (broadcast.getX().getType().getRank() != 2 || broadcast.getDims()[0] != rank - 2 ||
        broadcast.getX().getType().getShape() != op.getB().getType().getShape().take_back(2))
      return rewriter.notifyMatchFailure(op, "what is repeated is no whole matrix");
    Expr a(rewriter, op.getLoc(), op.getA());
    int64_t columns = a.dim(-1);
    Expr rows = reshape(a, {a.type().getNumElements() / columns, columns});
    // Its result may be wider than its operands.
    Expr product = rows.with(DotOp::create(rewriter, op.getLoc(),
                                           op.getType().clone({rows.dim(0), op.getType().getShape().back()}), rows,
                                           broadcast.getX(), false, op.getTransposeB()));
    rewriter.replaceOp(op, reshape(product, op.getType().getShape()).get());
    return success();
  }
};
/// dot(softmax(x)[…, :n], b) → dot(softmax(x), b with rows of zeros after it): what attention with sinks computes,
/// whose columns no value belongs to. The probabilities are kept once, not next to most of themselves.
struct ProbabilitiesOfSinks : OpRewritePattern<DotOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotOp op, PatternRewriter &rewriter) const override {
    constexpr int64_t fewOf = 16;
    auto part = op.getA().getDefiningOp<SliceOp>();
    auto softmax = part ? part.getX().getDefiningOp<SoftmaxOp>() : SoftmaxOp();
    if (!softmax || !part->hasOneUse() || !softmax->hasOneUse() || op.getTransposeA())
      return rewriter.notifyMatchFailure(op, "the first operand is no part of probabilities that nothing else reads");
    ArrayRef<int64_t> from = part.getX().getType().getShape(), to = part.getY().getType().getShape();
    const int64_t last = int64_t(from.size()) - 1, more = from[last] - to[last];
    auto isZero = [](int64_t start) { return start == 0; };
    if (int64_t(softmax.getDim()) != last || from.drop_back() != to.drop_back() || more * fewOf > from[last] ||
        !llvm::all_of(part.getStarts(), isZero) || part.getStrides()[last] != 1)
      return rewriter.notifyMatchFailure(op, "not all but few of the last columns");
    Expr b(rewriter, op.getLoc(), op.getB());
    SmallVector<int64_t> none(b.rank(), 0), high(none);
    high[op.getTransposeB() ? b.rank() - 1 : b.rank() - 2] = more;
    rewriter.replaceOpWithNewOp<DotOp>(op, op.getType(), softmax.getY(), pad(b, none, high), false, op.getTransposeB());
    return success();
  }
};
} // namespace

void lowtide::nn::addContractionPatterns(RewritePatternSet &patterns) {
  patterns.add<SumOverUnits, MergeSums, SumOfDiagonal, SumOfRepeated, TransposeIntoDot, TransposeTwice, TransposeOfDot,
               SharedWeight, ProbabilitiesOfSinks>(patterns.getContext());
}
