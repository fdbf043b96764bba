//===- ResizeRules.cpp - interpolation ------------------------------------===//
//
// Resize as ONNX's reference defines it: one axis after the other, each element a weighted sum of its neighbours.
// Which neighbours and which weights is known when compiling.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

using Weights = SmallVector<double>;

struct Method {
  std::string mode, nearest, coordinates;
  bool antialias, excludeOutside;
  /// As `F.interpolate` computes: corners are aligned with those of the result, where ONNX takes extent · scale, whole
  /// or not; nearest positions are multiples of one f32 step.
  bool isOfPyTorch;
  double cubic, extrapolation;
};

Weights cubicWeights(double ratio, double a) {
  auto outer = [a](double t) { return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a; };
  auto inner = [a](double t) { return ((a + 2) * t - (a + 3)) * t * t + 1; };
  return {outer(ratio + 1), inner(ratio), inner(1 - ratio), outer(2 - ratio)};
}

void normalize(Weights &w) {
  double sum = 0;
  for (double x : w)
    sum += x;
  for (double &x : w)
    x /= sum == 0 ? 1.0 : sum;
}

/// Weights of the neighbours of a point at `ratio` ∈ (0, 1] after the left one.
Weights weightsAt(const Method &m, double ratio, double scale) {
  if (m.mode == "nearest") {
    if (ratio == 1.0 || m.nearest == "ceil")
      return {0, 1};
    if (m.nearest == "floor")
      return {1, 0};
    bool right = m.nearest == "round_prefer_ceil" ? ratio >= 0.5 : ratio > 0.5;
    return right ? Weights{0, 1} : Weights{1, 0};
  }
  if (!m.antialias)
    return m.mode == "linear" ? Weights{1 - ratio, ratio} : cubicWeights(ratio, m.cubic);
  scale = std::min(scale, 1.0);
  Weights w;
  if (m.mode == "linear") {
    int64_t start = int64_t(std::floor(-1 / scale)) + 1;
    for (int64_t i = start; i < 2 - start; ++i)
      w.push_back(std::clamp(1 - std::abs((double(i) - ratio) * scale), 0.0, 1.0));
  } else {
    int64_t start = int64_t(std::floor(-2 / scale)) + 1;
    for (int64_t i = start; i < 2 - start; ++i) {
      double x = std::abs(scale * (double(i) - ratio)), a = m.cubic;
      w.push_back(x <= 1  ? (a + 2) * x * x * x - (a + 3) * x * x + 1
                  : x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                          : 0.0);
    }
  }
  normalize(w);
  return w;
}

struct Axis {
  int64_t dim, in, out;
  double scale, roiStart, roiEnd;
  bool hasSize; ///< the file gives the extent of the result, not the scale

  /// Elements of the operand for one of the result.
  double step() const { return hasSize ? double(in) / double(out) : 1 / scale; }
};

/// The factor that a program wrote, of which a file keeps the f32: the fraction of the least denominator up to 1,000
/// that rounds to it (4.2 is 21/5), found by its continued fraction; the number itself where there is none.
double findFactor(double scale) {
  constexpr double mostDenominator = 1000;
  double above = 1, below = 0, lastAbove = 0, lastBelow = 1;
  for (double rest = scale;;) {
    const double whole = std::floor(rest);
    lastAbove = std::exchange(above, whole * above + lastAbove);
    lastBelow = std::exchange(below, whole * below + lastBelow);
    if (!(below <= mostDenominator)) // nor what is no number
      return scale;
    if (float(above / below) == float(scale))
      return above / below;
    rest = 1 / (rest - whole);
  }
}

/// Where element `y` of the result lies in the operand.
double sourceOf(const Method &m, const Axis &a, double y) {
  double width = m.isOfPyTorch ? double(a.out) : a.scale * double(a.in);
  if (m.coordinates == "align_corners")
    return width == 1 ? 0.0 : y * double(a.in - 1) / (width - 1);
  if (m.coordinates == "asymmetric" && m.mode == "nearest" && m.isOfPyTorch)
    return double(float(y) * float(a.step()));
  // As for extents: 12 / 2.4 is 5 in f32 alone.
  if (m.coordinates == "asymmetric")
    return m.mode == "nearest" && !a.hasSize ? double(float(y) / float(a.scale)) : y / a.scale;
  if (m.coordinates == "tf_crop_and_resize") {
    double span = (a.roiEnd - a.roiStart) * double(a.in - 1);
    return (width == 1 ? span / 2 : y * span / (width - 1)) + a.roiStart * double(a.in - 1);
  }
  if (m.coordinates == "pytorch_half_pixel" && width == 1)
    return -0.5;
  double half = (y + 0.5) / a.scale - 0.5;
  if (m.coordinates == "half_pixel_symmetric")
    return double(a.in) / 2 * (1 - double(a.out) / width) + half;
  return half;
}

