//===- SampleRules.cpp - reading and writing at places of an image --------===//
//
// Rules for GridSample and Col2Im: both gather or add rows of a flattened image.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/Rules.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

Expr clampTo(Expr x, double low, double high) { return nn::min(nn::max(x, low), high); }

/// Positions outside of an extent, brought back as `padding` says; "zeros" leaves them.
Expr backInside(Expr x, int64_t extent, bool alignCorners, StringRef padding) {
  double last = double(extent - 1);
  if (padding == "border")
    return clampTo(x, 0, last);
  if (padding != "reflection")
    return x;
  // A triangle wave between the first and the last element, or their outer edges.
  double low = alignCorners ? 0 : -0.5, span = alignCorners ? last : double(extent);
  if (span <= 0)
    return x.like(0.0);
  Expr wave = nn::mod(nn::abs(x - low), x.like(2 * span));
  return clampTo(nn::select(nn::greater(wave, span), 2 * span - wave, wave) + low, 0, last);
}

/// One coordinate of the grid, −1 to 1, in elements of an extent.
Expr toElements(Expr at, int64_t extent, bool alignCorners) {
  double size = double(extent);
  return alignCorners ? (at + 1.0) * ((size - 1) / 2) : ((at + 1.0) * size - 1.0) / 2.0;
}

