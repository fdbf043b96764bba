//===- DeterminantRules.cpp - determinants by elimination -----------------===//
//
// Rule for Det: Gaussian elimination with partial pivoting, written out step by step. The determinant is the product of
// the pivots, and its derivative that of the elimination.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// Elimination takes some twenty ops for each row.
constexpr int64_t largestMatrix = 64;

LogicalResult det(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2))
    return n.reject("square matrices are expected");
  if (x.dim(-1) > largestMatrix)
    return n.refuse("matrices of " + Twine(x.dim(-1)) + " rows; determinants of up to " + Twine(largestMatrix) +
                    " rows are written out");
  Shape result(x.shape().drop_back(2));
  int64_t samples = countOf(result);
  Expr left = nn::reshape(x, {samples, x.dim(-1), x.dim(-1)});
  Expr determinant = n.splat(x.elementType(), {samples}, 1.0);
  for (int64_t m = x.dim(-1); m > 0; --m) {
    auto rows = [&](int64_t from, int64_t count) { return sliceDim(left, 1, from, count); };
    Expr column = nn::reshape(sliceDim(left, 2, 0, 1), {samples, m});
    Expr at = nn::argmax(nn::abs(column), 1, n.builder.getI64Type());
    Expr top = nn::gatherElements(left, nn::broadcast(at, {samples, 1, m}, {0}), 1);
    Expr pivot = nn::reshape(sliceDim(top, 2, 0, 1), {samples});
    determinant = determinant * nn::select(nn::equal(at, 0.0), pivot, -pivot);
    if (m == 1)
      break;
    // The first row goes where the pivot's was; then the column below the pivot is cleared.
    Shape below{samples, m - 1, m}, rest{samples, m - 1, m - 1};
    Expr isPivot = nn::equal(positions(left, below, 1) + 1.0, nn::broadcast(at, below, {0}));
    Expr others = nn::select(isPivot, nn::broadcastTo(rows(0, 1), below), rows(1, m - 1));
    Expr divisor = nn::select(nn::equal(pivot, 0.0), pivot.like(1.0), pivot); // 0: so is the rest of the column
    Expr factors =
        nn::reshape(sliceDim(others, 2, 0, 1), {samples, m - 1}) / nn::broadcast(divisor, {samples, m - 1}, {0});
    Expr head = nn::reshape(sliceDim(top, 2, 1, m - 1), {samples, m - 1});
    left = sliceDim(others, 2, 1, m - 1) - nn::broadcast(factors, rest, {0, 1}) * nn::broadcast(head, rest, {0, 2});
  }
  n.set(0, nn::reshape(determinant, result));
  return success();
}

} // namespace

void lowtide::addDeterminantRules(RuleTable &t) { t.add("Det", det); }
