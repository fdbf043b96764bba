//===- ElementwiseGradients.cpp - derivatives too long for a record -*- C++ -*-===//
//
// Derivatives of activations, extrema, powers and products.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/ElementwiseGradients.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace lowtide::nn;

// gelu = x·Φ(x), so gelu' = Φ(x) + x·φ(x).
Expr lowtide::nn::geluGradient(Expr x, Expr dy) {
  Expr distribution = 0.5 * (erf(x * std::sqrt(0.5)) + 1.0);
  Expr density = exp(x * x * -0.5) * 0.3989422804014327;
  return dy * (distribution + x * density);
}

Expr lowtide::nn::geluTanhGradient(Expr x, Expr dy) {
  constexpr double c = 0.79788456080286536, d = 0.044715;
  Expr square = x * x;
  Expr t = tanh((x + x * square * d) * c);
  Expr inner = (square * (3.0 * d) + 1.0) * c;
  return dy * (0.5 * (t + 1.0) + 0.5 * x * (1.0 - t * t) * inner);
}

Expr lowtide::nn::siluGradient(Expr x, Expr dy) {
  Expr s = sigmoid(x);
  return dy * (s * (x * (1.0 - s) + 1.0));
}

Expr lowtide::nn::eluGradient(Expr x, Expr dy, double alpha) {
  return select(greater(x, 0.0), dy, dy * (exp(x) * alpha));
}

Expr lowtide::nn::extremumGradient(Expr x, Expr other, Expr dy, bool smaller) {
  Expr wins = smaller ? less(x, other) : greater(x, other);
  return select(wins, dy, select(equal(x, other), dy * 0.5, dy.like(0.0)));
}

/// The value of a splat constant.
static std::optional<double> constantValue(Expr x) {
  DenseElementsAttr dense;
  if (!matchPattern(x.get(), m_Constant(&dense)) || !dense.isSplat())
    return std::nullopt;
  auto real = dyn_cast<FloatAttr>(dense.getSplatValue<Attribute>());
  return real ? std::optional<double>(real.getValueAsDouble()) : std::nullopt;
}

Expr lowtide::nn::powBaseGradient(Expr a, Expr b, Expr y, Expr dy) {
  if (std::optional<double> exponent = constantValue(b)) {
    if (*exponent == 0.0)
      return dy.like(0.0);
    if (*exponent == 0.5)
      return dy * 0.5 / y;
    return dy * (pow(a, *exponent - 1.0) * *exponent);
  }
  return select(equal(b, 0.0), dy.like(0.0), dy * b * pow(a, b - 1.0));
}

Expr lowtide::nn::powExponentGradient(Expr a, Expr b, Expr y, Expr dy) {
  return select(equal(a, 0.0), dy.like(0.0), dy * y * log(a));
}

Expr lowtide::nn::productGradient(Expr x, Expr y, Expr dy, ArrayRef<int64_t> dims) {
  Expr isZero = equal(x, 0.0);
  Expr zeros = sum(cast(isZero, x.elementType()), dims);
  // With one zero, only its own derivative survives: the product of the others.
  Expr others = product(select(isZero, x.like(1.0), x), dims);
  Expr whole = unreduce(dy * y, x.type(), dims) / x;
  Expr alone =
      select(isZero, unreduce(select(equal(zeros, 1.0), dy * others, dy.like(0.0)), x.type(), dims), x.like(0.0));
  return select(unreduce(equal(zeros, 0.0), RankedTensorType::get(x.shape(), x.getBuilder().getI1Type()), dims), whole,
                alone);
}
