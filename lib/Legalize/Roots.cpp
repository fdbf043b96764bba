//===- Roots.cpp - lengths and deviations ---------------------------------===//
//
// Programs call a norm of any order, or a standard deviation; files hold the power, the sum and the root.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Roots.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace lowtide;
using nn::Expr;

static bool isConstant(Value value) { return bool(LegalizeContext::constantOf(value)); }

/// The exponent of `power` if it is one number.
static std::optional<double> exponentOf(nn::PowOp power) {
  Value exponent = power.getOperand(1);
  while (auto broadcast = exponent.getDefiningOp<nn::BroadcastOp>())
    exponent = broadcast.getX();
  DenseElementsAttr constant = LegalizeContext::constantOf(exponent);
  if (!constant || !constant.isSplat())
    return std::nullopt;
  return floatsOf(constant.resizeSplat(RankedTensorType::get({1}, constant.getElementType()))).front();
}

static bool isSame(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

/// What `value` is the power of order `order` of; null: it is none.
static Value findBase(Value value, double order) {
  if (auto power = value.getDefiningOp<nn::PowOp>()) {
    std::optional<double> exponent = exponentOf(power);
    return exponent && isSame(*exponent, order) ? Value(power.getOperand(0)) : Value();
  }
  if (auto root = value.getDefiningOp<nn::SqrtOp>())
    return isSame(order, 0.5) ? Value(root.getX()) : Value();
  auto product = value.getDefiningOp<nn::MulOp>();
  if (product && isSame(order, 2))
    return product.getOperand(0) == product.getOperand(1) ? Value(product.getOperand(0)) : Value();
  auto square = product ? product.getOperand(0).getDefiningOp<nn::MulOp>() : nn::MulOp();
  bool isCube = square && isSame(order, 3) && square.getOperand(0) == square.getOperand(1) &&
                square.getOperand(0) == product.getOperand(1);
  return isCube ? Value(product.getOperand(1)) : Value();
}

/// The sum of powers that `value` is, in whatever shape and however scaled.
static nn::ReduceSumOp findSum(Value value, double order) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto sum = dyn_cast<nn::ReduceSumOp>(op)) {
      Value term = sum.getX();
      while (auto cast = term.getDefiningOp<nn::CastOp>())
        term = cast.getX();
      if (findBase(term, order))
        return sum;
      value = sum.getX(); // one dimension after the other
    } else if (isa<nn::ReshapeOp, nn::BroadcastOp, nn::CastOp>(op)) {
      value = op->getOperand(0);
    } else if (isa<nn::MulOp, nn::DivOp>(op) && isConstant(op->getOperand(1))) {
      value = op->getOperand(0);
    } else if (isa<nn::MulOp>(op) && isConstant(op->getOperand(0))) {
      value = op->getOperand(1);
    } else {
      return {};
    }
  }
  return {};
}

Expr lowtide::rootOf(Expr x, double order, llvm::function_ref<Expr(Expr)> root) {
  nn::ReduceSumOp sum = findSum(x, order);
  if (!sum)
    return root(x);
  // Powers below one have an infinite derivative at zero themselves.
  Value unshaped = x.get();
  while (auto reshape = unshaped.getDefiningOp<nn::ReshapeOp>())
    unshaped = reshape.getX();
  if (Value base = order < 1 && unshaped == sum.getY() ? findBase(sum.getX(), order) : Value()) {
    Expr y = x.with(base), isNone = nn::equal(y, 0.0);
    Expr power = nn::pow(nn::select(isNone, y.like(1.0), y), y.like(order));
    x = nn::reshape(nn::sum(nn::select(isNone, y.like(0.0), power), sum.getDims()), x.shape());
  }
  Expr isZero = nn::equal(x, 0.0);
  return nn::select(isZero, x, root(nn::select(isZero, x.like(1.0), x)));
}