/// [out] spread over the shape of x at `dim`.
Expr alongDim(NodeView &n, ArrayRef<double> values, Expr x, int64_t dim) {
  SmallVector<Attribute> list;
  for (double v : values)
    list.push_back(n.builder.getFloatAttr(x.elementType(), v));
  auto type = RankedTensorType::get({int64_t(values.size())}, x.elementType());
  return nn::broadcast(n.dense(DenseElementsAttr::get(type, list)), x.shape(), {dim});
}

/// x read at `indices` along `dim`; whole repetitions are a broadcast.
Expr readAt(NodeView &n, Expr x, ArrayRef<int64_t> indices, int64_t dim) {
  int64_t in = x.dim(dim), out = indices.size();
  if (out == in && llvm::all_of(llvm::enumerate(indices), [](auto p) { return p.value() == int64_t(p.index()); }))
    return x;
  if (in && out % in == 0) {
    int64_t times = out / in;
    if (llvm::all_of(llvm::enumerate(indices), [&](auto p) { return p.value() == int64_t(p.index()) / times; })) {
      Shape spread(x.shape()), result(x.shape()), dims;
      spread.insert(spread.begin() + dim + 1, times);
      result[dim] = out;
      for (int64_t d = 0; d < x.rank(); ++d)
        dims.push_back(d <= dim ? d : d + 1);
      return nn::reshape(nn::broadcast(x, spread, dims), result);
    }
  }
  return nn::gather(x, n.ints(indices), dim);
}

Expr resizeAxis(NodeView &n, Expr x, const Method &m, const Axis &a) {
  SmallVector<Shape> indices; // by neighbour, then by element
  SmallVector<Weights> weights;
  SmallVector<bool> outside(a.out, false);
  for (int64_t y = 0; y < a.out; ++y) {
    double at = sourceOf(m, a, double(y)), floor = std::floor(at);
    if (m.coordinates == "tf_crop_and_resize")
      outside[y] = at < 0 || at > double(a.in - 1);
    Weights w = weightsAt(m, at == floor ? 1.0 : at - floor, a.scale);
    int64_t count = w.size(), pad = (count + 1) / 2;
    double padded = at + double(pad), base = std::floor(padded), fraction = padded - base;
    int64_t start = int64_t(base) - pad;
    if (count % 2 == 0)
      start += fraction == 0 ? -(count / 2) : -(count / 2) + 1;
    else
      start += fraction <= 0.5 ? -((count - 1) / 2) : -((count - 1) / 2) + 1;
    if (m.excludeOutside) {
      for (int64_t k = 0; k < count; ++k)
        if (start + k < 0 || start + k >= a.in)
          w[k] = 0;
      normalize(w);
    }
    indices.resize(count, Shape(a.out, 0));
    weights.resize(count, Weights(a.out, 0.0));
    for (int64_t k = 0; k < count; ++k) {
      indices[k][y] = std::clamp<int64_t>(start + k, 0, a.in - 1);
      weights[k][y] = w[k];
    }
  }
  Expr result;
  if (m.mode == "nearest") { // one of two neighbours: no arithmetic
    Shape chosen;
    for (int64_t y = 0; y < a.out; ++y)
      chosen.push_back(weights[0][y] != 0.0 ? indices[0][y] : indices[1][y]);
    result = readAt(n, x, chosen, a.dim);
  } else {
    for (size_t k = 0; k < indices.size(); ++k) {
      if (llvm::all_of(weights[k], [](double w) { return w == 0.0; }))
        continue;
      Expr part = readAt(n, x, indices[k], a.dim);
      part = part * alongDim(n, weights[k], part, a.dim);
      result = result ? result + part : part;
    }
  }
  if (llvm::is_contained(outside, true)) {
    Shape flags;
    for (bool o : outside)
      flags.push_back(o);
    Expr mask = nn::broadcast(n.ints(flags, n.builder.getI1Type()), result.shape(), {a.dim});
    result = nn::select(mask, result.like(m.extrapolation), result);
  }
  return result;
}

