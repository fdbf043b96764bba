//===- Window.h - geometry of convolutions and pools ------------*- C++ -*-===//
//
// Strides, dilations and pads of sliding windows, whichever way a node states them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Legalize/NodeView.h"

namespace lowtide {

struct Window {
  Shape kernel, strides, dilations, padsBegin, padsEnd;
  /// Extents of the result.
  Shape output;
  /// Elements that the last window needs beyond the stated padding (ceil_mode).
  Shape excess;
};

/// Reads the window of `node` over the dimensions `spatial` with window extents `kernel`. Rejects what is
/// contradictory.
mlir::FailureOr<Window> readWindow(NodeView &node, llvm::ArrayRef<int64_t> spatial, llvm::ArrayRef<int64_t> kernel);

/// Convolution of `x` [N, C, d…] with `filter` [O, C/groups, k…], in the groups and windows that `node` states.
mlir::FailureOr<nn::Expr> convolve(NodeView &node, nn::Expr x, nn::Expr filter);

/// Bias [C] added along dimension 1.
nn::Expr addChannelBias(nn::Expr x, nn::Expr bias);
/// [C] spread over the shape of `x` at dimension 1.
nn::Expr spreadChannel(nn::Expr channel, nn::Expr x);

/// `x` [N, C, d…] in `groups` groups of channels, each brought to mean 0 and variance 1 in every sample; then times
/// `scale` [C], plus `bias` [C]. Computed in the type `wide`.
nn::Expr groupNormalize(nn::Expr x, nn::Expr scale, nn::Expr bias, int64_t groups, double epsilon, mlir::Type wide);

/// Number of each window's first largest element within `x`, in row-major order; `columns`: column-major in an image.
nn::Expr poolIndices(NodeView &n, nn::Expr x, const Window &w, bool columns);

} // namespace lowtide
