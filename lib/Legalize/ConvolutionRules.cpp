//===- ConvolutionRules.cpp - convolutions --------------------------------===//
//
// Rules for Conv and ConvTranspose.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Legalize/Rules.h"
#include "lowtide/Legalize/Window.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

namespace {

LogicalResult checkOperands(NodeView &n, Expr x, Expr filter) {
  if (x.rank() < 3 || filter.rank() != x.rank() || !isa<FloatType>(x.elementType()) ||
      filter.elementType() != x.elementType())
    return n.reject("float operands [N, C, d…] and [O, C/groups, k…] are expected");
  if (x.rank() > 5)
    return n.refuse("more than three spatial dimensions");
  Shape kernel = n.attrInts("kernel_shape", filter.shape().drop_front(2));
  if (ArrayRef<int64_t>(kernel) != filter.shape().drop_front(2))
    return n.reject("'kernel_shape' contradicts the filter");
  return success();
}

/// Sets the node's result to `y` and its bias, operand 2.
LogicalResult setWithBias(NodeView &n, Expr y) {
  if (n.has(2)) {
    Expr bias = n.in(2);
    // PyTorch's current exporter writes zeros [O, 2] for convolutions of volumes that have no bias.
    const auto numbers = bias.rank() == 1 ? std::nullopt : n.constantFloats(2);
    const bool isNothing = numbers && llvm::all_of(*numbers, [](double number) { return number == 0; });
    if (!isNothing && (bias.rank() != 1 || bias.dim(0) != y.dim(1) || bias.elementType() != y.elementType()))
      return n.reject("the bias [O] does not fit " + Twine(y.dim(1)) + " channels");
    y = isNothing ? y : addChannelBias(y, bias);
  }
  n.set(0, y);
  return success();
}

LogicalResult conv(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  FailureOr<Expr> y = convolve(n, n.in(0), n.in(1));
  if (failed(y))
    return failure();
  return setWithBias(n, *y);
}

LogicalResult convTranspose(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0), filter = n.in(1);
  if (failed(checkOperands(n, x, filter)))
    return failure();
  int64_t groups = n.attr("group", 1);
  if (groups < 1 || filter.dim(0) != x.dim(1) || x.dim(1) % groups)
    return n.reject("the filter [C, O/groups, k…] does not fit " + Twine(x.dim(1)) + " channels in " + Twine(groups) +
                    " groups");
  size_t rank = x.rank() - 2;
  Shape kernel(filter.shape().drop_front(2)),
      strides = n.attrInts("strides", Shape(rank, 1)), dilations = n.attrInts("dilations", Shape(rank, 1)),
      pads = n.attrInts("pads", Shape(2 * rank, 0)), extra = n.attrInts("output_padding", Shape(rank, 0)),
      wanted = n.attrInts("output_shape");
  if (strides.size() != rank || dilations.size() != rank || pads.size() != 2 * rank || extra.size() != rank ||
      (!wanted.empty() && wanted.size() != rank && wanted.size() != rank + 2))
    return n.reject("attributes do not fit " + Twine(rank) + " spatial dimensions");
  if (wanted.size() == rank + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  std::string mode = n.attrString("auto_pad", "NOTSET");
  Shape begin(pads.begin(), pads.begin() + rank), end(pads.begin() + rank, pads.end());
  Shape shape{x.dim(0), filter.dim(1) * groups}, tail(rank, 0);
  bool padsTail = false;
  for (size_t i = 0; i < rank; ++i) {
    int64_t s = strides[i], extent = dilations[i] * (kernel[i] - 1) + 1, d = x.dim(i + 2);
    if (s < 1 || dilations[i] < 1 || extra[i] < 0 || std::max({s, extent, d}) > (int64_t(1) << 30))
      return n.reject("strides, dilations or output padding are out of range");
    int64_t full = s * (d - 1) + extra[i] + extent;
    bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (!wanted.empty() || same) {
      int64_t target = wanted.empty() ? d * s : wanted[i];
      int64_t total = std::max<int64_t>(0, full - target);
      extra[i] += std::max<int64_t>(0, target - full);
      begin[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      end[i] = total - begin[i];
      full = s * (d - 1) + extra[i] + extent;
    } else if (mode == "VALID") {
      begin[i] = end[i] = 0;
    }
    // Output padding beyond the stride is more than a convolution can look back to: zeros are put after them.
    int64_t out = full - begin[i] - end[i];
    tail[i] = extra[i] >= s ? extra[i] - (s - 1) : 0;
    padsTail |= tail[i] > 0;
    if (out - tail[i] < 1 || begin[i] < 0 || end[i] < 0)
      return n.reject("the result has extent " + Twine(out) + " in spatial dimension " + Twine(i));
    shape.push_back(out - tail[i]);
  }
  auto type = RankedTensorType::get(shape, x.elementType());
  Expr y = n.wrap(
      nn::ConvInputGradOp::create(n.builder, n.getLoc(), type, x, filter, strides, begin, end, dilations, groups));
  if (padsTail) {
    Shape high{0, 0};
    high.append(tail);
    y = nn::pad(y, Shape(high.size(), 0), high);
  }
  return setWithBias(n, y);
}

} // namespace

FailureOr<Expr> lowtide::convolve(NodeView &n, Expr x, Expr filter) {
  if (failed(checkOperands(n, x, filter)))
    return failure();
  int64_t groups = n.attr("group", 1);
  if (groups < 1 || x.dim(1) % groups || filter.dim(1) != x.dim(1) / groups || filter.dim(0) % groups) {
    (void)n.reject(Twine(x.dim(1)) + " channels in " + Twine(groups) + " groups do not fit a filter with " +
                   Twine(filter.dim(1)));
    return failure();
  }
  FailureOr<Window> w = readWindow(n, x.shape().drop_front(2), filter.shape().drop_front(2));
  if (failed(w))
    return failure();
  Shape shape{x.dim(0), filter.dim(0)};
  shape.append(w->output);
  auto type = RankedTensorType::get(shape, x.elementType());
  return n.wrap(nn::ConvOp::create(n.builder, n.getLoc(), type, x, filter, w->strides, w->padsBegin, w->padsEnd,
                                   w->dilations, groups));
}

void lowtide::addConvolutionRules(RuleTable &t) {
  t.add("Conv", conv);
  t.add("ConvTranspose", convTranspose);
}
