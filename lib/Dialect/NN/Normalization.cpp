//===- Normalization.cpp - softmax and the normalizations -------*- C++ -*-===//
//
// Verifiers, decompositions (which define the order of arithmetic) and derivatives.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/GradientBuilder.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

using Results = FailureOr<SmallVector<Value>>;

static SmallVector<int64_t> dimsFrom(int64_t first, int64_t end) {
  return llvm::to_vector(llvm::seq<int64_t>(first, end));
}

static LogicalResult verifyDim(Operation *op, StringRef name, int64_t dim, int64_t rank) {
  if (dim < 0 || dim >= rank)
    return op->emitOpError() << name << ' ' << dim << " is not below rank " << rank;
  return success();
}

static LogicalResult verifyShape(Operation *op, StringRef name, Value x, ArrayRef<int64_t> shape, Type element) {
  auto type = cast<RankedTensorType>(x.getType());
  auto expected = RankedTensorType::get(shape, element);
  if (type != expected)
    return op->emitOpError() << name << " must be " << expected << ", found " << type;
  return success();
}

//===-- softmax, log_softmax ----------------------------------------------===//

LogicalResult SoftmaxOp::verify() { return verifyDim(*this, "dim", getDim(), getX().getType().getRank()); }
LogicalResult LogSoftmaxOp::verify() { return verifyDim(*this, "dim", getDim(), getX().getType().getRank()); }

Results SoftmaxOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getX());
  int64_t dim = getDim();
  auto spread = [&](Expr e) { return unreduce(e, x.type(), dim); };
  Expr e = exp(x - spread(maximum(x, dim)));
  return SmallVector<Value>{e / spread(sum(e, dim))};
}

LogicalResult SoftmaxOp::differentiate(GradientBuilder &g) {
  Expr y = g.result(0), dy = g.cotangent(0);
  if (g.needs(0))
    g.set(0,
          (dy - unreduce(sum(dy * y, static_cast<int64_t>(getDim())), y.type(), static_cast<int64_t>(getDim()))) * y);
  return success();
}

Results LogSoftmaxOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getX());
  int64_t dim = getDim();
  auto spread = [&](Expr e) { return unreduce(e, x.type(), dim); };
  Expr shifted = x - spread(maximum(x, dim));
  return SmallVector<Value>{shifted - spread(log(sum(exp(shifted), dim)))};
}

LogicalResult LogSoftmaxOp::differentiate(GradientBuilder &g) {
  Expr y = g.result(0), dy = g.cotangent(0);
  int64_t dim = getDim();
  if (g.needs(0))
    g.set(0, dy - exp(y) * unreduce(sum(dy, dim), y.type(), dim));
  return success();
}

//===-- layer_norm --------------------------------------------------------===//

LogicalResult LayerNormOp::verify() {
  auto x = getX().getType();
  int64_t axis = getAxis();
  if (failed(verifyDim(*this, "axis", axis, x.getRank())))
    return failure();
  auto inner = x.getShape().drop_front(axis), outer = x.getShape().take_front(axis);
  return failure(failed(verifyShape(*this, "scale", getScale(), inner, x.getElementType())) ||
                 failed(verifyShape(*this, "bias", getBias(), inner, x.getElementType())) ||
                 failed(verifyShape(*this, "mean", getMean(), outer, x.getElementType())) ||
                 failed(verifyShape(*this, "rstd", getRstd(), outer, x.getElementType())));
}

Results LayerNormOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getX());
  auto dims = dimsFrom(getAxis(), x.rank());
  auto spread = [&](Expr e) { return unreduce(e, x.type(), dims); };
  Expr average = mean(x, dims), centred = x - spread(average);
  Expr rstd = rsqrt(mean(centred * centred, dims) + getEpsilon().convertToDouble());
  Expr y =
      centred * spread(rstd) * broadcastTo(x.with(getScale()), x.shape()) + broadcastTo(x.with(getBias()), x.shape());
  return SmallVector<Value>{y, average, rstd};
}

