//===- FuseCrossEntropy.cpp - losses written as picked logarithms ---------===//
//
// Recognises a cross-entropy that is written as one entry of a log-softmax for each label: its derivative reads the
// logits, which may be kept in 16 bits, instead of the logarithms, which may not.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Patterns.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// Extents in front of a dimension, of it, and behind it, each as one number.
static std::array<int64_t, 3> splitAt(ArrayRef<int64_t> shape, int64_t dim) {
  auto product = [](ArrayRef<int64_t> extents) {
    return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
  };
  return {product(shape.take_front(dim)), shape[dim], product(shape.drop_front(dim + 1))};
}

namespace {
/// log_softmax(x)[label] → -softmax_cross_entropy(x, label), behind reshapes that leave the classes alone.
struct FuseCrossEntropy : OpRewritePattern<GatherElementsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherElementsOp op, PatternRewriter &rewriter) const override {
    auto picked = op.getX().getType(), indices = op.getIndices().getType();
    const int64_t axis = op.getAxis();
    SmallVector<int64_t> column(picked.getShape());
    column[axis] = 1;
    if (indices.getShape() != ArrayRef<int64_t>(column) || !indices.getElementType().isSignlessInteger() ||
        indices.getElementType().isInteger(1))
      return rewriter.notifyMatchFailure(op, "not one label for each sample");
    Value scores = op.getX();
    while (auto reshape = scores.getDefiningOp<ReshapeOp>()) {
      if (!scores.hasOneUse())
        break;
      scores = reshape.getX();
    }
    auto logarithms = scores.getDefiningOp<LogSoftmaxOp>();
    if (!logarithms || !scores.hasOneUse())
      return rewriter.notifyMatchFailure(op, "not a log-softmax that nothing else reads");
    const auto [samples, classes, places] = splitAt(picked.getShape(), axis);
    if (splitAt(logarithms.getX().getType().getShape(), logarithms.getDim()) != splitAt(picked.getShape(), axis) ||
        classes == 0)
      return rewriter.notifyMatchFailure(op, "the labels are no classes of the log-softmax");
    // nn's op has the classes in dimension 1.
    Expr x(rewriter, op.getLoc(), logarithms.getX()), labels = x.with(op.getIndices());
    SmallVector<int64_t> shape{samples, classes}, perSample{samples};
    if (places != 1) {
      shape.push_back(places);
      perSample.push_back(places);
    }
    Expr losses = softmaxCrossEntropy(reshape(x, shape), reshape(labels, perSample))[0];
    rewriter.replaceOp(op, (-reshape(losses, column)).get());
    return success();
  }
};
} // namespace

void nn::addCrossEntropyFusion(RewritePatternSet &patterns) { patterns.add<FuseCrossEntropy>(patterns.getContext()); }
