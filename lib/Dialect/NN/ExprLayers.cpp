//===- ExprLayers.cpp - expressions that build whole layers -----*- C++ -*-===//
//
// Convolutions, pooling, normalizations, losses, attention and random numbers as functions on expressions.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide::nn;

static RankedTensorType withShape(Expr x, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, x.elementType());
}

//===-- windows -----------------------------------------------------------===//

Window Window::unit(int64_t spatialRank) {
  SmallVector<int64_t> ones(spatialRank, 1), zeros(spatialRank, 0);
  return {ones, zeros, zeros, ones};
}

SmallVector<int64_t> lowtide::nn::windowedShape(ArrayRef<int64_t> input, ArrayRef<int64_t> kernel,
                                                const Window &window) {
  SmallVector<int64_t> shape;
  for (auto [i, extent] : llvm::enumerate(input)) {
    int64_t room = extent + window.padsBegin[i] + window.padsEnd[i] - window.dilations[i] * (kernel[i] - 1) - 1;
    shape.push_back(room < 0 ? 0 : room / window.strides[i] + 1);
  }
  return shape;
}

template <typename Op>
static Expr convolution(Expr a, Expr b, ArrayRef<int64_t> shape, const Window &w, int64_t groups) {
  auto op = Op::create(a.getBuilder(), a.getLoc(), withShape(a, shape), a.get(), b.get(), w.strides, w.padsBegin,
                       w.padsEnd, w.dilations, groups);
  return a.with(op.getY());
}

Expr lowtide::nn::conv(Expr input, Expr filter, const Window &window, int64_t groups) {
  SmallVector<int64_t> shape{input.dim(0), filter.dim(0)};
  llvm::append_range(shape, windowedShape(input.shape().drop_front(2), filter.shape().drop_front(2), window));
  return convolution<ConvOp>(input, filter, shape, window, groups);
}
Expr lowtide::nn::convInputGrad(Expr dy, Expr filter, ArrayRef<int64_t> inputShape, const Window &window,
                                int64_t groups) {
  return convolution<ConvInputGradOp>(dy, filter, inputShape, window, groups);
}
Expr lowtide::nn::convFilterGrad(Expr input, Expr dy, ArrayRef<int64_t> filterShape, const Window &window,
                                 int64_t groups) {
  return convolution<ConvFilterGradOp>(input, dy, filterShape, window, groups);
}

template <typename Op> static Expr pool(Expr x, ArrayRef<int64_t> kernel, const Window &w, bool countIncludePad) {
  SmallVector<int64_t> shape(x.shape().take_front(2));
  llvm::append_range(shape, windowedShape(x.shape().drop_front(2), kernel, w));
  auto op = Op::create(x.getBuilder(), x.getLoc(), withShape(x, shape), x.get(), kernel, w.strides, w.padsBegin,
                       w.padsEnd, w.dilations, countIncludePad);
  return x.with(op->getResult(0));
}
Expr lowtide::nn::maxPool(Expr x, ArrayRef<int64_t> kernel, const Window &window) {
  return pool<MaxPoolOp>(x, kernel, window, false);
}
Expr lowtide::nn::avgPool(Expr x, ArrayRef<int64_t> kernel, const Window &window, bool countIncludePad) {
  return pool<AvgPoolOp>(x, kernel, window, countIncludePad);
}

//===-- normalizations, losses, attention ---------------------------------===//

Expr lowtide::nn::softmax(Expr x, int64_t dim) {
  return x.with(SoftmaxOp::create(x.getBuilder(), x.getLoc(), x.type(), x.get(), dim).getY());
}
Expr lowtide::nn::logSoftmax(Expr x, int64_t dim) {
  return x.with(LogSoftmaxOp::create(x.getBuilder(), x.getLoc(), x.type(), x.get(), dim).getY());
}

std::array<Expr, 3> lowtide::nn::layerNorm(Expr x, Expr scale, Expr bias, int64_t axis, double epsilon) {
  RankedTensorType statistics = withShape(x, x.shape().take_front(axis));
  auto op = LayerNormOp::create(x.getBuilder(), x.getLoc(), TypeRange{x.type(), statistics, statistics}, x.get(),
                                scale.get(), bias.get(), axis, llvm::APFloat(epsilon));
  return {x.with(op.getY()), x.with(op.getMean()), x.with(op.getRstd())};
}

