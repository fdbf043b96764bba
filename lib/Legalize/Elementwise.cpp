//===- Elementwise.cpp - arithmetic and mathematical functions ------------===//
//
// Rules for operators that compute each element from the elements at the same place.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/NN/Storage.h"
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Roots.h"
#include "lowtide/Legalize/Rules.h"
#include "lowtide/Recover/NodeNotes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

template <Expr (*F)(Expr)> LogicalResult unary(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  n.set(0, F(n.in(0)));
  return success();
}

template <Expr (*F)(Expr, Expr)> LogicalResult binary(NodeView &n) {
  FailureOr<SmallVector<Expr>> list = unifiedOperands(n, 2);
  if (failed(list))
    return failure();
  if (list->size() != 2 || (*list)[0].elementType() != (*list)[1].elementType())
    return n.reject("two operands of one type are expected");
  n.set(0, F((*list)[0], (*list)[1]));
  return success();
}

template <Expr (*F)(Expr, Expr)> LogicalResult variadic(NodeView &n) {
  FailureOr<SmallVector<Expr>> list = unifiedOperands(n, 1);
  if (failed(list))
    return failure();
  Expr y = list->front();
  for (Expr x : ArrayRef(*list).drop_front()) {
    if (x.elementType() != y.elementType())
      return n.reject("operands of one type are expected");
    y = F(y, x);
  }
  n.set(0, y);
  return success();
}

/// What the importer noted.
Ties tiesOf(NodeView &n) { return Ties(n.attr(tiesAttrName, 0)); }

/// The larger or the smaller of two. An element that equals a number by which the program clamps has no cotangent.
template <Expr (*F)(Expr, Expr), Expr (*IsOut)(Expr, Expr)> LogicalResult extremum(NodeView &n) {
  FailureOr<SmallVector<Expr>> list = unifiedOperands(n, 1);
  if (failed(list))
    return failure();
  if (tiesOf(n) == Ties::None && list->size() == 2 && (*list)[0].elementType() == (*list)[1].elementType())
    for (unsigned limit : {0u, 1u})
      if (n.constant(limit)) {
        Expr x = (*list)[1 - limit], bound = (*list)[limit];
        n.set(0, nn::select(IsOut(x, bound), bound, x));
        return success();
      }
  return variadic<F>(n);
}

Expr add(Expr a, Expr b) { return a + b; }
Expr subtract(Expr a, Expr b) { return a - b; }
Expr multiply(Expr a, Expr b) { return a * b; }
Expr divide(Expr a, Expr b) { return a / b; }
Expr negate(Expr a) { return -a; }
Expr squareRoot(Expr a) { return rootOf(a, 2, nn::sqrt); }
Expr reciprocal(Expr a) { return nn::reciprocal(a); }
Expr erfc(Expr a) { return 1.0 - nn::erf(a); }
Expr maximumOf(Expr a, Expr b) { return nn::max(a, b); }
Expr minimumOf(Expr a, Expr b) { return nn::min(a, b); }

/// Integers are left as they are by rounding functions.
template <Expr (*F)(Expr)> Expr onFloats(Expr x) { return isFloat(x) ? F(x) : x; }

LogicalResult mean(NodeView &n) {
  if (failed(variadic<add>(n)))
    return failure();
  n.set(0, n.wrap(n.results[0].tensor) / double(n.size()));
  return success();
}

/// Remainder with the sign of the divisor, or of the dividend for `fmod`.
LogicalResult mod(NodeView &n) {
  FailureOr<SmallVector<Expr>> list = unifiedOperands(n, 2);
  if (failed(list))
    return failure();
  Expr a = (*list)[0], b = (*list)[1];
  Expr r = n.attr("fmod", 0) ? nn::rem(a, b) : nn::mod(a, b);
  n.set(0, r);
  return success();
}

/// The value of a constant whose elements are all equal.
std::optional<double> splatValue(NodeView &n, unsigned i) {
  DenseElementsAttr attr = n.constant(i);
  if (!attr || attr.empty())
    return std::nullopt;
  SmallVector<double> all =
      floatsOf(attr.isSplat() ? attr.resizeSplat(RankedTensorType::get({1}, attr.getElementType())) : attr);
  if (!llvm::all_equal(all))
    return std::nullopt;
  return all.front();
}

LogicalResult power(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Type type = n.in(0).elementType();
  std::optional<double> exponent = splatValue(n, 1);
  Expr list[2] = {n.in(0), n.in(1)};
  if (failed(unifyShapes(n, list)))
    return failure();
  Expr x = list[0], e = list[1];
  // Small powers are products: exact, quick, and differentiable where the logarithm of x is not defined.
  if (exponent == 1.0)
    n.set(0, x);
  else if (exponent == 2.0)
    n.set(0, rootOf(x, 0.5, [](Expr base) { return base * base; }));
  else if (exponent == 3.0)
    n.set(0, x * x * x);
  else if (exponent == 0.5 && isFloat(x))
    n.set(0, rootOf(x, 2, nn::sqrt));
  else if (exponent == -1.0 && isFloat(x))
    n.set(0, 1.0 / x);
  else if (isFloat(x) && exponent && *exponent > 0)
    n.set(0, rootOf(x, 1 / *exponent, [&](Expr base) { return nn::pow(base, nn::cast(e, type)); }));
  else if (isFloat(x))
    n.set(0, nn::pow(x, nn::cast(e, type)));
  else {
    Type f64 = n.builder.getF64Type();
    n.set(0, nn::cast(nn::pow(nn::cast(x, f64), nn::cast(e, f64)), type));
  }
  return success();
}

