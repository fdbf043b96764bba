//===- SpectralRules.cpp - discrete Fourier transforms --------------------===//
//
// Rules for DFT and STFT: products with matrices of cosines and sines, which are constants. A long transform of n = a ·
// b values is b transforms of length a, a turn of each number, and a transforms of length b (Cooley and Tukey 1965,
// doi:10.1090/S0025-5718-1965-0178586-1). The derivative is that of products.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// A length beyond which the matrices would be too large to be constants.
constexpr int64_t longest = 4096;

/// How `n` values become `count` frequencies, or the other way round.
struct Transform {
  int64_t n, inputs, outputs;
  bool inverse;
  /// Of the inputs of an inverse transform only the first half is there: the rest are their conjugates.
  bool halved;
};

/// A constant of rows × columns.
Expr table(NodeView &n, int64_t rows, int64_t columns, Type element, llvm::function_ref<double(int64_t, int64_t)> at) {
  SmallVector<APFloat> elements;
  elements.reserve(size_t(rows * columns));
  for (int64_t j = 0; j < rows; ++j)
    for (int64_t k = 0; k < columns; ++k) {
      APFloat number(at(j, k));
      bool lost = false;
      number.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
      elements.push_back(number);
    }
  return n.dense(DenseElementsAttr::get(RankedTensorType::get({rows, columns}, element), elements));
}

/// Complex numbers; none of their imaginary parts: all are 0.
struct Complex {
  Expr real;
  std::optional<Expr> imaginary;

  template <typename F> Complex map(F change) const {
    return {change(real), imaginary ? std::optional<Expr>(change(*imaginary)) : std::nullopt};
  }
};

/// exp(±2πi · j · k / period), weighted, for rows × columns: backwards with the sign of an inverse transform.
Complex waves(NodeView &n, const Transform &t, int64_t rows, int64_t columns, int64_t period, Type element,
              llvm::function_ref<double(int64_t)> weight) {
  auto angle = [&](int64_t j, int64_t k) { return 2 * std::numbers::pi * double(j * k % period) / double(period); };
  Expr cosines =
      table(n, rows, columns, element, [&](int64_t j, int64_t k) { return weight(j) * std::cos(angle(j, k)); });
  Expr sines =
      table(n, rows, columns, element, [&](int64_t j, int64_t k) { return weight(j) * std::sin(angle(j, k)); });
  return {cosines, t.inverse ? sines : -sines};
}

/// A product of complex numbers; `needsImaginary`: of its imaginary part, too.
template <typename F> Complex multiplied(const Complex &x, const Complex &y, bool needsImaginary, F product) {
  Complex z{product(x.real, y.real), std::nullopt};
  if (x.imaginary)
    z.real = z.real - product(*x.imaginary, *y.imaginary);
  if (needsImaginary && x.imaginary)
    z.imaginary = product(*x.imaginary, y.real) + product(x.real, *y.imaginary);
  else if (needsImaginary)
    z.imaginary = product(x.real, *y.imaginary);
  return z;
}

/// The factor a ≤ n / a of a length that is transformed in two steps; 0: it is not. Two products with small matrices
/// and three transposes have to be cheaper than one product.
int64_t getFactor(int64_t n) {
  constexpr int64_t shortest = 256;
  if (n < shortest)
    return 0;
  int64_t factor = 0;
  for (int64_t a = 2; a * a <= n; ++a)
    if (n % a == 0)
      factor = a;
  return factor && 4 * (factor + n / factor) <= n ? factor : 0;
}

/// The numbers that half of a spectrum stands for: those after it are conjugates of those before.
Complex completed(const Complex &half, const Transform &t) {
  int64_t count = t.n - t.inputs;
  if (count == 0)
    return half;
  auto join = [&](Expr x, bool isNegated) {
    Expr rest = nn::reverse(sliceDim(x, 1, 1, count), {1});
    return nn::concat({x, isNegated ? -rest : rest}, 1);
  };
  return {join(half.real, false), half.imaginary ? std::optional<Expr>(join(*half.imaginary, true)) : std::nullopt};
}

