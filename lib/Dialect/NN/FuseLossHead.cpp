//===- FuseLossHead.cpp - cross-entropy of a linear layer -------*- C++ -*-===//
//
// Recognises a product with a weight whose only use is a cross-entropy.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Patterns.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

namespace {

/// Exporters put reshapes between product, bias and loss, and move the classes from the last dimension to the second.
struct FuseLossHead : OpRewritePattern<SoftmaxCrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;

  /// The tensor [.., classes] that the logits [N, classes, d…] are, if they are its only use.
  static Value peelClassesSecond(Value logits) {
    int64_t rank = cast<RankedTensorType>(logits.getType()).getRank();
    if (rank == 2)
      return logits;
    auto transpose = logits.getDefiningOp<TransposeOp>();
    if (!transpose || !logits.hasOneUse() || transpose.getPermutation()[0] != 0 ||
        transpose.getPermutation()[1] != rank - 1)
      return {};
    for (int64_t dim = 2; dim < rank; ++dim)
      if (transpose.getPermutation()[dim] != dim - 1)
        return {};
    return transpose.getX();
  }

  /// Skips reshapes that leave the last dimension alone and have no other use.
  static Value peelReshapes(Value value, int64_t classes) {
    while (auto reshape = value.getDefiningOp<ReshapeOp>()) {
      auto type = reshape.getX().getType();
      if (!value.hasOneUse() || type.getRank() == 0 || type.getShape().back() != classes)
        break;
      value = reshape.getX();
    }
    return value;
  }

  /// A vector of `classes` numbers that `value` repeats along its last dimension; null if it is anything else.
  static Value matchBias(Value value, int64_t classes) {
    auto broadcast = value.getDefiningOp<BroadcastOp>();
    int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
    if (!broadcast || broadcast.getDims().empty() || broadcast.getDims().back() != rank - 1 ||
        broadcast.getX().getType().getNumElements() != classes ||
        broadcast.getX().getType().getShape().back() != classes)
      return {};
    return broadcast.getX();
  }

  LogicalResult matchAndRewrite(SoftmaxCrossEntropyOp op, PatternRewriter &rewriter) const override {
    if (op.getWeights())
      return rewriter.notifyMatchFailure(op, "classes have weights");
    if (!op.getLse().use_empty())
      return rewriter.notifyMatchFailure(op, "the logarithms of the sums are read");
    int64_t classes = op.getLogits().getType().getDimSize(1);
    Value logits = peelClassesSecond(op.getLogits());
    if (!logits || !logits.hasOneUse())
      return rewriter.notifyMatchFailure(op,
                                         "the logits are read elsewhere, or their classes are not the last dimension");
    logits = peelReshapes(logits, classes);
    Value bias;
    if (auto sum = logits.getDefiningOp<AddOp>(); sum && logits.hasOneUse()) {
      for (auto [term, product] : {std::pair(sum.getA(), sum.getB_()), std::pair(sum.getB_(), sum.getA())})
        if (Value vector = bias ? Value() : matchBias(term, classes)) {
          bias = vector;
          logits = peelReshapes(product, classes);
        }
    }
    auto product = logits.getDefiningOp<DotOp>();
    if (!product || !logits.hasOneUse() || product.getTransposeA() || product.getY().getType().getRank() != 2 ||
        product.getY().getType().getDimSize(1) != classes)
      return rewriter.notifyMatchFailure(op, "the logits are no product of rows with one matrix");
    auto x = product.getA().getType();
    // Fewer classes than features: the logits are smaller than what they are made of.
    if (classes < x.getDimSize(1) || x.getElementType() != product.getY().getType().getElementType())
      return rewriter.notifyMatchFailure(op, "the logits are small");

    Location loc = op.getLoc();
    int64_t rows = x.getDimSize(0);
    Expr labels = reshape(Expr(rewriter, loc, op.getLabels()), {rows});
    if (bias)
      bias = reshape(labels.with(bias), {classes});
    auto type = RankedTensorType::get({rows}, x.getElementType());
    auto head = LinearCrossEntropyOp::create(rewriter, loc, type, product.getA(), product.getB(), bias, labels,
                                             rewriter.getUnitAttr(), op.getIgnoreIndexAttr());
    if (product.getTransposeB())
      head.removeClassLastAttr();
    rewriter.replaceAllUsesWith(op.getLoss(), reshape(labels.with(head.getLoss()), op.getLoss().getType().getShape()));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void nn::addLossHeadFusion(RewritePatternSet &patterns) { patterns.add<FuseLossHead>(patterns.getContext()); }
