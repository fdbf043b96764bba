//===- PoolIndices.cpp - where the maxima of a pool lie -------------------===//
//
// The second result of MaxPool, tap by tap: each window's first largest element wins.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Window.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

/// Number of each element of `x` in row-major order (within an image: column-major, if `columns`).
static Expr numberElements(NodeView &n, Expr x, bool columns) {
  auto type = x.type().clone(n.builder.getI64Type());
  Shape strides(x.rank(), 1);
  int64_t image = 1;
  for (int64_t i = 2; i < x.rank(); ++i) {
    int64_t dim = columns ? i : x.rank() + 1 - i;
    strides[dim] = image;
    image *= x.dim(dim);
  }
  strides[1] = image;
  strides[0] = image * x.dim(1);
  Expr number;
  for (int64_t dim = 0; dim < x.rank(); ++dim) {
    Expr part = nn::iota(n.builder, n.getLoc(), type, dim) * static_cast<double>(strides[dim]);
    number = number ? number + part : part;
  }
  return number;
}

Expr lowtide::poolIndices(NodeView &n, Expr x, const Window &w, bool columns) {
  Shape low{0, 0}, high{0, 0}, sizes{x.dim(0), x.dim(1)}, strides{1, 1};
  low.append(w.padsBegin);
  for (auto [pad, excess] : llvm::zip(w.padsEnd, w.excess))
    high.push_back(pad + excess);
  sizes.append(w.output);
  strides.append(w.strides);
  // Padding never wins: it is smaller than what the element type holds, or ties after a smaller number.
  Expr number = numberElements(n, x, columns);
  if (!isa<FloatType>(x.elementType()))
    x = nn::cast(x, n.builder.getF64Type());
  Expr values = nn::pad(x, low, high, {}, -std::numeric_limits<double>::infinity());
  Expr numbers = nn::pad(number, low, high, {}, 0.0);
  Shape tap(w.kernel.size(), 0);
  Expr best, where;
  while (true) {
    Shape starts{0, 0};
    for (auto [at, dilation] : llvm::zip(tap, w.dilations))
      starts.push_back(at * dilation);
    Expr value = nn::slice(values, starts, sizes, strides), place = nn::slice(numbers, starts, sizes, strides);
    where = best ? nn::select(nn::greater(value, best), place, where) : place;
    best = best ? nn::max(value, best) : value;
    int64_t dim = static_cast<int64_t>(tap.size()) - 1;
    while (dim >= 0 && ++tap[dim] == w.kernel[dim])
      tap[dim--] = 0;
    if (dim < 0)
      return where;
  }
}
