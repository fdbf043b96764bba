//===- RegionRules.cpp - regions of an image, and pools turned back -------===//
//
// Rules for RoiAlign, which samples between elements of regions (He et al., Mask R-CNN), and MaxUnpool.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// Places along one dimension of an image, [regions, places]: the two elements around each and how much they count.
struct Places {
  std::array<Expr, 2> elements, weights;
};

/// `count` places between `from` and `to` [regions, 1] of an extent; what lies outside of the image counts nothing.
Places placesBetween(NodeView &n, Expr from, Expr to, int64_t count, int64_t extent, bool wide) {
  Shape shape{from.dim(0), count};
  Expr size = to - from;
  if (wide) // regions of less than one element are one
    size = nn::max(size, 1.0);
  Expr number = nn::cast(nn::iota(n.builder, n.getLoc(), RankedTensorType::get(shape, n.builder.getI64Type()), 1),
                         from.elementType());
  Expr y = nn::broadcastTo(from, shape) + nn::broadcastTo(size, shape) * ((number + 0.5) / double(count));
  Expr inside = nn::cast(nn::logicalAnd(nn::greaterEqual(y, -1.0), nn::lessEqual(y, double(extent))), y.elementType());
  double last = double(extent - 1);
  y = nn::min(nn::max(y, 0.0), last);
  Expr low = nn::floor(y), fraction = y - low;
  auto element = [&](Expr at) { return nn::cast(at, n.builder.getI64Type()); };
  return {{element(low), element(nn::min(low + 1.0, last))}, {(1.0 - fraction) * inside, fraction * inside}};
}

LogicalResult roiAlign(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr x = n.in(0), regions = n.in(1), samples = n.in(2);
  if (x.rank() != 4 || regions.rank() != 2 || regions.dim(1) != 4 || samples.rank() != 1 ||
      samples.dim(0) != regions.dim(0))
    return n.reject("an image [N, C, H, W], regions [R, 4] and their samples [R] are expected");
  std::string mode = n.attrString("mode", "avg");
  if (mode != "avg" && mode != "max")
    return n.reject("mode '" + mode + "'; there are avg and max");
  bool shifted = n.version() >= 16 && n.attrString("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  int64_t taps = n.attr("sampling_ratio", 0), height = n.attr("output_height", 1), width = n.attr("output_width", 1);
  if (taps < 1)
    return n.refuse("a sampling ratio that depends on the size of the region; state sampling_ratio");
  if (height < 1 || width < 1 || taps > 64 || height > 4096 || width > 4096)
    return n.reject("output_height, output_width or sampling_ratio is out of range");
  double scale = n.attrFloat("spatial_scale", 1.0);
  auto corner = [&](int64_t i) { return sliceDim(regions, 1, i, 1) * scale - (shifted ? 0.5 : 0.0); };
  Places across = placesBetween(n, corner(0), corner(2), width * taps, x.dim(3), !shifted);
  Places down = placesBetween(n, corner(1), corner(3), height * taps, x.dim(2), !shifted);

  int64_t count = regions.dim(0), channels = x.dim(1);
  Shape grid{count, height * taps, width * taps}, values(grid);
  values.push_back(channels);
  Expr table = nn::reshape(nn::transpose(x, {0, 2, 3, 1}), {x.dim(0) * x.dim(2) * x.dim(3), channels});
  Expr sample = nn::broadcast(fromFront(samples, x.dim(0)), grid, {0});
  Expr total;
  for (int64_t i : {0, 1})
    for (int64_t j : {0, 1}) {
      Expr row = (sample * double(x.dim(2)) + nn::broadcast(down.elements[i], grid, {0, 1})) * double(x.dim(3)) +
                 nn::broadcast(across.elements[j], grid, {0, 2});
      Expr weight = nn::broadcast(down.weights[i], grid, {0, 1}) * nn::broadcast(across.weights[j], grid, {0, 2});
      Expr value = nn::gather(table, row, 0) * nn::broadcast(weight, values, {0, 1, 2});
      total = !total ? value : mode == "max" ? nn::max(total, value) : total + value;
    }
  total = nn::reshape(total, {count, height, taps, width, taps, channels});
  total = mode == "max" ? nn::maximum(total, {2, 4}) : nn::mean(total, {2, 4});
  n.set(0, nn::transpose(total, {0, 3, 1, 2}));
  return success();
}

/// Each element at the place that its pool took it from, zeros elsewhere.
LogicalResult maxUnpool(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0), indices = n.in(1);
  int64_t spatial = x.rank() - 2;
  Shape kernel = n.attrInts("kernel_shape"), strides = n.attrInts("strides", Shape(std::max<int64_t>(spatial, 0), 1)),
        pads = n.attrInts("pads", Shape(std::max<int64_t>(2 * spatial, 0), 0)), shape(x.shape());
  if (spatial < 1 || indices.shape() != x.shape() || int64_t(kernel.size()) != spatial ||
      int64_t(strides.size()) != spatial || int64_t(pads.size()) != 2 * spatial)
    return n.reject("operand, indices, kernel, strides and pads do not fit together");
  for (int64_t d = 0; d < spatial; ++d) {
    shape[d + 2] = (x.dim(d + 2) - 1) * strides[d] + kernel[d] - pads[d] - pads[d + spatial];
    if (kernel[d] < 1 || strides[d] < 1 || shape[d + 2] < 1)
      return n.reject("kernel, strides and pads leave nothing");
  }
  int64_t elements = countOf(shape), read = countOf(x.shape());
  if (elements < 0)
    return n.reject("the result is too large");
  Expr y = nn::scatterAdd(nn::reshape(fromFront(indices, elements), {read}), nn::reshape(x, {read}), {elements}, 0);
  y = nn::reshape(y, shape);
  if (n.has(2)) {
    std::optional<Shape> wanted = n.constantInts(2);
    if (!wanted || int64_t(wanted->size()) != x.rank())
      return n.refuse("a shape that is computed from data; it must be known when compiling");
    Shape low(x.rank(), 0), high;
    for (auto [want, have] : llvm::zip(*wanted, shape)) {
      if (want < have)
        return n.refuse("an output shape below the one that kernel and strides give");
      high.push_back(want - have);
    }
    y = nn::pad(y, low, high);
  }
  n.set(0, y);
  return success();
}

} // namespace

void lowtide::addRegionRules(RuleTable &t) {
  t.add("RoiAlign", roiAlign);
  t.add("MaxUnpool", maxUnpool);
}
