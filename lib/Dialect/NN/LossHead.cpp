//===- LossHead.cpp - nn.linear_cross_entropy -------------------*- C++ -*-===//
//
// Verifier, decomposition and derivative of the cross-entropy of a linear layer, forward and backward.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

uint64_t nn::lossHeadFlops(Operation *op, uint64_t products) {
  auto x = cast<RankedTensorType>(op->getOperand(0).getType()),
       weight = cast<RankedTensorType>(op->getOperand(1).getType());
  uint64_t logits = countElements(weight) / std::max<int64_t>(x.getDimSize(1), 1) * x.getDimSize(0);
  return logits * (2 * products * x.getDimSize(1) + 16);
}

template <typename Op> static LogicalResult verifyHead(Op op) {
  auto x = op.getX().getType(), weight = op.getWeight().getType();
  auto labels = op.getLabels().getType(), loss = op.getLoss().getType();
  if (x.getRank() != 2 || weight.getRank() != 2 || weight.getDimSize(op.getClassLast() ? 0 : 1) != x.getDimSize(1) ||
      weight.getElementType() != x.getElementType())
    return op.emitOpError("weight must be [classes, features] of x [rows, features], or the other way round with "
                          "class_last");
  int64_t classes = weight.getDimSize(op.getClassLast() ? 1 : 0);
  if (classes == 0)
    return op.emitOpError("needs at least one class");
  if (op.getBias() && op.getBias().getType().getShape() != ArrayRef<int64_t>{classes})
    return op.emitOpError("bias must hold one number for each class");
  if (labels.getShape() != ArrayRef<int64_t>{x.getDimSize(0)} || labels.getElementType().isUnsignedInteger() ||
      labels.getElementType().isInteger(1))
    return op.emitOpError("labels must be one signed integer for each row");
  if (loss.getShape() != labels.getShape() || op.getLse().getType() != loss)
    return op.emitOpError("loss and lse must be one number for each row, of one type");
  return success();
}

LogicalResult LinearCrossEntropyOp::verify() { return verifyHead(*this); }

LogicalResult LinearCrossEntropyGradOp::verify() {
  if (failed(verifyHead(*this)))
    return failure();
  if (bool(getBias()) != bool(getDbias()))
    return emitOpError("has a dbias exactly when it has a bias");
  auto isCotangentOf = [](RankedTensorType cotangent, RankedTensorType operand) {
    return cotangent.getShape() == operand.getShape() &&
           (cotangent.getElementType() == operand.getElementType() || cotangent.getElementType().isF32());
  };
  if (!isCotangentOf(getDx().getType(), getX().getType()) ||
      !isCotangentOf(getDweight().getType(), getWeight().getType()) ||
      (getBias() && !isCotangentOf(getDbias().getType(), getBias().getType())))
    return emitOpError("cotangents of x, weight and bias have their shape, and their type or f32");
  if (getDloss().getType().getShape() != getLoss().getType().getShape() ||
      (getDlse() && getDlse().getType().getShape() != getLse().getType().getShape()))
    return emitOpError("dloss and dlse must be one number for each row");
  if (bool(getBiasSum()) != (getBias() && getWeightSum()))
    return emitOpError("adds onto both sums or none");
  if ((getWeightSum() && getWeightSum().getType() != getDweight().getType()) ||
      (getBiasSum() && getBiasSum().getType() != getDbias().getType()))
    return emitOpError("adds onto sums of other types than the results");
  int64_t rows = getX().getType().getDimSize(0), tile = getTile();
  if (tile < 0 || (tile && rows % tile))
    return emitOpError("tiles of ") << tile << " rows do not divide " << rows;
  return success();
}

SmallVector<OpOperand *> LinearCrossEntropyOp::getRowOperands() { return {&getXMutable(), &getLabelsMutable()}; }

ResultRange LinearCrossEntropyOp::getRowResults() { return getOperation()->getResults(); }

SmallVector<OpOperand *> LinearCrossEntropyGradOp::getRowOperands() {
  SmallVector<OpOperand *> rows{&getXMutable(), &getLabelsMutable(), &getDlossMutable()};
  for (OpOperand &operand : getDlseMutable())
    rows.push_back(&operand);
  return rows;
}

ResultRange LinearCrossEntropyGradOp::getRowResults() { return getOperation()->getResults().take_front(3); }

namespace {
/// The forward pass up to what the loss and its derivative share.
struct Head {
  Expr product, logits, labels, valid, safe, highest, logTotal, lse;

  Expr spread(Expr e) const { return unreduce(e, logits.type(), 1); }
};
} // namespace

