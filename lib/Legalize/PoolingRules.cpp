//===- PoolingRules.cpp - pools -------------------------------------------===//
//
// Rules for pooling over windows and over whole images.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Rules.h"
#include "lowtide/Legalize/Window.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

FailureOr<Window> windowOf(NodeView &n, Expr x) {
  Shape kernel = n.attrInts("kernel_shape");
  if (x.rank() < 3 || int64_t(kernel.size()) != x.rank() - 2) {
    (void)n.reject("'kernel_shape' does not fit an operand of rank " + Twine(x.rank()));
    return failure();
  }
  return readWindow(n, x.shape().drop_front(2), kernel);
}

RankedTensorType resultType(Expr x, const Window &w) {
  Shape shape{x.dim(0), x.dim(1)};
  shape.append(w.output);
  return RankedTensorType::get(shape, x.elementType());
}

Shape sumOf(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  Shape result;
  for (auto [x, y] : llvm::zip(a, b))
    result.push_back(x + y);
  return result;
}

LogicalResult maxPool(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<Window> w = windowOf(n, x);
  if (failed(w))
    return failure();
  n.set(0, nn::MaxPoolOp::create(n.builder, n.getLoc(), resultType(x, *w), x, w->kernel, w->strides, w->padsBegin,
                                 sumOf(w->padsEnd, w->excess), w->dilations, /*count_include_pad=*/false));
  if (n.wants(1))
    n.set(1, poolIndices(n, x, *w, n.attr("storage_order", 0) == 1));
  return success();
}

/// Mean of each window. What lies beyond the stated padding never counts.
Expr averageOf(NodeView &n, Expr x, Window w, bool includePad) {
  bool exceeds = llvm::any_of(w.excess, [](int64_t e) { return e > 0; });
  if (includePad && exceeds) {
    Shape low{0, 0}, high{0, 0};
    low.append(w.padsBegin);
    high.append(w.padsEnd);
    x = nn::pad(x, low, high);
    w.padsBegin.assign(w.padsBegin.size(), 0);
    w.padsEnd.assign(w.padsEnd.size(), 0);
    includePad = false;
  }
  return n.wrap(nn::AvgPoolOp::create(n.builder, n.getLoc(), resultType(x, w), x, w.kernel, w.strides, w.padsBegin,
                                      sumOf(w.padsEnd, w.excess), w.dilations, includePad));
}

LogicalResult averagePool(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  FailureOr<Window> w = windowOf(n, n.in(0));
  if (failed(w))
    return failure();
  n.set(0, averageOf(n, n.in(0), *w, n.attr("count_include_pad", 0)));
  return success();
}

/// (Σ |x|^p)^(1/p) for whole p.
Expr powerOf(Expr x, double p) { return p == 1.0 ? x : p == 2.0 ? x * x : nn::pow(x, x.like(p)); }
Expr rootOf(Expr x, double p) { return p == 1.0 ? x : p == 2.0 ? nn::sqrt(x) : nn::pow(x, x.like(1.0 / p)); }

LogicalResult lpPool(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<Window> w = windowOf(n, x);
  if (failed(w))
    return failure();
  double p = double(n.attr("p", 2)), count = double(countOf(w->kernel));
  // Padding with zeros adds nothing to a sum, so that the excess of ceil_mode is padding too.
  w->padsEnd = sumOf(w->padsEnd, w->excess);
  w->excess.assign(w->excess.size(), 0);
  n.set(0, rootOf(averageOf(n, powerOf(nn::abs(x), p), *w, true) * count, p));
  return success();
}

template <typename F> LogicalResult global(NodeView &n, F function) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  if (x.rank() < 3)
    return n.reject("[N, C, d…] is expected");
  Shape dims = llvm::to_vector(llvm::seq<int64_t>(2, x.rank()));
  n.set(0, keepDims(function(x, dims), x.shape(), dims));
  return success();
}

LogicalResult globalAverage(NodeView &n) {
  return global(n, [](Expr x, ArrayRef<int64_t> dims) { return meanOf(x, dims); });
}
LogicalResult globalMax(NodeView &n) {
  return global(n, [](Expr x, ArrayRef<int64_t> dims) { return nn::maximum(x, dims); });
}
LogicalResult globalLp(NodeView &n) {
  double p = double(n.attr("p", 2));
  return global(n, [p](Expr x, ArrayRef<int64_t> dims) { return rootOf(nn::sum(powerOf(nn::abs(x), p), dims), p); });
}

} // namespace

void lowtide::addPoolingRules(RuleTable &t) {
  t.add("MaxPool", maxPool);
  t.add("AveragePool", averagePool);
  t.add("LpPool", lpPool);
  t.add("GlobalAveragePool", globalAverage);
  t.add("GlobalMaxPool", globalMax);
  t.add("GlobalLpPool", globalLp);
}
