//===- SelectionRules.cpp - elements that data select ---------------------===//
//
// Rules for operators whose result is as long as data say (Legalize/SelectedRows.h).
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

Expr condition(Expr x) { return isBool(x) ? x : nn::notEqual(x, 0.0); }

void remarkCapacity(NodeView &n, int64_t capacity) {
  emitRemark(n.getLoc()) << "'" << n.op.getOpType() << "' selects up to " << capacity
                         << " rows by data: what is made of them is computed for all of these";
}

/// Places of what is not zero, row-major: known when compiling.
void setKnownPlaces(NodeView &n, ArrayRef<double> elements) {
  Shape places;
  for (auto [flat, element] : llvm::enumerate(elements))
    if (element != 0.0)
      places.push_back(flat);
  SmallVector<Expr> rows;
  for (Expr row : coordinates(n.ints(places), n.in(0).shape()))
    rows.push_back(unsqueeze(row, 0));
  n.set(0, nn::concat(rows, 0));
}

LogicalResult nonZero(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  if (x.rank() == 0)
    return n.refuse("its operand is a single number, of which there is no place");
  DenseElementsAttr value = n.context.selected.has(x) ? DenseElementsAttr() : n.constant(0);
  if (value || countOf(x.shape()) == 0)
    return setKnownPlaces(n, value ? floatsOf(value) : SmallVector<double>()), success();
  // Of rows that data have selected already, those that are there.
  const auto elements = n.context.selected.selectElements(condition(n.context.selected.withZeros(x)));
  remarkCapacity(n, elements.positions.dim(0));
  SmallVector<Expr> rows;
  for (Expr row : n.context.selected.coordinates(elements, x.shape()))
    rows.push_back(unsqueeze(row, 0));
  Expr places = nn::concat(rows, 0);
  n.context.selected.mark(places, *elements.selection, {1, 1, elements.inner});
  n.set(0, places);
  return success();
}

LogicalResult compress(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0), which = n.in(1);
  int64_t dim = 0;
  if (n.hasAttr("axis")) {
    FailureOr<int64_t> axis = n.axis(n.attr("axis", 0), x.rank());
    if (failed(axis))
      return failure();
    dim = *axis;
  } else {
    x = nn::reshape(x, {countOf(x.shape())});
  }
  if (which.rank() != 1 || which.dim(0) > x.dim(dim))
    return n.reject("the condition is one truth value for each slice, and may end early");
  if (n.context.selected.has(x) || n.context.selected.has(which))
    return n.refuse("it selects among rows that data have selected already");
  std::optional<Shape> known = n.constantInts(1);
  if (known || which.dim(0) == 0) {
    Shape places;
    for (auto [i, isTaken] : llvm::enumerate(known.value_or(Shape())))
      if (isTaken)
        places.push_back(i);
    return n.set(0, nn::gather(x, n.ints(places), dim)), success();
  }
  const Selection &selection = n.context.selected.select(condition(which));
  remarkCapacity(n, selection.capacity);
  Expr rows = nn::gather(x, n.wrap(selection.positions), dim);
  n.context.selected.mark(rows, selection, {dim});
  n.set(0, rows);
  return success();
}

} // namespace

void lowtide::addSelectionRules(RuleTable &t) {
  t.add("NonZero", nonZero);
  t.add("Compress", compress);
}
