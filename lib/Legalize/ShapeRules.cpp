//===- ShapeRules.cpp - shapes, ranges and other constants ----------------===//
//
// Rules whose results follow from shapes. With static shapes all of them are constants at once.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

LogicalResult shapeOf(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  auto bound = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + x.rank() : v, 0, x.rank()); };
  int64_t start = bound(n.attr("start", 0)), end = bound(n.attr("end", x.rank()));
  if (Expr extents = n.context.selected.extents(x, start, end))
    return n.set(0, extents), success();
  n.set(0, n.ints(start < end ? x.shape().slice(start, end - start) : ArrayRef<int64_t>()));
  return success();
}

LogicalResult sizeOf(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  if (Expr count = n.context.selected.countAlong(x, llvm::to_vector(llvm::seq(x.rank()))))
    return n.set(0, count), success();
  auto type = RankedTensorType::get({}, n.builder.getI64Type());
  n.set(0, n.dense(DenseElementsAttr::get(type, int64_t(x.type().getNumElements()))));
  return success();
}

LogicalResult constant(NodeView &n) {
  OpBuilder &b = n.builder;
  if (auto value = dyn_cast_or_null<DenseElementsAttr>(n.op.getNodeAttr("value"))) {
    n.set(0, n.dense(value));
    return success();
  }
  if (n.hasAttr("value_int")) {
    n.set(0, n.dense(DenseElementsAttr::get(RankedTensorType::get({}, b.getI64Type()), n.attr("value_int", 0))));
    return success();
  }
  if (n.hasAttr("value_float")) {
    n.set(0, n.splat(b.getF32Type(), {}, n.attrFloat("value_float", 0.0)));
    return success();
  }
  if (n.hasAttr("value_ints")) {
    n.set(0, n.ints(n.attrInts("value_ints")));
    return success();
  }
  if (auto list = dyn_cast_or_null<DenseF32ArrayAttr>(n.op.getNodeAttr("value_floats"))) {
    auto type = RankedTensorType::get({int64_t(list.size())}, b.getF32Type());
    n.set(0, n.dense(DenseElementsAttr::get(type, list.asArrayRef())));
    return success();
  }
  return n.refuse("a constant of strings or in sparse form");
}

LogicalResult constantOfShape(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  FailureOr<Shape> shape = n.knownShape(0, "the shape");
  if (failed(shape))
    return failure();
  if (countOf(*shape) < 0)
    return n.reject("the shape is out of range");
  Type element = n.builder.getF32Type();
  double value = 0.0;
  if (auto given = dyn_cast_or_null<DenseElementsAttr>(n.op.getNodeAttr("value"))) {
    if (given.getNumElements() != 1)
      return n.reject("'value' must have one element");
    element = given.getElementType();
    if (isa<IntegerType>(element)) { // keeps 64-bit integers exact
      n.set(0,
            n.dense(DenseElementsAttr::get(RankedTensorType::get(*shape, element), *given.getValues<APInt>().begin())));
      return success();
    }
    value = floatsOf(given).front();
  }
  n.set(0, n.splat(element, *shape, value));
  return success();
}

/// Steps from the first bound to the second, the third at a time; nullopt: the step is zero, or they do not end.
std::optional<int64_t> countSteps(ArrayRef<Sizes> bounds, DenseElementsAttr Sizes::*which) {
  if (llvm::all_of(bounds, [](const Sizes &bound) { return isa<IntegerType>(bound.atCapacity.getElementType()); })) {
    auto number = [&](unsigned i) { return __int128(intsOf(bounds[i].*which).front()); };
    __int128 step = number(2), span = step > 0 ? number(1) - number(0) : number(0) - number(1);
    if (step == 0)
      return std::nullopt;
    step = step > 0 ? step : -step;
    return span <= 0 ? 0 : int64_t((span + step - 1) / step);
  }
  auto number = [&](unsigned i) { return floatsOf(bounds[i].*which).front(); };
  double steps = std::ceil((number(1) - number(0)) / number(2));
  return steps < 1e12 ? std::optional(steps > 0 ? int64_t(steps) : 0) : std::nullopt;
}

