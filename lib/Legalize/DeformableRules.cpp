//===- DeformableRules.cpp - convolution at places that data decide -------===//
//
// Rule for DeformConv (Zhu et al., Deformable ConvNets v2): elements are gathered at the shifted places of each tap of
// the kernel, and multiplied with the weights.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"
#include "lowtide/Legalize/Window.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// Numbers `start + i · step` along `dim` of `shape`.
Expr ramp(NodeView &n, Type element, ArrayRef<int64_t> shape, int64_t dim, int64_t step, int64_t start) {
  Expr number = nn::iota(n.builder, n.getLoc(), RankedTensorType::get(shape, n.builder.getI64Type()), dim);
  return nn::cast(number, element) * double(step) + double(start);
}

/// Places along one dimension: the elements around each, and how much each counts; outside of the image nothing.
struct Neighbours {
  std::array<Expr, 2> elements, weights;
};

Neighbours neighboursOf(NodeView &n, Expr y, int64_t extent) {
  Expr low = nn::floor(y), fraction = y - low;
  Neighbours result;
  for (int64_t i : {0, 1}) {
    Expr at = low + double(i);
    Expr inside = nn::logicalAnd(nn::greaterEqual(at, 0.0), nn::lessEqual(at, double(extent - 1)));
    Expr weight = i ? fraction : 1.0 - fraction;
    result.weights[i] = weight * nn::cast(inside, y.elementType());
    result.elements[i] = nn::cast(nn::min(nn::max(at, 0.0), double(extent - 1)), n.builder.getI64Type());
  }
  return result;
}

LogicalResult deformConv(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr x = n.in(0), filter = n.in(1), offset = n.in(2);
  if (x.rank() != 4 || filter.rank() != 4 || offset.rank() != 4)
    return n.refuse("other than two spatial dimensions");
  FailureOr<Window> w = readWindow(n, x.shape().drop_front(2), filter.shape().drop_front(2));
  if (failed(w))
    return failure();
  int64_t samples = x.dim(0), channels = x.dim(1), height = w->output[0], width = w->output[1];
  int64_t groups = n.attr("group", 1), parts = n.attr("offset_group", 1);
  int64_t taps = filter.dim(2) * filter.dim(3), outputs = filter.dim(0);
  if (groups < 1 || parts < 1 || channels % groups || channels % parts || outputs % groups ||
      filter.dim(1) != channels / groups ||
      offset.shape() != ArrayRef<int64_t>{samples, parts * taps * 2, height, width})
    return n.reject("operand, weights, offsets and groups do not fit together");
  Shape grid{samples, parts, taps, height, width}, kernelGrid{filter.dim(2), filter.dim(3)};
  Expr shifts = nn::reshape(offset, {samples, parts, taps, 2, height, width});
  auto placesAlong = [&](int64_t d) {
    Expr shift = nn::reshape(sliceDim(shifts, 3, d, 1), grid);
    Expr tap = nn::reshape(ramp(n, x.elementType(), kernelGrid, d, w->dilations[d], -w->padsBegin[d]), {taps});
    Expr window = ramp(n, x.elementType(), grid, d + 3, w->strides[d], 0);
    return neighboursOf(n, shift + nn::broadcast(tap, grid, {2}) + window, x.dim(d + 2));
  };
  Neighbours down = placesAlong(0), across = placesAlong(1);

  // Rows of the table are pixels of one part of one sample.
  int64_t inPart = channels / parts;
  Expr table = nn::transpose(nn::reshape(x, {samples, parts, inPart, x.dim(2), x.dim(3)}), {0, 1, 3, 4, 2});
  table = nn::reshape(table, {samples * parts * x.dim(2) * x.dim(3), inPart});
  Expr image = positions(down.elements[0], grid, 0) * double(parts) + positions(down.elements[0], grid, 1);
  Shape values(grid);
  values.push_back(inPart);
  Expr columns;
  for (int64_t i : {0, 1})
    for (int64_t j : {0, 1}) {
      Expr row = (image * double(x.dim(2)) + down.elements[i]) * double(x.dim(3)) + across.elements[j];
      Expr weight = down.weights[i] * across.weights[j];
      Expr value = nn::gather(table, row, 0) * nn::broadcast(weight, values, {0, 1, 2, 3, 4});
      columns = columns ? columns + value : value;
    }
  if (n.has(4)) {
    if (n.in(4).shape() != ArrayRef<int64_t>{samples, parts * taps, height, width})
      return n.reject("the mask does not fit the offsets");
    columns = columns * nn::broadcast(nn::reshape(n.in(4), grid), values, {0, 1, 2, 3, 4});
  }
  // [samples, parts, taps, height, width, inPart] → [groups, channels of a group · taps, samples · height · width].
  columns = nn::reshape(nn::transpose(columns, {1, 5, 2, 0, 3, 4}),
                        {groups, channels / groups * taps, samples * height * width});
  Expr y = nn::dot(nn::reshape(filter, {groups, outputs / groups, channels / groups * taps}), columns);
  y = nn::transpose(nn::reshape(y, {outputs, samples, height, width}), {1, 0, 2, 3});
  n.set(0, n.has(3) ? addChannelBias(y, n.in(3)) : y);
  return success();
}

} // namespace

void lowtide::addDeformableRules(RuleTable &t) { t.add("DeformConv", deformConv); }
