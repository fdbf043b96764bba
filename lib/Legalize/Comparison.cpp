//===- Comparison.cpp - comparison, logic, bits, choice -------------------===//
//
// Rules whose results are booleans or bit patterns.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

template <Expr (*F)(Expr, Expr)> LogicalResult binary(NodeView &n) {
  FailureOr<SmallVector<Expr>> list = unifiedOperands(n, 2);
  if (failed(list))
    return failure();
  if (list->size() != 2 || (*list)[0].elementType() != (*list)[1].elementType())
    return n.reject("two operands of one type are expected");
  n.set(0, F((*list)[0], (*list)[1]));
  return success();
}

Expr isEqual(Expr a, Expr b) { return nn::equal(a, b); }
Expr isLess(Expr a, Expr b) { return nn::less(a, b); }
Expr isGreater(Expr a, Expr b) { return nn::greater(a, b); }
Expr lessOrEqual(Expr a, Expr b) { return nn::lessEqual(a, b); }
Expr greaterOrEqual(Expr a, Expr b) { return nn::greaterEqual(a, b); }

LogicalResult complement(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  n.set(0, nn::logicalNot(n.in(0)));
  return success();
}

LogicalResult bitShift(NodeView &n) {
  FailureOr<SmallVector<Expr>> list = unifiedOperands(n, 2);
  if (failed(list))
    return failure();
  std::string direction = n.attrString("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.reject("attribute 'direction' must be LEFT or RIGHT");
  Expr x = (*list)[0], by = (*list)[1];
  if (direction == "LEFT") {
    n.set(0, nn::shiftLeft(x, by));
  } else if (x.elementType().isUnsignedInteger()) {
    n.set(0, nn::shiftRight(x, by));
  } else { // copies of the sign come in: those of a negative number are the zeros of its complement
    Expr negative = nn::less(x, 0.0), bits = nn::shiftRight(nn::select(negative, nn::logicalNot(x), x), by);
    n.set(0, nn::select(negative, nn::logicalNot(bits), bits));
  }
  return success();
}

LogicalResult isNaN(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  n.set(0, nn::isNaN(n.in(0)));
  return success();
}

LogicalResult isInf(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0), infinite = nn::isInf(x);
  if (!n.attr("detect_negative", 1))
    infinite = nn::logicalAnd(infinite, nn::greater(x, x.like(0.0)));
  if (!n.attr("detect_positive", 1))
    infinite = nn::logicalAnd(infinite, nn::less(x, x.like(0.0)));
  n.set(0, infinite);
  return success();
}

LogicalResult where(NodeView &n) {
  FailureOr<SmallVector<Expr>> list = unifiedOperands(n, 3);
  if (failed(list))
    return failure();
  if ((*list)[1].elementType() != (*list)[2].elementType() || !isBool((*list)[0]))
    return n.reject("a boolean condition and two operands of one type are expected");
  n.set(0, nn::select((*list)[0], (*list)[1], (*list)[2]));
  return success();
}

} // namespace

void lowtide::addComparisonRules(RuleTable &t) {
  t.add("Equal", binary<isEqual>);
  t.add("Less", binary<isLess>);
  t.add("LessOrEqual", binary<lessOrEqual>);
  t.add("Greater", binary<isGreater>);
  t.add("GreaterOrEqual", binary<greaterOrEqual>);
  for (StringRef prefix : {"", "Bitwise"}) {
    t.add((prefix + "And").str(), binary<nn::logicalAnd>);
    t.add((prefix + "Or").str(), binary<nn::logicalOr>);
    t.add((prefix + "Xor").str(), binary<nn::logicalXor>);
    t.add((prefix + "Not").str(), complement);
  }
  t.add("BitShift", bitShift);
  t.add("IsNaN", isNaN);
  t.add("IsInf", isInf);
  t.add("Where", where);
}