LogicalResult resize(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  int64_t rank = x.rank();
  // Before version 11 the scales are operand 1 and coordinates are asymmetric.
  bool old = n.version() < 11;
  auto known = [&](unsigned i) -> FailureOr<std::optional<SmallVector<double>>> {
    if (!n.has(i))
      return std::optional<SmallVector<double>>();
    std::optional<SmallVector<double>> given = n.constantFloats(i);
    if (!given) {
      (void)n.refuse("its scales or sizes are computed from data; they must be known when compiling");
      return failure();
    }
    if (given->empty())
      given.reset();
    return given;
  };
  auto scales = known(old ? 1 : 2), sizes = known(3);
  if (failed(scales) || failed(sizes))
    return failure();
  Method m{n.attrString("mode", "nearest"),
           n.attrString("nearest_mode", old ? "floor" : "round_prefer_floor"),
           n.attrString("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
           n.attr("antialias", 0) != 0,
           n.attr("exclude_outside", 0) != 0,
           n.isOfPyTorch(),
           n.attrFloat("cubic_coeff_a", -0.75),
           n.attrFloat("extrapolation_value", 0.0)};
  if (m.mode != "nearest" && m.mode != "linear" && m.mode != "cubic")
    return n.refuse("mode '" + m.mode + "'");
  if (m.mode != "nearest" && !isFloat(x))
    return n.refuse("interpolation of integers");
  std::optional<SmallVector<double>> roi;
  if (m.coordinates == "tf_crop_and_resize") {
    auto given = known(1);
    if (failed(given))
      return failure();
    roi = *given;
    if (!roi)
      return n.reject("'tf_crop_and_resize' needs a region of interest");
  }
  Shape all = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  FailureOr<Shape> axes = n.axes(n.attrInts("axes", all), rank);
  if (failed(axes))
    return failure();
  size_t count = axes->size();
  if ((*scales && (*scales)->size() != count) || (*sizes && (*sizes)->size() != count) || (!*scales && !*sizes) ||
      (roi && roi->size() != 2 * count))
    return n.reject("scales, sizes or region do not fit " + Twine(count) + " axes");

  SmallVector<Axis> plan;
  for (size_t i = 0; i < count; ++i) {
    Axis a{(*axes)[i],        x.dim((*axes)[i]), 0, 1.0, roi ? (*roi)[i] : 0.0, roi ? (*roi)[i + count] : 1.0,
           sizes->has_value()};
    a.scale = *sizes ? (**sizes)[i] / double(std::max<int64_t>(1, a.in)) : (**scales)[i];
    // Scales are f32 in a file, and runtimes compute in it: 0.7 · 10 is 7 in f32, of that 0.7 in f64 it is less.
    // PyTorch's program computed with its own number.
    double extent = *sizes ? (**sizes)[i] : double(std::trunc(float(a.scale) * float(a.in)));
    if (m.isOfPyTorch && *scales) {
      a.scale = findFactor(a.scale);
      extent = std::floor(a.scale * double(a.in));
    }
    if (!(a.scale > 0 && extent >= 1 && extent < 1e9) || a.in < 1)
      return n.reject("dimension " + Twine(a.dim) + " of size " + Twine(a.in) + " cannot be resized so");
    a.out = int64_t(extent);
    plan.push_back(a);
  }
  std::string policy = n.attrString("keep_aspect_ratio_policy", "stretch");
  if (*sizes && policy != "stretch") {
    auto smaller = [](const Axis &a, const Axis &b) { return a.scale < b.scale; };
    double scale =
        policy == "not_larger" ? llvm::min_element(plan, smaller)->scale : llvm::max_element(plan, smaller)->scale;
    for (Axis &a : plan) {
      a.scale = scale;
      a.out = int64_t(scale * double(a.in) + 0.5);
    }
  }
  for (const Axis &a : plan)
    if (std::abs(a.scale - 1.0) > 1e-9 || a.out != x.dim(a.dim) || a.roiStart != 0.0 || a.roiEnd != 1.0)
      x = resizeAxis(n, x, m, a);
  n.set(0, x);
  return success();
}

} // namespace

void lowtide::addResizeRules(RuleTable &t) {
  t.add("Resize", resize);
  t.add("Upsample", resize);
}
