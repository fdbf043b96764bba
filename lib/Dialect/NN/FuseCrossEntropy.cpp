//===- FuseCrossEntropy.cpp - losses written as picked logarithms ---------===//
//
// Recognises a cross-entropy that is written as one entry of a log-softmax for each label, or with a log-sum-exp, and
// what is added to one: sums of the logarithms, which smooth it, and log-sum-exps, which are kept small. Derivatives
// read the logits, which may be kept in 16 bits, instead of the logarithms, which may not.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Patterns.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// Extents in front of a dimension, of it, and after it, each as one number.
static std::array<int64_t, 3> splitAt(ArrayRef<int64_t> shape, int64_t dim) {
  auto product = [](ArrayRef<int64_t> extents) {
    return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
  };
  return {product(shape.take_front(dim)), shape[dim], product(shape.drop_front(dim + 1))};
}

/// Where `type` has the dimension that `split` describes.
static std::optional<int64_t> findDim(RankedTensorType type, std::array<int64_t, 3> split) {
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (splitAt(type.getShape(), dim) == split)
      return dim;
  return std::nullopt;
}

static Value peelReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  return value;
}

/// Whether `op` reads one entry of dimension `axis` for each sample.
static bool picksLabels(GatherElementsOp op, int64_t axis) {
  SmallVector<int64_t> column(op.getX().getType().getShape());
  column[axis] = 1;
  auto indices = op.getIndices().getType();
  return op.getAxis() == static_cast<uint64_t>(axis) && indices.getShape() == ArrayRef<int64_t>(column) &&
         indices.getElementType().isSignlessInteger() && !indices.getElementType().isInteger(1);
}

namespace {
/// The log-softmax that a tensor is, before reshapes that leave the classes alone and changes of sign.
struct LogProbabilities {
  /// `axis`: the classes of `value`.
  LogProbabilities(Value value, int64_t axis) {
    split = splitAt(cast<RankedTensorType>(value.getType()).getShape(), axis);
    while (true) {
      if (auto reshape = value.getDefiningOp<ReshapeOp>()) {
        value = reshape.getX();
      } else if (auto opposite = value.getDefiningOp<NegOp>()) {
        value = opposite.getX();
        negated = !negated;
      } else {
        break;
      }
    }
    op = value.getDefiningOp<LogSoftmaxOp>();
    if (op && (splitAt(op.getX().getType().getShape(), op.getDim()) != split || split[1] == 0))
      op = {};
  }

  /// Whether all that is read of the log-softmax is one entry for each label, and sums over all classes.
  bool areNotKept() { return areNotKept(op.getY()); }

  LogSoftmaxOp op; ///< null if it is none
  std::array<int64_t, 3> split;
  bool negated = false;

private:
  bool areNotKept(Value value) {
    std::optional<int64_t> axis = findDim(cast<RankedTensorType>(value.getType()), split);
    return axis && llvm::all_of(value.getUsers(), [&](Operation *user) {
             if (isa<ReshapeOp, NegOp>(user))
               return areNotKept(user->getResult(0));
             if (auto picked = dyn_cast<GatherElementsOp>(user))
               return picked.getX() == value && picksLabels(picked, *axis);
             auto sum = dyn_cast<ReduceSumOp>(user);
             return sum && llvm::is_contained(sum.getDims(), *axis);
           });
  }
};

/// log Σ_c exp(logits[c] - shift) + shift, whatever the shift, which is the largest of them as a rule.
struct LogSumExp {
  explicit LogSumExp(Value value) {
    auto sum = value.getDefiningOp<AddOp>();
    if (sum && !match(sum.getA(), sum.getB_()))
      match(sum.getB_(), sum.getA());
  }

  Value logits; ///< null if it is none
  int64_t axis = 0;

private:
  bool match(Value logarithm, Value shift) {
    auto log = peelReshapes(logarithm).getDefiningOp<LogOp>();
    auto sum = log ? peelReshapes(log.getX()).getDefiningOp<ReduceSumOp>() : ReduceSumOp();
    auto power = sum && sum.getDims().size() == 1 ? sum.getX().getDefiningOp<ExpOp>() : ExpOp();
    auto difference = power ? power.getX().getDefiningOp<SubOp>() : SubOp();
    auto spread = difference ? difference.getB_().getDefiningOp<BroadcastOp>() : BroadcastOp();
    if (!spread || peelReshapes(spread.getX()) != peelReshapes(shift) ||
        llvm::is_contained(spread.getDims(), sum.getDims()[0]))
      return false;
    logits = difference.getA();
    axis = sum.getDims()[0];
    return true;
  }
};

/// The cross-entropy of these logits, whichever way they are reshaped.
SoftmaxCrossEntropyOp findLoss(Value logits, std::array<int64_t, 3> split) {
  for (Operation *user : logits.getUsers()) {
    auto loss = dyn_cast<SoftmaxCrossEntropyOp>(user);
    if (auto reshape = dyn_cast<ReshapeOp>(user))
      loss = findLoss(reshape.getY(), split);
    if (loss && splitAt(loss.getLogits().getType().getShape(), 1) == split)
      return loss;
  }
  return {};
}

/// Moves `loss` and what it is computed from in front of `op`; false where that is not possible.
bool moveInFront(SoftmaxCrossEntropyOp loss, Operation *op, PatternRewriter &rewriter) {
  if (loss->getBlock() != op->getBlock())
    return false;
  if (loss->isBeforeInBlock(op))
    return true;
  if (failed(moveOperationDependencies(rewriter, loss, op)))
    return false;
  rewriter.moveOpBefore(loss, op);
  return true;
}

/// The cross-entropy of logits whose classes are where `split` says, in the shape of the labels.
Expr buildLoss(Expr logits, std::array<int64_t, 3> split, Expr labels) {
  const auto [samples, classes, places] = split;
  // nn's op has the classes in dimension 1.
  SmallVector<int64_t> shape{samples, classes}, perSample{samples};
  if (places != 1) {
    shape.push_back(places);
    perSample.push_back(places);
  }
  return reshape(softmaxCrossEntropy(reshape(logits, shape), reshape(labels, perSample))[0], labels.shape());
}

/// log_softmax(x)[label] → -softmax_cross_entropy(x, label).
struct FusePickedLogarithm : OpRewritePattern<GatherElementsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherElementsOp op, PatternRewriter &rewriter) const override {
    const int64_t axis = op.getAxis();
    if (!picksLabels(op, axis))
      return rewriter.notifyMatchFailure(op, "not one label for each sample");
    LogProbabilities logarithms(op.getX(), axis);
    if (!logarithms.op || !logarithms.areNotKept())
      return rewriter.notifyMatchFailure(op, "not a log-softmax of which only labels and sums are read");
    Expr x(rewriter, op.getLoc(), logarithms.op.getX());
    Expr losses = buildLoss(x, logarithms.split, x.with(op.getIndices()));
    rewriter.replaceOp(op, (logarithms.negated ? losses : -losses).get());
    return success();
  }
};