/// What normalization by mean and rstd over `dims` passes back to x: rstd · (g - mean(g) - x̂ · mean(g · x̂)), the
/// projection off the constant and x̂; without the mean when it was not subtracted.
static Expr normalizationGradient(Expr gradient, Expr normalized, Expr rstd, ArrayRef<int64_t> dims, bool centred) {
  auto spread = [&](Expr e) { return unreduce(e, normalized.type(), dims); };
  Expr projected = gradient - normalized * spread(mean(gradient * normalized, dims));
  if (centred)
    projected = projected - spread(mean(gradient, dims));
  return projected * spread(rstd);
}

LogicalResult LayerNormOp::differentiate(GradientBuilder &g) {
  Expr x = g.operand(0), average = g.result(1), rstd = g.result(2);
  auto inner = dimsFrom(getAxis(), x.rank()), outer = dimsFrom(0, getAxis());
  auto spread = [&](Expr e) { return unreduce(e, x.type(), inner); };
  Expr normalized = (x - spread(average)) * spread(rstd), dx;
  auto accumulate = [&](Expr part) { dx = dx ? dx + part : part; };
  if (Expr dy = g.cotangent(0)) {
    if (g.needs(0))
      accumulate(normalizationGradient(dy * broadcastTo(g.operand(1), x.shape()), normalized, rstd, inner, true));
    if (g.needs(1))
      g.set(1, sum(dy * normalized, outer));
    if (g.needs(2))
      g.set(2, sum(dy, outer));
  }
  double perElement = 1.0 / static_cast<double>(getScale().getType().getNumElements());
  if (Expr dMean = g.cotangent(1))
    accumulate(spread(dMean * perElement));
  if (Expr dRstd = g.cotangent(2)) // d rstd = -rstd³ · centred / n
    accumulate(spread(dRstd * rstd * rstd * -perElement) * normalized);
  if (g.needs(0) && dx)
    g.set(0, dx);
  return success();
}

//===-- rms_norm ----------------------------------------------------------===//

LogicalResult RMSNormOp::verify() {
  auto x = getX().getType();
  int64_t axis = getAxis();
  if (failed(verifyDim(*this, "axis", axis, x.getRank())))
    return failure();
  return failure(failed(verifyShape(*this, "scale", getScale(), x.getShape().drop_front(axis), x.getElementType())) ||
                 failed(verifyShape(*this, "rstd", getRstd(), x.getShape().take_front(axis), x.getElementType())));
}

Results RMSNormOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getX());
  auto dims = dimsFrom(getAxis(), x.rank());
  Expr rstd = rsqrt(mean(x * x, dims) + getEpsilon().convertToDouble());
  return SmallVector<Value>{x * unreduce(rstd, x.type(), dims) * broadcastTo(x.with(getScale()), x.shape()), rstd};
}

LogicalResult RMSNormOp::differentiate(GradientBuilder &g) {
  Expr x = g.operand(0), rstd = g.result(1), dx;
  auto inner = dimsFrom(getAxis(), x.rank()), outer = dimsFrom(0, getAxis());
  auto spread = [&](Expr e) { return unreduce(e, x.type(), inner); };
  Expr normalized = x * spread(rstd);
  if (Expr dy = g.cotangent(0)) {
    if (g.needs(0))
      dx = normalizationGradient(dy * broadcastTo(g.operand(1), x.shape()), normalized, rstd, inner, false);
    if (g.needs(1))
      g.set(1, sum(dy * normalized, outer));
  }
  if (Expr dRstd = g.cotangent(1)) { // d rstd = -rstd³ · x / n
    double perElement = 1.0 / static_cast<double>(getScale().getType().getNumElements());
    Expr part = spread(dRstd * rstd * rstd * -perElement) * normalized;
    dx = dx ? dx + part : part;
  }
  if (g.needs(0) && dx)
    g.set(0, dx);
  return success();
}

//===-- batch_norm --------------------------------------------------------===//

LogicalResult BatchNormOp::verify() {
  auto x = getX().getType();
  if (x.getRank() < 2)
    return emitOpError("operand must have a channel dimension");
  auto channels = x.getShape().slice(1, 1);
  return failure(failed(verifyShape(*this, "scale", getScale(), channels, x.getElementType())) ||
                 failed(verifyShape(*this, "bias", getBias(), channels, x.getElementType())) ||
                 failed(verifyShape(*this, "mean", getMean(), channels, x.getElementType())) ||
                 failed(verifyShape(*this, "variance", getVariance(), channels, x.getElementType())));
}

