//===- Window.cpp - geometry of convolutions and pools --------------------===//
//
// Reads strides, dilations, pads, auto_pad and ceil_mode.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Legalize/Window.h"

using namespace mlir;
using namespace lowtide;

FailureOr<Window> lowtide::readWindow(NodeView &n, ArrayRef<int64_t> spatial, ArrayRef<int64_t> kernel) {
  size_t rank = spatial.size();
  Window w;
  w.kernel = Shape(kernel);
  w.strides = n.attrInts("strides", Shape(rank, 1));
  w.dilations = n.attrInts("dilations", Shape(rank, 1));
  Shape pads = n.attrInts("pads", Shape(2 * rank, 0));
  if (w.kernel.size() != rank || w.strides.size() != rank || w.dilations.size() != rank || pads.size() != 2 * rank) {
    (void)n.reject("kernel, strides, dilations and pads do not fit " + Twine(rank) + " spatial dimensions");
    return failure();
  }
  std::string mode = n.attrString("auto_pad", "NOTSET");
  bool ceilMode = n.attr("ceil_mode", 0);
  for (size_t i = 0; i < rank; ++i) {
    int64_t d = spatial[i], k = w.kernel[i], s = w.strides[i], dilation = w.dilations[i], reach;
    int64_t begin = pads[i], end = pads[i + rank];
    constexpr int64_t bound = int64_t(1) << 40;
    if (k < 1 || s < 1 || dilation < 1 || begin < 0 || end < 0 || std::max({k, s, dilation, begin, end, d}) > bound ||
        llvm::MulOverflow(dilation, k - 1, reach) || reach > bound) {
      (void)n.reject("a window of extent " + Twine(k) + ", stride " + Twine(s) + ", dilation " + Twine(dilation) +
                     ", pads " + Twine(begin) + " and " + Twine(end));
      return failure();
    }
    int64_t extent = reach + 1, out;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      out = (d + s - 1) / s;
      int64_t total = std::max<int64_t>(0, (out - 1) * s + extent - d);
      begin = mode == "SAME_UPPER" ? total / 2 : (total + 1) / 2;
      end = total - begin;
    } else if (mode == "VALID") {
      begin = end = 0;
    }
    // With ceil_mode the last window may hang over the end; the only one, too, where less than a stride is missing.
    const bool mayHang = ceilMode && mode == "NOTSET";
    int64_t span = d + begin + end - extent;
    if (span < (mayHang ? 1 - s : 0)) {
      (void)n.reject("a window of extent " + Twine(extent) + " does not fit " + Twine(d + begin + end) + " elements");
      return failure();
    }
    out = std::max<int64_t>(span, 0) / s + 1;
    if (mayHang && span > 0 && span % s && out * s < d + begin) // starts inside
      ++out;
    w.padsBegin.push_back(begin);
    w.padsEnd.push_back(end);
    w.output.push_back(out);
    w.excess.push_back(std::max<int64_t>((out - 1) * s - span, 0));
  }
  return w;
}

nn::Expr lowtide::spreadChannel(nn::Expr channel, nn::Expr x) { return nn::broadcast(channel, x.shape(), {1}); }

nn::Expr lowtide::addChannelBias(nn::Expr x, nn::Expr bias) { return x + spreadChannel(bias, x); }
