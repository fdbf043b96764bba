//===- SpectralRules.cpp - discrete Fourier transforms --------------------===//
//
// Rules for DFT and STFT: products with matrices of cosines and sines, which are constants. That costs n² where a fast
// transform costs n log n, and its derivative is that of a product.
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

/// inputs × outputs: f(2π·j·k / n), weighted where a value stands for its conjugate, too.
Expr wave(NodeView &n, const Transform &t, Type element, double (*f)(double)) {
  std::vector<double> values;
  values.reserve(size_t(t.inputs * t.outputs));
  for (int64_t j = 0; j < t.inputs; ++j) {
    bool isTwice = t.halved && j > 0 && 2 * j != t.n;
    double weight = (t.inverse ? 1.0 / double(t.n) : 1.0) * (isTwice ? 2.0 : 1.0);
    for (int64_t k = 0; k < t.outputs; ++k)
      values.push_back(weight * f(2 * std::numbers::pi * double(j * k % t.n) / double(t.n)));
  }
  auto type = RankedTensorType::get({t.inputs, t.outputs}, element);
  SmallVector<APFloat> elements;
  elements.reserve(values.size());
  for (double value : values) {
    APFloat number(value);
    bool lost = false;
    number.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    elements.push_back(number);
  }
  return n.dense(DenseElementsAttr::get(type, elements));
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
  Expr cosines = wave(n, t, x.elementType(), [](double a) { return std::cos(a); });
  Expr sines = wave(n, t, x.elementType(), [](double a) { return std::sin(a); });
  if (!t.inverse)
    sines = -sines;
  Expr real = nn::dot(part(0), cosines), imaginary;
  if (x.dim(2) == 2) {
    real = real - nn::dot(part(1), sines);
    imaginary = nn::dot(part(1), cosines) + nn::dot(part(0), sines);
  } else {
    imaginary = nn::dot(part(0), sines);
  }
  real = nn::reshape(real, {rows, t.outputs, 1});
  if (t.halved)
    return real;
  return nn::concat({real, nn::reshape(imaginary, {rows, t.outputs, 1})}, 2);
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
