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

// Exporters put reshapes between product, bias and loss, and move the classes from the last dimension to the second.

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
      broadcast.getX().getType().getNumElements() != classes || broadcast.getX().getType().getShape().back() != classes)
    return {};
  return broadcast.getX();
}

namespace {
/// The product and the bias that the logits are made of, or why they are not.
struct HeadParts {
  explicit HeadParts(SoftmaxCrossEntropyOp op);

  /// Whether keeping the logits whole takes clearly more bytes than a chunk of them beside the weight's gradient, as it
  /// is added up, and one term of it.
  bool pays();

  DotOp product;
  Value bias;
  const char *reason = nullptr;
};
} // namespace

bool HeadParts::pays() {
  constexpr int64_t smallLogitsBytes = 1 << 20;
  auto bytes = [](RankedTensorType type) { return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8); };
  int64_t logitsBytes = bytes(product.getY().getType());
  return logitsBytes >= smallLogitsBytes && logitsBytes / 4 >= bytes(product.getB().getType());
}

HeadParts::HeadParts(SoftmaxCrossEntropyOp op) {
  if (!op.getLse().use_empty()) {
    reason = "the logarithms of the sums are read";
    return;
  }
  int64_t classes = op.getLogits().getType().getDimSize(1);
  Value logits = peelClassesSecond(op.getLogits());
  if (!logits || !logits.hasOneUse()) {
    reason = "the logits are read elsewhere, or their classes are not the last dimension";
    return;
  }
  logits = peelReshapes(logits, classes);
  if (auto sum = logits.getDefiningOp<AddOp>(); sum && logits.hasOneUse())
    for (auto [term, rest] : {std::pair(sum.getA(), sum.getB_()), std::pair(sum.getB_(), sum.getA())})
      if (Value vector = bias ? Value() : matchBias(term, classes)) {
        bias = vector;
        logits = peelReshapes(rest, classes);
      }
  product = logits.getDefiningOp<DotOp>();
  if (product && !logits.hasOneUse()) {
    reason = "the logits are read elsewhere";
    return;
  }
  if (!product || product.getTransposeA() || product.getY().getType().getRank() != 2 ||
      product.getY().getType().getDimSize(1) != classes) {
    reason = "the logits are no product of rows with one matrix";
    return;
  }
  auto x = product.getA().getType();
  if (classes < x.getDimSize(1))
    reason = "there are fewer classes than features";
  else if (x.getElementType() != product.getY().getType().getElementType())
    reason = "the logits have another type than what they are made of";
}

std::optional<StringRef> nn::findLossHeadObstacle(SoftmaxCrossEntropyOp op) {
  HeadParts parts(op);
  if (parts.reason)
    return parts.reason;
  return parts.pays() ? std::nullopt : std::optional<StringRef>("they are not four times as large as the weight");
}

namespace {

struct FuseLossHead : OpRewritePattern<SoftmaxCrossEntropyOp> {
  FuseLossHead(MLIRContext *context, bool always) : OpRewritePattern(context), always(always) {}

  bool always;

  LogicalResult matchAndRewrite(SoftmaxCrossEntropyOp op, PatternRewriter &rewriter) const override {
    HeadParts parts(op);
    if (parts.reason)
      return rewriter.notifyMatchFailure(op, parts.reason);
    if (!always && !parts.pays())
      return rewriter.notifyMatchFailure(op, "the logits are small");
    Location loc = op->getLoc();
    auto x = parts.product.getA().getType();
    int64_t rows = x.getDimSize(0), classes = op.getLogits().getType().getDimSize(1);
    Expr labels = reshape(Expr(rewriter, loc, op.getLabels()), {rows});
    Value bias;
    if (parts.bias)
      bias = reshape(labels.with(parts.bias), {classes});
    auto type = RankedTensorType::get({rows}, x.getElementType());
    auto head = LinearCrossEntropyOp::create(rewriter, loc, type, parts.product.getA(), parts.product.getB(), bias,
                                             labels, rewriter.getUnitAttr(), op.getIgnoreIndexAttr());
    if (parts.product.getTransposeB())
      head.removeClassLastAttr();
    Expr loss = labels.with(head.getLoss());
    if (op.getWeights()) {
      // Where the label is ignored the loss is zero, whatever it is weighted by.
      Expr safe = labels;
      if (std::optional<uint64_t> ignored = op.getIgnoreIndex())
        safe = select(notEqual(labels, double(int64_t(*ignored))), labels, labels.like(0.0));
      loss = loss * gather(labels.with(op.getWeights()), safe, 0);
    }
    rewriter.replaceAllUsesWith(op.getLoss(), reshape(loss, op.getLoss().getType().getShape()));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void nn::addLossHeadFusion(RewritePatternSet &patterns, bool always) {
  patterns.add<FuseLossHead>(patterns.getContext(), always);
}