/// Weights of the 4 neighbours around a position with fraction `t`, by cubic convolution (a = −0.75).
std::array<Expr, 4> cubicWeights(Expr t) {
  constexpr double a = -0.75;
  auto near = [&](Expr d) { return ((a + 2) * d - (a + 3)) * d * d + 1.0; };
  auto far = [&](Expr d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
}

/// Neighbours of a position along one dimension, and how much each counts.
struct Taps {
  SmallVector<Expr> positions, weights;
};

Taps tapsOf(Expr x, StringRef mode) {
  if (mode == "nearest")
    return {{nn::round(x)}, {}};
  Expr base = nn::floor(x), t = x - base;
  if (mode == "linear")
    return {{base, base + 1.0}, {1.0 - t, t}};
  std::array<Expr, 4> weights = cubicWeights(t);
  return {{base - 1.0, base, base + 1.0, base + 2.0}, SmallVector<Expr>(weights.begin(), weights.end())};
}

/// Samples [N, C, d…] at [N, o…, r]: rows of the flattened image, one for each neighbour, weighted and added.
class GridSampler {
public:
  GridSampler(Expr image, Expr grid, StringRef padding, bool alignCorners)
      : image(image), grid(grid), padding(padding), alignCorners(alignCorners), rank(image.rank() - 2) {
    SmallVector<int64_t> channelsLast{0};
    for (int64_t d = 2; d < image.rank(); ++d)
      channelsLast.push_back(d);
    channelsLast.push_back(1);
    int64_t rows = image.dim(0) * countOf(image.shape().drop_front(2));
    table = nn::reshape(nn::transpose(image, channelsLast), {rows, image.dim(1)});
    points = Shape(grid.shape().drop_back());
  }

  Expr sample(StringRef mode) {
    for (int64_t d = 0; d < rank; ++d) {
      // The grid counts dimensions from the last one.
      Expr at = nn::reshape(sliceDim(grid, grid.rank() - 1, rank - 1 - d, 1), points);
      Expr x = toElements(at, image.dim(d + 2), alignCorners);
      // The neighbours of a cubic are brought back one by one.
      if (mode != "cubic")
        x = backInside(x, image.dim(d + 2), alignCorners, padding);
      taps.push_back(tapsOf(x, mode));
      if (mode == "cubic")
        for (Expr &position : taps.back().positions)
          position = backInside(position, image.dim(d + 2), alignCorners, padding);
    }
    Expr sampleNumber = positions(taps.front().positions.front(), points, 0);
    add(0, sampleNumber, Expr(), Expr());
    Shape channelsFirst{0, grid.rank() - 1};
    for (int64_t d = 1; d < grid.rank() - 1; ++d)
      channelsFirst.push_back(d);
    return nn::transpose(total, channelsFirst);
  }

private:
  /// All combinations of neighbours from dimension `d` on, given the row so far, the product of weights and whether
  /// all positions are inside.
  void add(int64_t d, Expr row, Expr weight, Expr inside) {
    if (d == rank) {
      Expr value = nn::gather(table, row, 0);
      Expr factor = weight;
      if (inside) {
        Expr mask = nn::cast(inside, value.elementType());
        factor = factor ? factor * mask : mask;
      }
      if (factor)
        value = value * nn::broadcastTo(unsqueeze(factor, factor.rank()), value.shape());
      total = total ? total + value : value;
      return;
    }
    int64_t extent = image.dim(d + 2);
    for (auto [i, position] : llvm::enumerate(taps[d].positions)) {
      Expr fits = nn::logicalAnd(nn::greaterEqual(position, 0.0), nn::lessEqual(position, double(extent - 1)));
      Expr element = nn::cast(clampTo(position, 0, double(extent - 1)), image.getBuilder().getI64Type());
      Expr counted = taps[d].weights.empty() ? weight : weight ? weight * taps[d].weights[i] : taps[d].weights[i];
      add(d + 1, row * double(extent) + element, counted, inside ? nn::logicalAnd(inside, fits) : fits);
    }
  }

  Expr image, grid, table, total;
  StringRef padding;
  bool alignCorners;
  int64_t rank;
  Shape points;
  SmallVector<Taps> taps;
};

LogicalResult gridSample(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr image = n.in(0), grid = n.in(1);
  std::string mode = n.attrString("mode", "linear"), padding = n.attrString("padding_mode", "zeros");
  mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  if (image.rank() < 3 || grid.rank() != image.rank() || grid.dim(-1) != image.rank() - 2 ||
      grid.dim(0) != image.dim(0) || !isFloat(image) || !isFloat(grid) || image.type().getNumElements() == 0)
    return n.reject("an image [N, C, d…] and a grid [N, o…, number of d] of floats are expected");
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    return n.reject("mode '" + mode + "'; there are linear, nearest and cubic");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return n.reject("padding '" + padding + "'; there are zeros, border and reflection");
  grid = nn::cast(grid, image.elementType());
  n.set(0, GridSampler(image, grid, padding, n.attr("align_corners", 0)).sample(mode));
  return success();
}

/// Adds the columns [N, C · k…, L] of sliding windows into an image [N, C, d…].
LogicalResult col2Im(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr x = n.in(0);
  FailureOr<Shape> image = n.knownInts(1, "the shape of the image"), block = n.knownInts(2, "the shape of the block");
  if (failed(image) || failed(block))
    return failure();
  size_t rank = image->size();
  Shape dilations = n.attrInts("dilations", Shape(rank, 1)), strides = n.attrInts("strides", Shape(rank, 1)),
        pads = n.attrInts("pads", Shape(2 * rank, 0));
  bool positive = true;
  for (ArrayRef<int64_t> list : {ArrayRef(*image), ArrayRef(*block), ArrayRef(dilations), ArrayRef(strides)})
    positive &= list.size() == rank && llvm::all_of(list, [](int64_t v) { return v >= 1; });
  if (!positive || pads.size() != 2 * rank || llvm::any_of(pads, [](int64_t v) { return v < 0; }) || x.rank() != 3)
    return n.reject("columns [N, C · block, L] and one block, dilation, stride and pair of pads for each dimension are "
                    "expected");
  int64_t elements = countOf(*block), blocks = 1;
  Shape steps, padded;
  for (size_t d = 0; d < rank; ++d) {
    padded.push_back((*image)[d] + pads[d] + pads[d + rank]);
    steps.push_back((padded[d] - dilations[d] * ((*block)[d] - 1) - 1) / strides[d] + 1);
    blocks *= steps[d];
  }
  if (elements < 1 || x.dim(1) % elements || x.dim(2) != blocks || countOf(padded) < 1)
    return n.reject("the columns do not fit image and block");
  // Where element e of block l lies in the padded image.
  Shape where;
  for (int64_t e = 0; e < elements; ++e)
    for (int64_t l = 0; l < blocks; ++l) {
      int64_t inBlock = e, atBlock = l, at = 0, scale = 1;
      for (size_t d = rank; d-- > 0;) {
        at += scale * (inBlock % (*block)[d] * dilations[d] + atBlock % steps[d] * strides[d]);
        inBlock /= (*block)[d];
        atBlock /= steps[d];
        scale *= padded[d];
      }
      where.push_back(at);
    }
  int64_t channels = x.dim(1) / elements, rows = x.dim(0) * channels;
  Expr sums = nn::scatterAdd(n.ints(where), nn::reshape(x, {rows, elements * blocks}), {rows, countOf(padded)}, 1);
  Shape shape{x.dim(0), channels}, offset{0, 0}, size{x.dim(0), channels};
  shape.append(padded);
  offset.append(pads.begin(), pads.begin() + rank);
  size.append(*image);
  Expr whole = nn::reshape(sums, shape);
  n.set(0, size == shape ? whole : nn::slice(whole, offset, size));
  return success();
}

} // namespace

void lowtide::addSampleRules(RuleTable &t) {
  t.add("GridSample", gridSample);
  t.add("Col2Im", col2Im);
}
