//===- ContribImages.cpp - onnxruntime's fused parts of diffusion models --===//
//
// Rules for com.microsoft's operators on images with channels last, and for what it fuses around them.
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

/// [N, d…, C] → [N, C, d…], or back.
Expr moveChannels(Expr x, bool toFront) {
  Shape permutation = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
  if (toFront)
    std::rotate(permutation.begin() + 1, permutation.end() - 1, permutation.end());
  else
    std::rotate(permutation.begin() + 1, permutation.begin() + 2, permutation.end());
  return nn::transpose(x, permutation);
}

/// Image and filter have their channels last.
LogicalResult nhwcConv(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  if (n.in(0).rank() < 3 || n.in(1).rank() != n.in(0).rank())
    return n.reject("operands [N, d…, C] and [O, k…, C/groups] are expected");
  FailureOr<Expr> y = convolve(n, moveChannels(n.in(0), true), moveChannels(n.in(1), true));
  if (failed(y))
    return failure();
  n.set(0, moveChannels(n.has(2) ? addChannelBias(*y, n.in(2)) : *y, false));
  return success();
}

/// Group norm of a sum of an image, a skipped one and a bias; the sum is result 1. The activation is SiLU, if any.
LogicalResult normalizeGroups(NodeView &n, Expr x) {
  bool last = n.attr("channels_last", 1) != 0;
  int64_t groups = n.attr("groups", 0), activation = n.attr("activation", 0);
  if (x.rank() < 3 || activation < 0 || activation > 1)
    return n.reject("an image and activation 0 or 1 are expected");
  Expr image = last ? moveChannels(x, true) : x;
  Shape channels{image.dim(1)};
  if (groups < 1 || channels[0] % groups || n.in(1).shape() != ArrayRef<int64_t>(channels) ||
      n.in(2).shape() != ArrayRef<int64_t>(channels))
    return n.reject(Twine(channels[0]) + " channels do not fit groups, scale and bias");
  Type wide = n.in(1).elementType();
  Expr y = groupNormalize(nn::cast(image, wide), n.in(1), n.in(2), groups, n.attrFloat("epsilon", 1e-5), wide);
  if (activation)
    y = y * nn::sigmoid(y);
  y = nn::cast(y, x.elementType());
  n.set(0, last ? moveChannels(y, false) : y);
  return success();
}

LogicalResult groupNorm(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  return normalizeGroups(n, n.in(0));
}

LogicalResult skipGroupNorm(NodeView &n) {
  if (failed(n.need(4)))
    return failure();
  Expr x = n.in(0), skip = n.in(3);
  bool last = n.attr("channels_last", 1) != 0;
  // [N, C] is spread over the image.
  if (skip.rank() == 2 && x.rank() == 4)
    skip = nn::reshape(skip, last ? Shape{skip.dim(0), 1, 1, skip.dim(1)} : Shape{skip.dim(0), skip.dim(1), 1, 1});
  FailureOr<Shape> common = broadcastShapes(x.shape(), skip.shape());
  if (failed(common) || ArrayRef<int64_t>(*common) != x.shape())
    return n.reject("what is skipped does not broadcast to the image");
  Expr sum = x + nn::broadcastTo(skip, x.shape());
  if (n.has(4))
    sum = last ? sum + nn::broadcastTo(n.in(4), x.shape()) : addChannelBias(sum, n.in(4));
  n.set(1, sum);
  return normalizeGroups(n, sum);
}

/// Sum of an operand [N, S, C], a bias [C] and a skipped operand.
LogicalResult biasAdd(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr x = n.in(0);
  if (n.in(1).shape() != x.shape().take_back(1) || n.in(2).type() != x.type())
    return n.reject("operands [N, S, C], [C], [N, S, C] are expected");
  n.set(0, x + nn::broadcastTo(n.in(1), x.shape()) + n.in(2));
  return success();
}

/// One half times the GELU of the other, a bias added to both.
LogicalResult biasSplitGelu(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  int64_t last = x.rank() - 1;
  if (last < 0 || x.dim(last) % 2 || n.in(1).shape() != x.shape().take_back(1))
    return n.reject("operands [N, S, C], [C] with an even C are expected");
  Expr sum = x + nn::broadcastTo(n.in(1), x.shape());
  int64_t half = x.dim(last) / 2;
  n.set(0, sliceDim(sum, last, 0, half) * nn::gelu(sliceDim(sum, last, half, half)));
  return success();
}

} // namespace

void lowtide::addContribImageRules(RuleTable &t) {
  t.add("com.microsoft.NhwcConv", nhwcConv);
  t.add("com.microsoft.GroupNorm", groupNorm);
  t.add("com.microsoft.SkipGroupNorm", skipGroupNorm);
  t.add("com.microsoft.BiasAdd", biasAdd);
  t.add("com.microsoft.BiasSplitGelu", biasSplitGelu);
}