std::array<Expr, 2> lowtide::nn::rmsNorm(Expr x, Expr scale, int64_t axis, double epsilon) {
  auto op = RMSNormOp::create(x.getBuilder(), x.getLoc(), TypeRange{x.type(), withShape(x, x.shape().take_front(axis))},
                              x.get(), scale.get(), axis, llvm::APFloat(epsilon));
  return {x.with(op.getY()), x.with(op.getRstd())};
}

std::array<Expr, 3> lowtide::nn::batchNorm(Expr x, Expr scale, Expr bias, double epsilon) {
  RankedTensorType statistics = withShape(x, x.dim(1));
  auto op = BatchNormOp::create(x.getBuilder(), x.getLoc(), TypeRange{x.type(), statistics, statistics}, x.get(),
                                scale.get(), bias.get(), llvm::APFloat(epsilon));
  return {x.with(op.getY()), x.with(op.getMean()), x.with(op.getVariance())};
}

Expr lowtide::nn::unbiasedVariance(Expr variance, Expr x) {
  return variance.with(
      UnbiasedVarianceOp::create(x.getBuilder(), x.getLoc(), variance.type(), variance.get(), x.get()).getY());
}

std::array<Expr, 2> lowtide::nn::softmaxCrossEntropy(Expr logits, Expr labels, Expr weights,
                                                     std::optional<int64_t> ignoreIndex) {
  RankedTensorType perSample = withShape(logits, labels.shape());
  IntegerAttr ignore = ignoreIndex ? logits.getBuilder().getI64IntegerAttr(*ignoreIndex) : IntegerAttr();
  auto op = SoftmaxCrossEntropyOp::create(logits.getBuilder(), logits.getLoc(), TypeRange{perSample, perSample},
                                          logits.get(), labels.get(), weights.get(), ignore);
  return {logits.with(op.getLoss()), logits.with(op.getLse())};
}

std::array<Expr, 2> lowtide::nn::linearCrossEntropy(Expr x, Expr weight, Expr bias, Expr labels, bool classLast,
                                                    std::optional<int64_t> ignoreIndex) {
  OpBuilder &builder = x.getBuilder();
  RankedTensorType perSample = withShape(x, labels.shape());
  auto op = LinearCrossEntropyOp::create(builder, x.getLoc(), TypeRange{perSample, perSample}, x.get(), weight.get(),
                                         bias.get(), labels.get(), classLast ? builder.getUnitAttr() : UnitAttr(),
                                         ignoreIndex ? builder.getI64IntegerAttr(*ignoreIndex) : IntegerAttr());
  return {x.with(op.getLoss()), x.with(op.getLse())};
}

std::array<Expr, 2> lowtide::nn::attention(Expr q, Expr k, Expr v, Expr mask, double scale, bool causal) {
  auto oType = withShape(q, {q.dim(0), q.dim(1), q.dim(2), v.dim(3)});
  auto lseType = RankedTensorType::get(q.shape().take_front(3), accumulatorType(q));
  // As the type of lse holds it: what is derived of the scores multiplies by a constant of that type, and probabilities
  // that are computed again by another scale do not add up to one.
  const double held = lseType.getElementType().isF64() ? scale : static_cast<float>(scale);
  auto op = AttentionOp::create(q.getBuilder(), q.getLoc(), TypeRange{oType, lseType}, q.get(), k.get(), v.get(),
                                mask.get(), llvm::APFloat(held), causal);
  return {q.with(op.getO()), q.with(op.getLse())};
}

Expr lowtide::nn::randomUniform(RankedTensorType type, Expr seed, Expr step, Expr row, int64_t opId, int64_t batchDim) {
  auto op = RandomUniformOp::create(seed.getBuilder(), seed.getLoc(), type, seed.get(), step.get(), row.get(), opId,
                                    batchDim);
  return seed.with(op.getY());
}