/// Σ_c log_softmax(x)[c] → Σ_c (x[c] - lse), where a cross-entropy of the same logits has the logarithm of their sum:
/// what is added where labels are smoothed.
struct FuseSummedLogarithms : OpRewritePattern<ReduceSumOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReduceSumOp op, PatternRewriter &rewriter) const override {
    auto from = op.getX().getType();
    for (int64_t axis : op.getDims()) {
      LogProbabilities logarithms(op.getX(), axis);
      if (!logarithms.op || !logarithms.areNotKept())
        continue;
      SoftmaxCrossEntropyOp loss = findLoss(logarithms.op.getX(), logarithms.split);
      if (!loss || !moveInFront(loss, op, rewriter))
        continue;
      Expr logits(rewriter, op.getLoc(), loss.getLogits()), lse = logits.with(loss.getLse());
      // Dimensions around the classes may be parted otherwise in what is summed.
      SmallVector<int64_t> perSample(from.getShape()), others;
      perSample.erase(perSample.begin() + axis);
      for (int64_t dim : op.getDims())
        if (dim != axis)
          others.push_back(dim < axis ? dim : dim - 1);
      Expr total = reshape(sum(logits - unreduce(lse, logits.type(), 1), 1), perSample);
      if (!others.empty())
        total = sum(total, others);
      rewriter.replaceOp(op, (logarithms.negated ? -total : total).get());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no sum over the classes of a log-softmax beside a cross-entropy");
  }
};

/// log_sum_exp(x) - x[label] → softmax_cross_entropy(x, label), and the opposite, the logarithm of its probability.
struct FuseSubtractedLogit : OpRewritePattern<SubOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SubOp op, PatternRewriter &rewriter) const override {
    Expr loss = findLoss(op.getA(), op.getB_(), rewriter);
    const bool isOpposite = !loss;
    if (isOpposite)
      loss = findLoss(op.getB_(), op.getA(), rewriter);
    if (!loss)
      return rewriter.notifyMatchFailure(op, "no log-sum-exp and the entry of a label");
    Expr losses = reshape(loss, op.getY().getType().getShape());
    rewriter.replaceOp(op, (isOpposite ? -losses : losses).get());
    return success();
  }

private:
  /// The cross-entropy that `logarithm - entry` is; null if it is none.
  static Expr findLoss(Value logarithm, Value entry, PatternRewriter &rewriter) {
    LogSumExp logSum(peelReshapes(logarithm));
    auto picked = peelReshapes(entry).getDefiningOp<GatherElementsOp>();
    if (!logSum.logits || !picked || peelReshapes(picked.getX()) != peelReshapes(logSum.logits) ||
        !picksLabels(picked, int64_t(picked.getAxis())))
      return Expr();
    Expr x(rewriter, picked.getLoc(), picked.getX());
    const auto split = splitAt(x.shape(), int64_t(picked.getAxis()));
    if (split != splitAt(cast<RankedTensorType>(logSum.logits.getType()).getShape(), logSum.axis))
      return Expr();
    return buildLoss(x, split, x.with(picked.getIndices()));
  }
};

/// log_sum_exp(x) → lse of a cross-entropy of the same logits.
struct FuseLogSumExp : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    LogSumExp logSum(op.getY());
    if (!logSum.logits)
      return rewriter.notifyMatchFailure(op, "no log-sum-exp");
    auto shape = cast<RankedTensorType>(logSum.logits.getType()).getShape();
    SoftmaxCrossEntropyOp loss = findLoss(logSum.logits, splitAt(shape, logSum.axis));
    if (!loss || !moveInFront(loss, op, rewriter))
      return rewriter.notifyMatchFailure(op, "no cross-entropy of the same logits");
    Expr lse(rewriter, op.getLoc(), loss.getLse());
    rewriter.replaceOp(op, reshape(lse, op.getY().getType().getShape()).get());
    return success();
  }
};
} // namespace

void nn::addCrossEntropyFusion(RewritePatternSet &patterns) {
  patterns.add<FusePickedLogarithm, FuseSummedLogarithms, FuseSubtractedLogit, FuseLogSumExp>(patterns.getContext());
}
