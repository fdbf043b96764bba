//===- PadRules.cpp - padding and cropping --------------------------------===//
//
// Rules that put elements around a tensor, or take them away.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

/// Padding by gathering: index of the source element for each element of the padded dimension.
Shape paddedIndices(int64_t extent, int64_t before, int64_t after, StringRef mode) {
  Shape indices;
  for (int64_t i = -before; i < extent + after; ++i) {
    int64_t j = i;
    if (mode == "edge") {
      j = std::clamp<int64_t>(i, 0, extent - 1);
    } else if (mode == "wrap") {
      j = ((i % extent) + extent) % extent;
    } else { // reflect
      int64_t period = std::max<int64_t>(1, 2 * (extent - 1));
      j = ((i % period) + period) % period;
      if (j >= extent)
        j = period - j;
    }
    indices.push_back(j);
  }
  return indices;
}

LogicalResult pad(NodeView &n) {
  if (failed(n.need(1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<std::optional<Shape>> pads = n.attrOrInput("pads", 1);
  if (failed(pads))
    return failure();
  if (!*pads)
    return n.reject("the pads are missing");
  FailureOr<std::optional<Shape>> given = n.axesOrInput(3, x.rank());
  if (failed(given))
    return failure();
  Shape axes = *given ? **given : llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
  if ((*pads)->size() != 2 * axes.size())
    return n.reject("two pads for each axis are expected");
  Shape low(x.rank(), 0), high(x.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    low[axes[i]] = (**pads)[i];
    high[axes[i]] = (**pads)[i + axes.size()];
  }
  // Negative pads remove elements.
  Shape offset(x.rank(), 0), size(x.shape()), ones(x.rank(), 1);
  bool crops = false;
  for (int64_t d = 0; d < x.rank(); ++d) {
    offset[d] = std::max<int64_t>(0, -low[d]);
    size[d] = x.dim(d) - offset[d] - std::max<int64_t>(0, -high[d]);
    crops |= size[d] != x.dim(d);
    low[d] = std::max<int64_t>(0, low[d]);
    high[d] = std::max<int64_t>(0, high[d]);
    if (size[d] < 0)
      return n.reject("the pads remove more than there is");
  }
  if (crops)
    x = nn::slice(x, offset, size, ones);
  std::string mode = n.attrString("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return n.refuse("mode '" + mode + "'");
  if (mode != "constant") {
    for (int64_t d = 0; d < x.rank(); ++d) {
      if (!low[d] && !high[d])
        continue;
      if (x.dim(d) == 0)
        return n.reject("an empty dimension cannot be extended");
      x = nn::gather(x, n.ints(paddedIndices(x.dim(d), low[d], high[d], mode)), d);
    }
    n.set(0, x);
    return success();
  }
  if (n.has(2) && !n.constant(2))
    return n.refuse("the value to pad with is computed from data");
  double value =
      n.has(2) && n.constant(2).getNumElements() ? floatsOf(n.constant(2)).front() : n.attrFloat("value", 0.0);
  n.set(0, nn::pad(x, low, high, {}, value));
  return success();
}

/// Cuts or pads with zeros to a shape, the same on both sides; an odd element goes after.
LogicalResult centerCropPad(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  FailureOr<Shape> shape = n.knownInts(1, "the shape");
  if (failed(shape))
    return failure();
  FailureOr<Shape> axes = n.axes(n.attrInts("axes", llvm::to_vector(llvm::seq<int64_t>(0, x.rank()))), x.rank());
  if (failed(axes))
    return failure();
  if (axes->size() != shape->size())
    return n.reject("one extent for each axis is expected");
  Shape start(x.rank(), 0), size(x.shape()), low(x.rank(), 0), high(x.rank(), 0);
  for (auto [axis, wanted] : llvm::zip(*axes, *shape)) {
    int64_t more = wanted - x.dim(axis);
    if (wanted < 0)
      return n.reject("an extent of " + Twine(wanted));
    if (more < 0) {
      start[axis] = -more / 2;
      size[axis] = wanted;
    } else {
      low[axis] = more / 2;
      high[axis] = more - more / 2;
    }
  }
  n.set(0, nn::pad(nn::slice(x, start, size), low, high));
  return success();
}

} // namespace

void lowtide::addPadRules(RuleTable &t) {
  t.add("Pad", pad);
  t.add("CenterCropPad", centerCropPad);
}
