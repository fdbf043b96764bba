//===- ReductionRules.cpp - reductions, extrema, running sums -------------===//
//
// Rules for operators that combine elements along dimensions.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"
#include "lowtide/Recover/NodeNotes.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

using Dims = ArrayRef<int64_t>;

int64_t countReduced(Expr x, Dims dims) {
  int64_t count = 1;
  for (int64_t d : dims)
    count *= x.dim(d);
  return count;
}

Expr sumOf(Expr x, Dims dims) { return dims.empty() ? x : nn::sum(x, dims); }
template <Expr (*F)(Expr, Dims)> Expr extremum(Expr x, Dims dims) {
  if (dims.empty())
    return x;
  if (!isBool(x))
    return F(x, dims);
  auto byte = IntegerType::get(x.getBuilder().getContext(), 8, IntegerType::Unsigned);
  return nn::cast(F(nn::cast(x, byte), dims), x.elementType());
}
Expr product(Expr x, Dims dims) { return dims.empty() ? x : nn::product(x, dims); }
Expr l1(Expr x, Dims dims) { return sumOf(nn::abs(x), dims); }
Expr sumSquare(Expr x, Dims dims) { return sumOf(x * x, dims); }
/// Functions of floats only: integers are computed in f64, 16-bit floats in f32.
Expr inFloat(Expr x, Dims dims, Expr (*f)(Expr, Dims)) {
  if (isFloat(x))
    return nn::cast(f(widened(x), dims), x.elementType());
  return nn::cast(f(nn::cast(x, x.getBuilder().getF64Type()), dims), x.elementType());
}
Expr l2(Expr x, Dims dims) {
  return inFloat(x, dims, [](Expr e, Dims d) {
    Expr squares = sumSquare(e, d), isZero = nn::equal(squares, 0.0); // rootOf, whatever the sum is made of
    return nn::select(isZero, squares, nn::sqrt(nn::select(isZero, squares.like(1.0), squares)));
  });
}
Expr logSum(Expr x, Dims dims) {
  return inFloat(x, dims, [](Expr e, Dims d) { return nn::log(sumOf(e, d)); });
}
Expr logSumExp(Expr x, Dims dims) {
  return inFloat(x, dims, [](Expr e, Dims d) -> Expr {
    if (d.empty() || countReduced(e, d) == 0)
      return nn::log(sumOf(nn::exp(e), d));
    // Infinite maxima would give ∞ − ∞.
    Expr top = nn::maximum(e, d);
    top = nn::select(nn::isInf(top), top.like(0.0), top);
    return nn::log(nn::sum(nn::exp(e - nn::unreduce(top, e.type(), d)), d)) + top;
  });
}

/// The largest (smallest) elements, each the first of its row's: it alone has the cotangent.
Expr firstExtremum(Expr x, int64_t dim, bool largest) {
  OpBuilder &b = x.getBuilder();
  Type index = b.getI64Type();
  Expr first = largest ? nn::argmax(x, dim, index) : nn::argmin(x, dim, index);
  Expr position = nn::iota(b, x.getLoc(), RankedTensorType::get(x.shape(), index), dim);
  Expr isFirst = nn::equal(position, nn::broadcastTo(unsqueeze(first, dim), x.shape()));
  return nn::sum(nn::select(isFirst, x, x.like(0.0)), {dim});
}

LogicalResult reduceBy(NodeView &n, llvm::function_ref<Expr(Expr, Dims)> reduced) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<std::optional<Shape>> given = n.axesOrInput(1, x.rank());
  if (failed(given))
    return failure();
  Shape dims = *given ? **given : Shape();
  if (dims.empty() && !n.attr("noop_with_empty_axes", 0)) {
    // onnxslim states the operand's shape where the list of axes is there and empty.
    n.ignoresStatedShape = given->has_value();
    dims = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
  }
  llvm::sort(dims);
  Expr y = reduced(x, dims);
  n.set(0, n.attr("keepdims", 1) ? keepDims(y, x.shape(), dims) : y);
  return success();
}

template <Expr (*F)(Expr, Dims)> LogicalResult reduce(NodeView &n) { return reduceBy(n, F); }

LogicalResult reduceMean(NodeView &n) {
  return reduceBy(n, [&](Expr x, Dims dims) { return meanOf(x, dims, n.context.selected.countAlong(x, dims)); });
}

