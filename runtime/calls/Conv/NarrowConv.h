//===- NarrowConv.h - workspace of convolutions of 16-bit tensors ----------===//
//
// A convolution of 16-bit operands runs the f32 kernel on widened copies, some images at a time, so that the copies
// stay small. The cut depends on the shape alone.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_CONV_NARROWCONV_H
#define LOWTIDE_RUNTIME_CALLS_CONV_NARROWCONV_H

#include "runtime/Status.h"
#include "runtime/calls/Conv/ConvShape.h"

namespace lowtide::rt {

struct NarrowConvPlan {
  int64_t images = 1; ///< converted at once
  int64_t rounds = 1; ///< over all images; the last one may have fewer
  /// Elements per image: of the first operand, of the result (or of the second operand, when the filter is the result).
  int64_t firstPerImage = 0, otherPerImage = 0;
  int64_t filterElements = 0, biasElements = 0;
  /// Byte offsets in the workspace: filter (or its sums), first operand, other tensor, bias, workspace of the f32 call.
  uint64_t filter = 0, first = 0, other = 0, bias = 0, inner = 0;
  uint64_t bytes = 0;

  /// Fails when the workspace is too large to count.
  static Expected<NarrowConvPlan> get(const ConvShape &shape);
  /// The f32 call of a round.
  static ConvShape innerShape(const ConvShape &shape, int64_t images);
};

/// Workspace of the f32 or f64 call itself.
Expected<uint64_t> convWorkspaceBytes(const ConvShape &shape);

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLS_CONV_NARROWCONV_H