/// Value j = b · j1 + j2 and frequency k = k1 + a · k2: over j1, then a turn by j2 · k1 of n, then over j2.
Complex transformedInSteps(NodeView &n, const Complex &x, const Transform &t, int64_t a) {
  const int64_t b = t.n / a, rows = x.real.dim(0), last = llvm::divideCeil(t.outputs, a);
  Type element = x.real.elementType();
  auto swapped = [&](int64_t from, int64_t to) {
    return [=](Expr e) { return nn::transpose(nn::reshape(e, {rows, from, to}), {0, 2, 1}); };
  };
  auto lines = [&](int64_t length) { return [=](Expr e) { return nn::reshape(e, {rows * t.n / length, length}); }; };
  auto times = [](Expr left, Expr right) { return nn::dot(left, right); };
  Complex y = (t.halved ? completed(x, t) : x).map(swapped(a, b)).map(lines(a));
  y = multiplied(y, waves(n, t, a, a, a, element, [&](int64_t) { return t.inverse ? 1.0 / double(t.n) : 1.0; }), true,
                 times);
  Complex turns = waves(n, t, b, a, t.n, element, [](int64_t) { return 1.0; });
  y = multiplied(y.map([&](Expr e) { return nn::reshape(e, {rows, b, a}); }), turns, true,
                 [](Expr left, Expr right) { return left * nn::broadcast(right, left.shape(), {1, 2}); });
  y = multiplied(y.map(swapped(b, a)).map(lines(b)), waves(n, t, b, last, b, element, [](int64_t) { return 1.0; }),
                 !t.halved, times);
  return y.map(swapped(a, last)).map([&](Expr e) {
    return sliceDim(nn::reshape(e, {rows, a * last}), 1, 0, t.outputs);
  });
}

/// Transforms rows of `x` [rows, length, 1 or 2]; the result is [rows, outputs, 1 or 2].
Expr transformed(NodeView &n, Expr x, const Transform &t) {
  int64_t rows = x.dim(0);
  auto part = [&](int64_t i) { // cut or padded to the inputs
    Expr p = nn::reshape(sliceDim(x, 2, i, 1), {rows, x.dim(1)});
    if (p.dim(1) > t.inputs)
      p = sliceDim(p, 1, 0, t.inputs);
    return p.dim(1) == t.inputs ? p : nn::pad(p, {0, 0}, {0, t.inputs - p.dim(1)});
  };
  Complex y{part(0), x.dim(2) == 2 ? std::optional<Expr>(part(1)) : std::nullopt};
  if (int64_t factor = getFactor(t.n)) {
    y = transformedInSteps(n, y, t, factor);
  } else {
    // Of half a spectrum a value stands for its conjugate, too.
    Complex matrix = waves(n, t, t.inputs, t.outputs, t.n, x.elementType(), [&](int64_t j) {
      const bool isTwice = t.halved && j > 0 && 2 * j != t.n;
      return (t.inverse ? 1.0 / double(t.n) : 1.0) * (isTwice ? 2.0 : 1.0);
    });
    y = multiplied(y, matrix, !t.halved, [](Expr left, Expr right) { return nn::dot(left, right); });
  }
  auto spread = y.map([&](Expr e) { return nn::reshape(e, {rows, t.outputs, 1}); });
  return spread.imaginary ? nn::concat({spread.real, *spread.imaginary}, 2) : spread.real;
}

