//===- Product.cpp - products as constant, factors and divisors -*- C++ -*-===//
//
// Taking products and sums apart.
//
//===----------------------------------------------------------------------===//

#include "Product.h"
#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace lowtide;

std::optional<double> nn::getSplat(Value value) {
  DenseElementsAttr dense;
  if (!matchPattern(value, m_Constant(&dense)) || !dense.isSplat() || !isa<FloatType>(dense.getElementType()))
    return std::nullopt;
  return dense.getSplatValue<FloatAttr>().getValueAsDouble();
}

bool nn::isNearly(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b)); }

static void collect(Value value, Value stop, nn::Product &product, int depth) {
  if (value == stop || depth == 0) {
    product.factors.push_back(value);
  } else if (std::optional<double> constant = nn::getSplat(value)) {
    product.coefficient *= *constant;
  } else if (auto mul = value.getDefiningOp<nn::MulOp>()) {
    collect(mul.getA(), stop, product, depth - 1);
    collect(mul.getB_(), stop, product, depth - 1);
  } else if (auto neg = value.getDefiningOp<nn::NegOp>()) {
    product.coefficient = -product.coefficient;
    collect(neg.getX(), stop, product, depth - 1);
  } else if (auto div = value.getDefiningOp<nn::DivOp>()) {
    collect(div.getA(), stop, product, depth - 1);
    if (std::optional<double> divisor = nn::getSplat(div.getB_()))
      product.coefficient /= *divisor;
    else
      product.divisors.push_back(div.getB_());
  } else {
    product.factors.push_back(value);
  }
}

nn::Product nn::takeApart(Value value, Value stop) {
  // No exporter nests one product deeper, and the factors of what is multiplied are of no interest.
  constexpr int deepest = 6;
  Product product;
  collect(value, stop, product, deepest);
  return product;
}

Value nn::peelConstants(Value value, double &coefficient) {
  while (true) {
    std::optional<double> constant;
    if (auto mul = value.getDefiningOp<MulOp>(); mul && (constant = getSplat(mul.getA()))) {
      coefficient *= *constant;
      value = mul.getB_();
    } else if (mul && (constant = getSplat(mul.getB_()))) {
      coefficient *= *constant;
      value = mul.getA();
    } else if (auto div = value.getDefiningOp<DivOp>(); div && (constant = getSplat(div.getB_()))) {
      coefficient /= *constant;
      value = div.getA();
    } else if (auto neg = value.getDefiningOp<NegOp>()) {
      coefficient = -coefficient;
      value = neg.getX();
    } else {
      return value;
    }
  }
}

Value nn::peelAddend(Value value, double &constant) {
  auto add = value.getDefiningOp<AddOp>();
  if (!add)
    return {};
  for (auto [addend, rest] : {std::pair(add.getA(), add.getB_()), std::pair(add.getB_(), add.getA())})
    if (std::optional<double> splat = getSplat(addend)) {
      constant = *splat;
      return rest;
    }
  return {};
}
