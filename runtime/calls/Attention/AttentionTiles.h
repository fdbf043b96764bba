//===- Attention.h - which attentions the CPU computes in tiles ------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_ATTENTION_ATTENTIONTILES_H
#define LOWTIDE_RUNTIME_CALLS_ATTENTION_ATTENTIONTILES_H

#include "runtime/calls/Attention/AttentionShape.h"

namespace lowtide::rt {

/// Elements of a head at most: panels of it lie on the stack.
inline constexpr int64_t attentionDepth = 256;

/// Heads of at most `attentionDepth` elements of f32, f16 or bf16, which lie side by side in every operand and result.
inline bool hasAttentionKernel(const AttentionShape &shape) {
  if ((shape.dtype != plan::F32 && !isNarrow(shape.dtype)) || std::max(shape.depth, shape.valueDepth) > attentionDepth)
    return false;
  for (int i = 0; i < (shape.isGradient ? AttentionShape::numTensors : AttentionShape::GradO); ++i)
    if (shape.dims(static_cast<AttentionShape::Tensor>(i))[3] > 1 && shape.layouts[i].strides[3] != 1)
      return false;
  return true;
}

/// Elements of f32 that the derivative sums cotangents of q in, apart from its result.
inline uint64_t attentionWorkspaceElements(const AttentionShape &shape) {
  return shape.isGradient && isNarrow(shape.dtype) ? shape.elements(AttentionShape::Q) : 0;
}

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLS_ATTENTION_ATTENTIONTILES_H