LogicalResult range(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  SmallVector<Sizes> bounds;
  for (unsigned i = 0; i < 3; ++i) {
    const Sizes *computed = n.context.selected.findSizes(n.in(i));
    bounds.push_back(computed ? *computed : Sizes{n.constant(i), n.constant(i), n.constant(i)});
    if (!bounds[i].atCapacity || bounds[i].atCapacity.getNumElements() != 1)
      return n.refuse("the bounds are computed from data; they must be known when compiling");
  }
  // PyTorch's exporter writes the numbers of `arange(1.0, n)` as the program has them: a float and an integer.
  Type element = n.in(0).elementType();
  for (unsigned i : {1, 2})
    if (!isa<FloatType>(element) && isa<FloatType>(n.in(i).elementType()))
      element = n.in(i).elementType();
  std::optional<int64_t> steps = countSteps(bounds, &Sizes::atCapacity), tagged = countSteps(bounds, &Sizes::tagged),
                         ofOne = countSteps(bounds, &Sizes::atOne);
  if (!steps || !tagged || !ofOne)
    return n.reject("the step is zero, or the range is not finite");
  if (*steps == *tagged && *steps != *ofOne)
    return n.refuse("its length depends on the number of rows that data select");
  const int64_t count = *steps;
  n.sizes = {{count}, {*tagged}};
  if (count > (int64_t(1) << 40))
    return n.reject("the range has " + Twine(count) + " elements");
  auto positions = RankedTensorType::get({count}, n.builder.getI64Type());
  Expr i = nn::cast(nn::iota(n.builder, n.getLoc(), positions, 0), element);
  auto spread = [&](unsigned operand) {
    return nn::broadcastTo(nn::reshape(nn::cast(n.in(operand), element), {}), {count});
  };
  n.set(0, i * spread(2) + spread(0));
  return success();
}

LogicalResult eyeLike(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  if (x.rank() != 2)
    return n.reject("a matrix is expected");
  Type element = n.hasAttr("dtype") ? elementTypeOf(n.builder.getContext(), n.attr("dtype", 1)) : x.elementType();
  if (!element)
    return n.refuse("element type " + Twine(n.attr("dtype", 1)));
  auto positions = RankedTensorType::get(x.shape(), n.builder.getI64Type());
  Expr row = nn::iota(n.builder, n.getLoc(), positions, 0), column = nn::iota(n.builder, n.getLoc(), positions, 1);
  n.set(0, nn::cast(nn::equal(column, row + double(n.attr("k", 0))), element));
  n.context.selected.markLike(n.results[0].tensor, x);
  return success();
}

/// The triangle above (or below) diagonal k; k may be data.
LogicalResult trilu(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  if (x.rank() < 2)
    return n.reject("at least two dimensions are expected");
  Shape matrix{x.dim(-2), x.dim(-1)};
  auto positions = RankedTensorType::get(matrix, n.builder.getI64Type());
  Expr row = nn::iota(n.builder, n.getLoc(), positions, 0), column = nn::iota(n.builder, n.getLoc(), positions, 1);
  Expr diagonal = row;
  if (n.has(1))
    diagonal = row + nn::broadcastTo(nn::reshape(n.in(1), {}), matrix);
  Expr keep = n.attr("upper", 1) ? nn::greaterEqual(column, diagonal) : nn::lessEqual(column, diagonal);
  n.set(0, nn::select(nn::broadcastTo(keep, x.shape()), x, x.like(0.0)));
  return success();
}

/// Σ weights[k] · cos(2π k i / N) for i < size; N is the size, or one less when the window is not periodic.
LogicalResult window(NodeView &n, ArrayRef<double> weights) {
  if (failed(n.need(1)))
    return failure();
  std::optional<Shape> size = n.constantInts(0);
  Type element = elementTypeOf(n.builder.getContext(), n.attr("output_datatype", 1));
  if (!size || size->size() != 1 || !element || !isa<FloatType>(element))
    return n.refuse("its size must be known when compiling, and its elements floats");
  int64_t count = size->front();
  if (count < 0 || count > (int64_t(1) << 20))
    return n.reject("a window of " + Twine(count) + " elements");
  double period = double(n.attr("periodic", 1) ? count : count - 1);
  SmallVector<Attribute> values;
  for (int64_t i = 0; i < count; ++i) {
    double value = 0;
    for (auto [k, weight] : llvm::enumerate(weights))
      value += weight * std::cos(2 * 3.141592653589793 * double(k) * double(i) / period);
    values.push_back(n.builder.getFloatAttr(element, value));
  }
  n.set(0, n.dense(DenseElementsAttr::get(RankedTensorType::get({count}, element), values)));
  return success();
}

LogicalResult hannWindow(NodeView &n) { return window(n, {0.5, -0.5}); }
LogicalResult hammingWindow(NodeView &n) { return window(n, {25.0 / 46.0, -21.0 / 46.0}); }
LogicalResult blackmanWindow(NodeView &n) { return window(n, {0.42, -0.5, 0.08}); }

} // namespace

void lowtide::addShapeRules(RuleTable &t) {
  t.add("Shape", shapeOf);
  t.add("Size", sizeOf);
  t.add("Constant", constant);
  t.add("ConstantOfShape", constantOfShape);
  t.add("Range", range);
  t.add("EyeLike", eyeLike);
  t.add("Trilu", trilu);
  t.add("HannWindow", hannWindow);
  t.add("HammingWindow", hammingWindow);
  t.add("BlackmanWindow", blackmanWindow);
}
