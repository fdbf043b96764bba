//===- Loss.cpp - nn.softmax_cross_entropy ----------------------*- C++ -*-===//
//
// Verifier, decomposition and derivative of the per-sample cross-entropy.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

LogicalResult SoftmaxCrossEntropyOp::verify() {
  auto logits = getLogits().getType(), labels = getLabels().getType();
  if (logits.getRank() < 2)
    return emitOpError("logits must have a class dimension");
  SmallVector<int64_t> perSample(logits.getShape());
  perSample.erase(perSample.begin() + 1);
  if (labels.getShape() != ArrayRef<int64_t>(perSample))
    return emitOpError("labels must have the logits' shape without dimension 1");
  if (labels.getElementType().isUnsignedInteger() || labels.getElementType().isInteger(1))
    return emitOpError("labels must be signed integers");
  if (logits.getDimSize(1) == 0)
    return emitOpError("needs at least one class");
  auto expected = RankedTensorType::get(perSample, logits.getElementType());
  if (getLoss().getType() != expected || getLse().getType() != expected)
    return emitOpError("results must be ") << expected;
  if (getWeights() && getWeights().getType() != RankedTensorType::get(logits.getDimSize(1), logits.getElementType()))
    return emitOpError("weights must hold one number for each class");
  return success();
}

/// Which samples count; null when all do.
static Expr validLabels(SoftmaxCrossEntropyOp op, Expr labels) {
  std::optional<uint64_t> ignored = op.getIgnoreIndex();
  return ignored ? notEqual(labels, static_cast<double>(static_cast<int64_t>(*ignored))) : Expr();
}

FailureOr<SmallVector<Value>> SoftmaxCrossEntropyOp::decompose(OpBuilder &builder) {
  Expr logits(builder, getLoc(), getLogits()), labels = logits.with(getLabels()), valid = validLabels(*this, labels);
  auto spread = [&](Expr e) { return unreduce(e, logits.type(), 1); };
  Expr safe = valid ? select(valid, labels, labels.like(0.0)) : labels;
  Expr highest = maximum(logits, 1);
  Expr logTotal = log(sum(exp(logits - spread(highest)), 1)), lse = highest + logTotal;
  SmallVector<int64_t> column(logits.shape());
  column[1] = 1;
  Expr picked = reshape(gatherElements(logits, reshape(safe, column), 1), labels.shape());
  Expr loss = highest - picked + logTotal; // lse − picked would lose what large logits round away
  if (getWeights())
    loss = loss * gather(logits.with(getWeights()), safe, 0);
  if (valid)
    loss = select(valid, loss, loss.like(0.0));
  return SmallVector<Value>{loss, lse};
}

/// Each class gets the unweighted losses of the samples that bear its label.
static Expr classWeightGradient(SoftmaxCrossEntropyOp op, Expr logits, Expr labels, Expr lse, Expr dLoss) {
  Expr valid = validLabels(op, labels);
  Expr safe = valid ? select(valid, labels, labels.like(0.0)) : labels;
  SmallVector<int64_t> column(logits.shape());
  column[1] = 1;
  Expr picked = reshape(gatherElements(logits, reshape(safe, column), 1), labels.shape());
  Expr shares = dLoss * (lse - picked);
  if (valid)
    shares = select(valid, shares, shares.like(0.0));
  int64_t samples = labels.type().getNumElements();
  return scatterAdd(reshape(safe, {samples}), reshape(shares, {samples}), {logits.dim(1)}, 0);
}

LogicalResult SoftmaxCrossEntropyOp::differentiate(GradientBuilder &g) {
  Expr logits = g.operand(0), labels = g.operand(1), lse = g.result(1);
  if (getWeights() && g.needs(2) && g.cotangent(0))
    g.set(2, classWeightGradient(*this, logits, labels, lse, g.cotangent(0)));
  if (!g.needs(0))
    return success();
  auto spread = [&](Expr e) { return unreduce(e, logits.type(), 1); };
  Expr probabilities = exp(logits - spread(lse)), dLogits;
  if (Expr dLoss = g.cotangent(0)) {
    Expr valid = validLabels(*this, labels);
    Expr safe = valid ? select(valid, labels, labels.like(0.0)) : labels;
    if (getWeights())
      dLoss = dLoss * gather(g.operand(2), safe, 0);
    if (valid)
      dLoss = select(valid, dLoss, dLoss.like(0.0));
    auto labelType = RankedTensorType::get(logits.shape(), labels.elementType());
    Expr classes = iota(g.builder, getLoc(), labelType, 1);
    Expr isLabel = equal(classes, unreduce(safe, labelType, 1));
    dLogits = spread(dLoss) * (probabilities - select(isLabel, logits.like(1.0), logits.like(0.0)));
  }
  if (Expr dLse = g.cotangent(1)) {
    Expr part = spread(dLse) * probabilities;
    dLogits = dLogits ? dLogits + part : part;
  }
  if (dLogits)
    g.set(0, dLogits);
  return success();
}