template <typename Op> static Head buildHead(Op op, OpBuilder &builder) {
  Expr x(builder, op.getLoc(), op.getX()), weight = x.with(op.getWeight());
  Type real = op.getLoss().getType().getElementType();
  Head head;
  int64_t classes = weight.dim(op.getClassLast() ? 1 : 0);
  // Logits of 16-bit operands have 16 bits, as every product's result: their cotangent takes their place. With a bias
  // they are sums, and rounded no earlier than their exponentials.
  auto type = RankedTensorType::get({x.dim(0), classes}, op.getBias() ? real : x.elementType());
  head.product = x.with(DotOp::create(builder, op.getLoc(), type, x, weight, false, !op.getClassLast()));
  head.logits = cast(head.product, real);
  if (op.getBias())
    head.product = head.logits = head.logits + broadcast(cast(x.with(op.getBias()), real), type.getShape(), {1});
  head.labels = head.safe = x.with(op.getLabels());
  if (std::optional<uint64_t> ignored = op.getIgnoreIndex()) {
    head.valid = notEqual(head.labels, static_cast<double>(static_cast<int64_t>(*ignored)));
    head.safe = select(head.valid, head.labels, head.labels.like(0.0));
  }
  head.highest = maximum(head.logits, 1);
  head.logTotal = log(sum(exp(head.logits - head.spread(head.highest)), 1));
  head.lse = head.highest + head.logTotal;
  return head;
}

static Expr buildLoss(const Head &head) {
  Expr picked =
      reshape(gatherElements(head.product, reshape(head.safe, {head.safe.dim(0), 1}), 1), head.labels.shape());
  picked = cast(picked, head.logits.elementType());
  Expr loss = head.highest - picked + head.logTotal; // lse − picked would lose what large logits round away
  return head.valid ? select(head.valid, loss, loss.like(0.0)) : loss;
}

FailureOr<SmallVector<Value>> LinearCrossEntropyOp::decompose(OpBuilder &builder) {
  Head head = buildHead(*this, builder);
  return SmallVector<Value>{buildLoss(head), head.lse};
}

LogicalResult LinearCrossEntropyOp::differentiate(GradientBuilder &g) {
  SmallVector<Type> types{getLoss().getType(), getLse().getType(), getX().getType(), getWeight().getType()};
  if (getBias())
    types.push_back(getBias().getType());
  Expr at = g.operand(0), dLoss = g.cotangent(0), dLse = g.cotangent(1);
  if (!dLoss)
    dLoss = g.result(0).like(0.0);
  auto gradient = LinearCrossEntropyGradOp::create(
      g.builder, getLoc(), types, getX(), getWeight(), getBias(), getLabels(), dLoss.get(), dLse.get(), Value(),
      Value(), getClassLastAttr(), getIgnoreIndexAttr(), g.builder.getI64IntegerAttr(0));
  if (g.needs(0))
    g.set(0, at.with(gradient.getDx()));
  if (g.needs(1))
    g.set(1, at.with(gradient.getDweight()));
  if (getBias() && g.needs(2))
    g.set(2, at.with(gradient.getDbias()));
  return success();
}

FailureOr<SmallVector<Value>> LinearCrossEntropyGradOp::decompose(OpBuilder &builder) {
  Head head = buildHead(*this, builder);
  Expr x = head.logits.with(getX()), weight = x.with(getWeight());
  Expr dLoss = cast(x.with(getDloss()), head.logits.elementType());
  Expr loss = buildLoss(head);
  if (head.valid)
    dLoss = select(head.valid, dLoss, dLoss.like(0.0));
  auto labelType = RankedTensorType::get(head.logits.shape(), head.labels.elementType());
  Expr isLabel = equal(iota(builder, getLoc(), labelType, 1), unreduce(head.safe, labelType, 1));
  Expr probabilities = exp(head.logits - head.spread(head.lse));
  Expr dLogits =
      head.spread(dLoss) * (probabilities - select(isLabel, probabilities.like(1.0), probabilities.like(0.0)));
  if (getDlse())
    dLogits = dLogits + head.spread(cast(x.with(getDlse()), head.logits.elementType())) * probabilities;
  Expr forProducts = cast(dLogits, x.elementType());
  Expr dx = cast(dot(forProducts, weight, false, getClassLast()), getDx().getType().getElementType());
  SmallVector<Value> values{loss, head.lse, dx};

  int64_t rows = x.dim(0), tile = getTile() ? getTile() : rows;
  // Tiles are added up in f32 at least.
  auto wide = [&](RankedTensorType type) {
    bool narrow = type.getElementTypeBitWidth() < 32;
    return RankedTensorType::get(type.getShape(), narrow ? builder.getF32Type() : type.getElementType());
  };
  auto start = [&](Value sum) {
    return sum ? cast(x.with(sum), wide(llvm::cast<RankedTensorType>(sum.getType())).getElementType()) : Expr();
  };
  Expr weightSum = start(getWeightSum()), biasSum = start(getBiasSum());
  for (int64_t first = 0; first < rows; first += tile) {
    auto part = [&](Expr e) { return tile == rows ? e : slice(e, {first, 0}, {tile, e.dim(1)}); };
    Expr dPart = part(forProducts), xPart = part(x);
    Expr left = getClassLast() ? xPart : dPart, right = getClassLast() ? dPart : xPart;
    Expr product = x.with(DotOp::create(builder, getLoc(), wide(getDweight().getType()), left, right, true, false));
    weightSum = weightSum ? weightSum + product : product;
    if (!getBias())
      continue;
    Expr terms = cast(sum(part(dLogits), 0), wide(getDbias().getType()).getElementType());
    biasSum = biasSum ? biasSum + terms : terms;
  }
  values.push_back(cast(weightSum, getDweight().getType().getElementType()));
  if (getBias())
    values.push_back(cast(biasSum, getDbias().getType().getElementType()));
  return values;
}
