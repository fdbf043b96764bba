//===- Activation.cpp - activation functions ------------------------------===//
//
// Rules for activations. Functions with a kink are written so that no branch that is not taken can spoil a derivative.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

template <Expr (*F)(NodeView &, Expr)> LogicalResult activation(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  n.set(0, F(n, n.in(0)));
  return success();
}

Expr zero(Expr x) { return x.like(0.0); }
Expr positive(Expr x) { return nn::greater(x, zero(x)); }
/// exp(x) − 1 for x ≤ 0, 0 elsewhere.
Expr negativeExpm1(Expr x) { return nn::expm1(nn::select(positive(x), zero(x), x)); }
Expr clamp(Expr x, double low, double high) {
  // An element on a limit has no cotangent, as in PyTorch's hardsigmoid and hardswish.
  x = nn::select(nn::lessEqual(x, x.like(low)), x.like(low), x);
  return nn::select(nn::greaterEqual(x, x.like(high)), x.like(high), x);
}

Expr relu(NodeView &, Expr x) { return isFloat(x) ? nn::relu(x) : nn::select(positive(x), x, zero(x)); }
Expr leakyRelu(NodeView &n, Expr x) { return nn::select(positive(x), x, x * n.attrFloat("alpha", 0.01)); }
Expr thresholdedRelu(NodeView &n, Expr x) {
  return nn::select(nn::greater(x, x.like(n.attrFloat("alpha", 1.0))), x, zero(x));
}
Expr elu(NodeView &n, Expr x) { return nn::elu(x, n.attrFloat("alpha", 1.0)); }
Expr selu(NodeView &n, Expr x) {
  double alpha = n.attrFloat("alpha", 1.67326319217681884765625),
         gamma = n.attrFloat("gamma", 1.05070102214813232421875);
  return nn::select(positive(x), x * gamma, negativeExpm1(x) * (alpha * gamma));
}
Expr celu(NodeView &n, Expr x) {
  double alpha = n.attrFloat("alpha", 1.0);
  return nn::select(positive(x), x, negativeExpm1(x / alpha) * alpha);
}
Expr sigmoid(NodeView &, Expr x) { return nn::sigmoid(x); }
Expr hardSigmoid(NodeView &n, Expr x) {
  return clamp(x * n.attrFloat("alpha", 0.2) + n.attrFloat("beta", 0.5), 0.0, 1.0);
}
Expr hardSwish(NodeView &, Expr x) { return x * clamp(x / 6.0 + 0.5, 0.0, 1.0); }
Expr softplus(NodeView &, Expr x) { return nn::softplus(x); }
Expr softsign(NodeView &, Expr x) { return x / (nn::abs(x) + 1.0); }
Expr tanh(NodeView &, Expr x) { return nn::tanh(x); }
Expr mish(NodeView &, Expr x) { return x * nn::tanh(nn::softplus(x)); }
Expr swish(NodeView &n, Expr x) {
  double alpha = n.attrFloat("alpha", 1.0);
  return alpha == 1.0 ? nn::silu(x) : x * nn::sigmoid(x * alpha);
}
Expr shrink(NodeView &n, Expr x) {
  double lambd = n.attrFloat("lambd", 0.5), bias = n.attrFloat("bias", 0.0);
  return nn::select(nn::less(x, x.like(-lambd)), x + bias,
                    nn::select(nn::greater(x, x.like(lambd)), x - bias, zero(x)));
}
Expr gelu(NodeView &n, Expr x) { return n.attrString("approximate", "none") == "tanh" ? nn::geluTanh(x) : nn::gelu(x); }

LogicalResult swiglu(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  if (n.in(0).type() != n.in(1).type())
    return n.reject("two operands of one type are expected");
  n.set(0, swish(n, n.in(0)) * n.in(1));
  return success();
}

LogicalResult prelu(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0), slope = n.in(1);
  FailureOr<Shape> shape = broadcastShapes(x.shape(), slope.shape());
  if (failed(shape) || ArrayRef<int64_t>(*shape) != x.shape())
    return n.reject("the slope does not broadcast to the input");
  n.set(0, nn::select(positive(x), x, x * nn::broadcastTo(slope, x.shape())));
  return success();
}

/// Softmax family. Before version 13 the operand is seen as a matrix, split at `axis` (default 1).
template <Expr (*F)(Expr, int64_t)> LogicalResult alongAxis(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  bool flattens = n.version() < 13;
  FailureOr<int64_t> axis = n.axis(n.attr("axis", flattens ? 1 : -1), x.rank());
  if (failed(axis))
    return failure();
  if (!flattens) {
    n.set(0, F(x, *axis));
    return success();
  }
  Shape flat{countOf(x.shape().take_front(*axis)), countOf(x.shape().drop_front(*axis))};
  n.set(0, nn::reshape(F(nn::reshape(x, flat), 1), x.shape()));
  return success();
}

/// One at the first largest element.
Expr hardmax(Expr x, int64_t dim) {
  OpBuilder &b = x.getBuilder();
  auto type = RankedTensorType::get(x.shape(), b.getI64Type());
  Expr position = nn::iota(b, x.getLoc(), type, dim);
  Expr first = nn::argmax(x, dim, b.getI64Type());
  return nn::cast(nn::equal(position, nn::broadcastTo(unsqueeze(first, dim), x.shape())), x.elementType());
}

} // namespace

void lowtide::addActivationRules(RuleTable &t) {
  t.add("Relu", activation<relu>);
  t.add("LeakyRelu", activation<leakyRelu>);
  t.add("ThresholdedRelu", activation<thresholdedRelu>);
  t.add("PRelu", prelu);
  t.add("Elu", activation<elu>);
  t.add("Selu", activation<selu>);
  t.add("Celu", activation<celu>);
  t.add("Sigmoid", activation<sigmoid>);
  t.add("HardSigmoid", activation<hardSigmoid>);
  t.add("HardSwish", activation<hardSwish>);
  t.add("Softplus", activation<softplus>);
  t.add("Softsign", activation<softsign>);
  t.add("Tanh", activation<tanh>);
  t.add("Mish", activation<mish>);
  t.add("Swish", activation<swish>);
  t.add("SwiGLU", swiglu);
  t.add("Shrink", activation<shrink>);
  t.add("Gelu", activation<gelu>);
  t.add("Softmax", alongAxis<nn::softmax>, SelectedMeet::Yes);
  t.add("LogSoftmax", alongAxis<nn::logSoftmax>, SelectedMeet::Yes);
  t.add("Hardmax", alongAxis<hardmax>);
}