/// Limits come as attributes up to version 6, then as operands. Elements on a limit have no cotangent where the limit
/// is a number (`clamp`, `relu6`, `hardtanh`); a limit that is a tensor of the program takes half of it, as `maximum`
/// does.
LogicalResult clip(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0), low, high;
  auto limit = [&](StringRef name, unsigned i) -> Expr {
    if (n.hasAttr(name))
      return x.like(n.attrFloat(name, 0.0));
    return n.has(i) ? nn::broadcastTo(n.in(i).rank() ? nn::reshape(n.in(i), {}) : n.in(i), x.shape()) : Expr();
  };
  for (unsigned i : {1u, 2u})
    if (n.has(i) && n.in(i).type().getNumElements() != 1)
      return n.reject("limits must be scalars");
  low = limit("min", 1);
  high = limit("max", 2);
  const bool isShared = tiesOf(n) == Ties::Shared;
  auto isNumber = [&](StringRef name, unsigned i) { return n.hasAttr(name) || (!isShared && n.constant(i)); };
  if (low)
    x = isNumber("min", 1) ? nn::select(nn::lessEqual(x, low), low, x) : nn::max(x, low);
  if (high)
    x = isNumber("max", 2) ? nn::select(nn::greaterEqual(x, high), high, x) : nn::min(x, high);
  n.set(0, x);
  return success();
}

LogicalResult cast(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  int64_t to = n.attr("to", 0);
  Type type = elementTypeOf(n.builder.getContext(), to);
  if (!type)
    return n.refuse("conversion to ONNX element type " + Twine(to) + " (strings, 8- and 4-bit types)");
  n.set(0, nn::cast(n.in(0), type));
  return success();
}

/// ONNX, BitCast-26. Integers, and what ONNX holds in a byte for true and false, are the same numbers by their bits.
LogicalResult bitCast(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  const int64_t number = n.attr("to", 0);
  const Type to = elementTypeOf(n.builder.getContext(), number);
  if (!to)
    return n.refuse("the bits of ONNX element type " + Twine(number) + " (strings, 8- and 4-bit types)");
  const Type from = n.in(0).elementType();
  auto countBits = [](Type type) { return type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth(); };
  if (countBits(from) != countBits(to))
    return n.reject(llvm::formatv("its input is {0}, of {1} bits, and 'to' is {2}, of {3}", from, countBits(from), to,
                                  countBits(to))
                        .str());
  if (from == to) {
    n.set(0, n.in(0));
    return success();
  }
  if (!isa<FloatType>(from) && !isa<FloatType>(to)) {
    if (to.isInteger(1))
      return n.refuse("bits of integers as booleans");
    n.set(0, nn::cast(n.in(0), to));
    return success();
  }
  if (countBits(to) < 32 || (isa<FloatType>(from) && isa<FloatType>(to)))
    return n.refuse("bits of 16-bit floats");
  n.set(0, nn::bitCast(n.in(0), to));
  return success();
}

LogicalResult castLike(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  n.set(0, nn::cast(n.in(0), n.in(1).elementType()));
  return success();
}

LogicalResult passThrough(NodeView &n) {
  if (!n.has(0))
    return n.reject("operand 0 is missing");
  // The importer's note.
  if (n.hasAttr(detachedAttrName) && n.in(0) && isa<FloatType>(n.in(0).elementType())) {
    n.set(0, nn::detach(n.in(0)));
    return success();
  }
  n.results[0] = n.meaning(0);
  return success();
}

} // namespace

void lowtide::addElementwiseRules(RuleTable &t) {
  t.add("Add", binary<add>);
  t.add("Sub", binary<subtract>);
  t.add("Mul", binary<multiply>);
  t.add("Div", binary<divide>);
  t.add("Mod", mod);
  t.add("Pow", power);
  t.add("Sum", variadic<add>);
  t.add("Mean", mean);
  t.add("Max", extremum<maximumOf, nn::lessEqual>);
  t.add("Min", extremum<minimumOf, nn::greaterEqual>);
  t.add("Neg", unary<negate>);
  t.add("Abs", unary<nn::abs>);
  t.add("Sign", unary<nn::sign>);
  t.add("Reciprocal", unary<reciprocal>);
  t.add("Exp", unary<nn::exp>);
  t.add("Log", unary<nn::log>);
  t.add("Sqrt", unary<squareRoot>);
  t.add("Erf", unary<nn::erf>);
  t.add("Erfc", unary<erfc>);
  t.add("Sin", unary<nn::sin>);
  t.add("Cos", unary<nn::cos>);
  t.add("Tan", unary<nn::tan>);
  t.add("Asin", unary<nn::asin>);
  t.add("Acos", unary<nn::acos>);
  t.add("Atan", unary<nn::atan>);
  t.add("Sinh", unary<nn::sinh>);
  t.add("Cosh", unary<nn::cosh>);
  t.add("Asinh", unary<nn::asinh>);
  t.add("Acosh", unary<nn::acosh>);
  t.add("Atanh", unary<nn::atanh>);
  t.add("Floor", unary<onFloats<nn::floor>>);
  t.add("Ceil", unary<onFloats<nn::ceil>>);
  t.add("Round", unary<onFloats<nn::round>>);
  t.add("Clip", clip);
  t.add("Cast", cast);
  t.add("CastLike", castLike);
  t.add("BitCast", bitCast);
  t.add("Identity", passThrough);
}