template <bool Largest> Expr sharedExtremum(Expr x, Dims dims) {
  return extremum<Largest ? nn::maximum : nn::minimum>(x, dims);
}
/// The first of the equal elements has it all; of several dimensions, which follow each other, the first in their
/// order.
template <bool Largest> Expr pickedExtremum(Expr x, Dims dims) {
  if (dims.empty() || !isFloat(x) || dims.back() - dims.front() + 1 != int64_t(dims.size()))
    return sharedExtremum<Largest>(x, dims);
  SmallVector<int64_t> joined(x.shape());
  for (int64_t i = dims.front() + 1; i <= dims.back(); ++i)
    joined[dims.front()] *= joined[i];
  joined.erase(joined.begin() + dims.front() + 1, joined.begin() + dims.back() + 1);
  return firstExtremum(nn::reshape(x, joined), dims.front(), Largest);
}

/// The largest (smallest) element along dimensions; equal ones share the cotangent, unless the program picks one.
template <bool Largest> LogicalResult reduceExtremum(NodeView &n) {
  return Ties(n.attr(tiesAttrName, 0)) == Ties::First ? reduce<pickedExtremum<Largest>>(n)
                                                      : reduce<sharedExtremum<Largest>>(n);
}

template <bool Largest> LogicalResult argExtremum(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", 0), x.rank());
  if (failed(axis))
    return failure();
  bool last = n.attr("select_last_index", 0);
  Expr y =
      Largest ? nn::argmax(x, *axis, n.builder.getI64Type(), last) : nn::argmin(x, *axis, n.builder.getI64Type(), last);
  n.set(0, n.attr("keepdims", 1) ? unsqueeze(y, *axis) : y);
  return success();
}

/// The axis that operand 1 names.
FailureOr<int64_t> axisInput(NodeView &n, Expr x) {
  FailureOr<int64_t> given = n.knownInt(1, "the axis");
  return failed(given) ? given : n.axis(*given, x.rank());
}

LogicalResult cumSum(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> axis = axisInput(n, x);
  if (failed(axis))
    return failure();
  n.set(0, nn::cumsum(x, *axis, n.attr("exclusive", 0), n.attr("reverse", 0)));
  return success();
}

/// Each element times those before it, in ⌈log₂ n⌉ rounds that reach twice as far each: no division and no logarithm,
/// so that zeros have a derivative.
LogicalResult cumProd(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> axis = axisInput(n, x);
  if (failed(axis))
    return failure();
  bool reverse = n.attr("reverse", 0);
  int64_t count = x.dim(*axis);
  // What stands `by` elements before; ones where nothing does.
  auto before = [&](Expr y, int64_t by) {
    Shape low(y.rank(), 0), high(y.rank(), 0);
    (reverse ? high : low)[*axis] = by;
    return nn::pad(sliceDim(y, *axis, reverse ? by : 0, count - by), low, high, {}, 1.0);
  };
  if (n.attr("exclusive", 0) && count > 0)
    x = before(x, 1);
  for (int64_t by = 1; by < count; by *= 2)
    x = x * before(x, by);
  n.set(0, x);
  return success();
}

} // namespace

void lowtide::addReductionRules(RuleTable &t) {
  t.add("ReduceSum", reduce<sumOf>, SelectedMeet::Yes);
  t.add("ReduceMean", reduceMean, SelectedMeet::Yes);
  t.add("ReduceMax", reduceExtremum<true>, SelectedMeet::Yes);
  t.add("ReduceMin", reduceExtremum<false>, SelectedMeet::Yes);
  t.add("ReduceProd", reduce<product>, SelectedMeet::Yes);
  t.add("ReduceL1", reduce<l1>, SelectedMeet::Yes);
  t.add("ReduceL2", reduce<l2>, SelectedMeet::Yes);
  t.add("ReduceSumSquare", reduce<sumSquare>, SelectedMeet::Yes);
  t.add("ReduceLogSum", reduce<logSum>, SelectedMeet::Yes);
  t.add("ReduceLogSumExp", reduce<logSumExp>, SelectedMeet::Yes);
  t.add("ArgMax", argExtremum<true>, SelectedMeet::Yes);
  t.add("ArgMin", argExtremum<false>, SelectedMeet::Yes);
  t.add("CumSum", cumSum, SelectedMeet::Yes);
  t.add("CumProd", cumProd);
}
