//===- Attention.h - which attentions the CPU computes in tiles ------------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_ATTENTION_H
#define LOWTIDE_RUNTIME_KERNELS_ATTENTION_H

#include "runtime/CallShape.h"

namespace lowtide::rt {

/// Elements of a head at most: panels of it lie on the stack.
inline constexpr int64_t attentionDepth = 256;

/// f32 with heads of at most `attentionDepth` elements, which lie side by side in every operand and result.
inline bool hasAttentionKernel(const AttentionShape &shape) {
  if (shape.dtype != plan::F32 || shape.maskDtype != plan::F32 ||
      std::max(shape.depth, shape.valueDepth) > attentionDepth)
    return false;
  for (int i = 0; i < (shape.isGradient ? AttentionShape::numTensors : AttentionShape::GradO); ++i)
    if (shape.dims(static_cast<AttentionShape::Tensor>(i))[3] > 1 && shape.layouts[i].strides[3] != 1)
      return false;
  return true;
}

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_KERNELS_ATTENTION_H