LogicalResult dft(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  if (x.rank() < 2 || (x.dim(-1) != 1 && x.dim(-1) != 2) || !isa<FloatType>(x.elementType()))
    return n.reject("the last dimension holds real and imaginary parts: it must be 1 or 2");
  int64_t at = n.version() < 20 ? n.attr("axis", 1) : -2;
  std::optional<Shape> given = n.has(2) ? n.constantInts(2) : std::nullopt;
  if (n.has(2) && (!given || given->size() != 1))
    return n.refuse("the axis is computed from data; it must be known when compiling");
  FailureOr<int64_t> axis = n.axis(given ? given->front() : at, x.rank());
  if (failed(axis))
    return failure();
  if (*axis == x.rank() - 1)
    return n.reject("the last dimension holds real and imaginary parts and is no axis");
  bool inverse = n.attr("inverse", 0), oneSided = n.attr("onesided", 0);
  int64_t length = x.dim(*axis);
  Transform t{inverse && oneSided ? 2 * (length - 1) : length, 0, 0, inverse, inverse && oneSided};
  if (n.has(1)) {
    std::optional<Shape> wanted = n.constantInts(1);
    if (!wanted || wanted->size() != 1)
      return n.refuse("the length is computed from data; it must be known when compiling");
    t.n = wanted->front();
  }
  if (t.n < 1 || t.n > longest)
    return n.refuse("a transform of length " + Twine(t.n) + "; there are lengths from 1 to " + Twine(longest));
  t.inputs = t.halved ? t.n / 2 + 1 : t.n;
  t.outputs = oneSided && !inverse ? t.n / 2 + 1 : t.n;
  // The axis goes last.
  Shape order, back(x.rank());
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != *axis && d != x.rank() - 1)
      order.push_back(d);
  order.append({*axis, x.rank() - 1});
  for (auto [to, from] : llvm::enumerate(order))
    back[from] = int64_t(to);
  Expr turned = nn::transpose(x, order);
  Shape shape(turned.shape());
  Expr y = transformed(n, nn::reshape(turned, {countOf(ArrayRef(shape).drop_back(2)), length, x.dim(-1)}), t);
  shape[shape.size() - 2] = t.outputs;
  shape.back() = y.dim(2);
  n.set(0, nn::transpose(nn::reshape(y, shape), back));
  return success();
}

LogicalResult stft(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  if (x.rank() != 3 || (x.dim(2) != 1 && x.dim(2) != 2) || !isa<FloatType>(x.elementType()))
    return n.reject("a signal [batch, length, 1 or 2] is expected");
  std::optional<Shape> step = n.constantInts(1), wanted = n.has(3) ? n.constantInts(3) : std::nullopt;
  if (!step || step->size() != 1 || step->front() < 1 || (n.has(3) && (!wanted || wanted->size() != 1)))
    return n.refuse("step and length of frames are computed from data; they must be known when compiling");
  int64_t length = wanted ? wanted->front() : n.has(2) ? n.in(2).dim(0) : x.dim(1);
  bool oneSided = n.attr("onesided", 1);
  if (length < 1 || length > longest)
    return n.refuse("frames of length " + Twine(length) + "; there are lengths from 1 to " + Twine(longest));
  if (length > x.dim(1) || (n.has(2) && n.in(2).shape() != ArrayRef<int64_t>{length}))
    return n.reject("signal, window and frame length do not fit together");
  int64_t frames = (x.dim(1) - length) / step->front() + 1;
  SmallVector<int64_t> places;
  for (int64_t frame = 0; frame < frames; ++frame)
    for (int64_t i = 0; i < length; ++i)
      places.push_back(frame * step->front() + i);
  Expr y = nn::reshape(nn::gather(x, n.ints(places), 1), {x.dim(0) * frames, length, x.dim(2)});
  if (n.has(2))
    y = y * nn::broadcast(n.in(2), y.shape(), {1});
  int64_t bins = oneSided ? length / 2 + 1 : length;
  y = transformed(n, y, {length, length, bins, false, false});
  n.set(0, nn::reshape(y, {x.dim(0), frames, bins, 2}));
  return success();
}

} // namespace

void lowtide::addSpectralRules(RuleTable &t) {
  t.add("DFT", dft);
  t.add("STFT", stft);
}
