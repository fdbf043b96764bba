//===- FuseLossHead.cpp - cross-entropy of a linear layer -------*- C++ -*-===//
//
// Recognises a product with a weight of which a cross-entropy is computed and nothing else but sums over the classes:
// those are products with sums of the weight, and need no logits.
//
//===----------------------------------------------------------------------===//

#include "HeadRows.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Patterns.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

// Exporters put reshapes between product, bias and loss, and move the classes from the last dimension to the second.

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
/// A sum over all classes of logits, less `lse` of their cross-entropy if `isLogarithm`.
struct ClassSum {
  ReduceSumOp sum;
  bool isLogarithm;
};

/// The product and the bias that the logits are made of, or why they are not.
struct HeadParts {
  explicit HeadParts(SoftmaxCrossEntropyOp op);

  DotOp product;
  Value bias;
  SmallVector<ClassSum> sums;
  const char *reason = nullptr;

private:
  /// Takes all readers of the logits but the loss as sums; whether they are.
  bool collectSums();
  bool collectSum(Operation *reader, Value terms, bool isLogarithm);
  /// Whether `value`, which the logits are or are made of, is read for the loss and the sums only.
  bool belongsToHead(Value value) { return value == op.getLogits() || value.hasOneUse(); }
  Value peelClassesSecond();
  Value peelReshapes(Value value, int64_t classes);

  SoftmaxCrossEntropyOp op;
};
} // namespace

bool HeadParts::collectSum(Operation *reader, Value terms, bool isLogarithm) {
  auto sum = dyn_cast<ReduceSumOp>(reader);
  if (!sum || sum.getX() != terms || sum.getDims() != ArrayRef<int64_t>{1} || sum->getBlock() != op->getBlock() ||
      sum->isBeforeInBlock(op))
    return false;
  sums.push_back({sum, isLogarithm});
  return true;
}

bool HeadParts::collectSums() {
  Value logits = op.getLogits();
  return llvm::all_of(logits.getUsers(), [&](Operation *reader) {
    if (reader == op || collectSum(reader, logits, false))
      return true;
    auto difference = dyn_cast<SubOp>(reader);
    if (!difference || difference.getA() != logits)
      return false;
    auto spread = difference.getB_().getDefiningOp<BroadcastOp>();
    Value perRow = spread ? spread.getX() : Value();
    while (auto reshape = perRow ? perRow.getDefiningOp<ReshapeOp>() : ReshapeOp())
      perRow = reshape.getX();
    if (!spread || perRow != op.getLse() || llvm::is_contained(spread.getDims(), 1))
      return false;
    return llvm::all_of(difference->getUsers(),
                        [&](Operation *user) { return collectSum(user, difference.getY(), true); });
  });
}

/// The tensor [.., classes] that the logits [N, classes, d…] are, if nothing else reads it.
Value HeadParts::peelClassesSecond() {
  Value logits = op.getLogits();
  int64_t rank = cast<RankedTensorType>(logits.getType()).getRank();
  if (rank == 2)
    return logits;
  auto transpose = logits.getDefiningOp<TransposeOp>();
  if (!transpose || transpose.getPermutation()[0] != 0 || transpose.getPermutation()[1] != rank - 1)
    return {};
  for (int64_t dim = 2; dim < rank; ++dim)
    if (transpose.getPermutation()[dim] != dim - 1)
      return {};
  return transpose.getX();
}

/// Skips reshapes that leave the last dimension alone and that nothing else reads.
Value HeadParts::peelReshapes(Value value, int64_t classes) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    auto type = reshape.getX().getType();
    if (!belongsToHead(value) || type.getRank() == 0 || type.getShape().back() != classes)
      break;
    value = reshape.getX();
  }
  return value;
}

HeadParts::HeadParts(SoftmaxCrossEntropyOp op) : op(op) {
  int64_t classes = op.getLogits().getType().getDimSize(1);
  Value logits = peelClassesSecond();
  if (!logits || !belongsToHead(logits) || !collectSums()) {
    reason = "the logits are read elsewhere, or their classes are not the last dimension";
    return;
  }
  logits = peelReshapes(logits, classes);
  if (auto sum = logits.getDefiningOp<AddOp>(); sum && belongsToHead(logits))
    for (auto [term, rest] : {std::pair(sum.getA(), sum.getB_()), std::pair(sum.getB_(), sum.getA())})
      if (Value vector = bias ? Value() : matchBias(term, classes)) {
        bias = vector;
        logits = peelReshapes(rest, classes);
      }
  product = logits.getDefiningOp<DotOp>();
  if (product && !belongsToHead(logits)) {
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

namespace {

struct FuseLossHead : OpRewritePattern<SoftmaxCrossEntropyOp> {
  FuseLossHead(MLIRContext *context, bool always) : OpRewritePattern(context), always(always) {}

  bool always;

  LogicalResult matchAndRewrite(SoftmaxCrossEntropyOp op, PatternRewriter &rewriter) const override {
    HeadParts parts(op);
    if (parts.reason)
      return rewriter.notifyMatchFailure(op, parts.reason);
    if (!always && !isLargeHead(parts.product))
      return rewriter.notifyMatchFailure(op, "the logits are small");
    Location loc = op->getLoc();
    auto x = parts.product.getA().getType();
    int64_t rows = x.getDimSize(0), classes = op.getLogits().getType().getDimSize(1);
    Expr labels = reshape(Expr(rewriter, loc, op.getLabels()), {rows});
    Value bias;
    if (parts.bias)
      bias = reshape(labels.with(parts.bias), {classes});
    bool classLast = !parts.product.getTransposeB();
    Expr features = labels.with(parts.product.getA()), weight = labels.with(parts.product.getB());
    auto [loss, lse] = linearCrossEntropy(features, weight, labels.with(bias), labels, classLast, op.getIgnoreIndex());
    if (op.getWeights()) {
      // Where the label is ignored the loss is zero, whatever it is weighted by.
      Expr safe = labels;
      if (std::optional<uint64_t> ignored = op.getIgnoreIndex())
        safe = select(notEqual(labels, double(int64_t(*ignored))), labels, labels.like(0.0));
      loss = loss * gather(labels.with(op.getWeights()), safe, 0);
    }
    ArrayRef<int64_t> perSample = op.getLoss().getType().getShape();
    if (!parts.sums.empty()) {
      // Σ_c x · weight_c = x · Σ_c weight_c
      Expr weightSum = sum(weight, classLast ? 1 : 0);
      Expr logits = sum(features * broadcast(weightSum, features.shape(), {1}), 1);
      if (bias)
        logits = logits + broadcast(sum(labels.with(bias), 0), {rows}, {});
      Expr logarithms = logits - lse * double(classes);
      for (ClassSum replaced : parts.sums)
        rewriter.replaceOp(replaced.sum, reshape(replaced.isLogarithm ? logarithms : logits, perSample).get());
    }
    rewriter.replaceAllUsesWith(op.getLoss(), reshape(loss, perSample));
    rewriter.replaceAllUsesWith(op.getLse(), reshape(lse, perSample));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void nn::addLossHeadFusion(RewritePatternSet &patterns, bool always) {
  patterns.add<FuseLossHead>(patterns.getContext(), always);
}