/// All dimensions but the channel's.
static SmallVector<int64_t> statisticsDims(Expr x) {
  SmallVector<int64_t> dims{0};
  llvm::append_range(dims, llvm::seq<int64_t>(2, x.rank()));
  return dims;
}

Results BatchNormOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getX());
  auto dims = statisticsDims(x);
  auto spread = [&](Expr e) { return unreduce(e, x.type(), dims); };
  Expr average = mean(x, dims), centred = x - spread(average);
  Expr variance = mean(centred * centred, dims);
  Expr rstd = rsqrt(variance + getEpsilon().convertToDouble());
  Expr y = centred * spread(rstd * x.with(getScale())) + spread(x.with(getBias()));
  return SmallVector<Value>{y, average, variance};
}

LogicalResult BatchNormGradOp::verify() {
  auto x = getX().getType();
  if (x.getRank() < 2)
    return emitOpError("operand must have a channel dimension");
  return verifyShape(*this, "scale", getScale(), x.getShape().slice(1, 1), x.getElementType());
}

Results BatchNormGradOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getX()), dy = x.with(getDy());
  auto dims = statisticsDims(x);
  auto spread = [&](Expr e) { return unreduce(e, x.type(), dims); };
  double perElement = static_cast<double>(x.dim(1)) / static_cast<double>(x.type().getNumElements());
  Expr rstd = rsqrt(x.with(getVariance()) + getEpsilon().convertToDouble());
  Expr normalized = (x - spread(x.with(getMean()))) * spread(rstd);
  // Scale is constant over the reduced dimensions, so both sums serve x as well as the parameters.
  Expr dBias = sum(dy, dims), dScale = sum(dy * normalized, dims);
  Expr dx =
      (dy - spread(dBias * perElement) - normalized * spread(dScale * perElement)) * spread(rstd * x.with(getScale()));
  return SmallVector<Value>{dx, dScale, dBias};
}

LogicalResult UnbiasedVarianceOp::verify() {
  auto x = getX().getType();
  if (x.getRank() < 2)
    return emitOpError("operand must have a channel dimension");
  return verifyShape(*this, "variance", getVariance(), x.getShape().slice(1, 1), x.getElementType());
}

Results UnbiasedVarianceOp::decompose(OpBuilder &builder) {
  Expr variance(builder, getLoc(), getVariance());
  auto x = getX().getType();
  double count = static_cast<double>(x.getNumElements()) / static_cast<double>(x.getDimSize(1));
  return SmallVector<Value>{count > 1 ? variance * (count / (count - 1.0)) : variance};
}

LogicalResult BatchNormOp::differentiate(GradientBuilder &g) {
  Expr x = g.operand(0), average = g.result(1), variance = g.result(2), dx;
  auto dims = statisticsDims(x);
  auto spread = [&](Expr e) { return unreduce(e, x.type(), dims); };
  auto accumulate = [&](Expr part) { dx = dx ? dx + part : part; };
  double perElement = static_cast<double>(x.dim(1)) / static_cast<double>(x.type().getNumElements());
  if (Expr dy = g.cotangent(0)) {
    auto gradient = BatchNormGradOp::create(g.builder, getLoc(), TypeRange{x.type(), variance.type(), variance.type()},
                                            x, dy, g.operand(1), average, variance, getEpsilonAttr());
    if (g.needs(0))
      accumulate(x.with(gradient.getDx()));
    if (g.needs(1))
      g.set(1, x.with(gradient.getDscale()));
    if (g.needs(2))
      g.set(2, x.with(gradient.getDbias()));
  }
  if (Expr dMean = g.cotangent(1))
    accumulate(spread(dMean * perElement));
  if (Expr dVariance = g.cotangent(2))
    accumulate((x - spread(average)) * spread(dVariance * (2.0 * perElement)));
  if (g.needs(0) && dx)
    g.set(0, dx);
  return success();
}
