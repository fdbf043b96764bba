//===- AttentionRules.cpp - what cuDNN takes of attention -----------------===//

#include "runtime/calls/Attention/AttentionShape.h"

#include <algorithm>
#include <span>

namespace lowtide::rt {
namespace {

enum Row : size_t {
  AttentionTypes,
  AttentionHeads,
  AttentionRows,
  AttentionMask,
  AttentionSizes,
  AttentionLayouts,
};

constexpr LibraryRule rules[] = {
    {"cuDNN", "attention of f16 or bf16 with f32 logarithms of sums, from version 9.16 on",
     "its operands are not f16 or bf16",
     "cuDNN 9 documentation, Attention: supported graph patterns; before 9.16 columns had to be a multiple of 128 "
     "(cuDNN frontend 1.32, scaled_dot_product_flash_attention.h)",
     true, true},
    {"cuDNN", "attention heads of a multiple of 8 up to 128 elements, heads a multiple of the key heads",
     "the size of its heads is no multiple of 8 up to 128",
     "cuDNN 9 documentation, Attention: hidden dimensions on Ampere and, for the derivative, in general; 16-byte loads",
     false, true},
    {"cuDNN", "attention of two rows or more", "it has one row, which the derivative does not take",
     "cuDNN frontend 1.32, scaled_dot_product_flash_attention.h, sdpa_support_surface.h; cuDNN 9.26 ends the process "
     "on "
     "some of them",
     false, true},
    {"cuDNN", "a mask of the operands' type, written out over rows and columns, for all or each sample and head",
     "its mask has another type, or repeats along rows or columns",
     "cuDNN 9 documentation, Attention: bias of shape [1 or B, 1 or H, rows, columns]", false, true},
    {"cuDNN", "attention with fewer than 2^31 elements in any operand or row of scores",
     "an operand has 2^31 elements or more",
     "cuDNN 9 documentation, 64-bit indexing is offered by part of the engines only", false},
    {"cuDNN",
     "attention on parts of larger tensors and in any order of batch, heads and rows: a head's elements side by "
     "side, everything else in steps of 16 bytes",
     "elements of a head are apart, or a step is no multiple of 16 bytes",
     "cuDNN 9 documentation, Attention: layouts BHSD, BSHD and interleaved, forward and backward; 16-byte loads", false,
     true},
};

} // namespace

std::span<const LibraryRule> getAttentionRules() { return rules; }

const LibraryRule *declineAttention(const AttentionShape &shape) {
  if (!isNarrow(shape.dtype))
    return &rules[AttentionTypes];
  auto isHeadSize = [](int64_t size) { return size % 8 == 0 && size <= 128; };
  if (!isHeadSize(shape.depth) || !isHeadSize(shape.valueDepth))
    return &rules[AttentionHeads];
  if (shape.rows < 2 || shape.columns < 2)
    return &rules[AttentionRows];
  if (shape.hasMask &&
      (shape.maskDtype != shape.dtype || shape.mask[2] != shape.rows || shape.mask[3] != shape.columns))
    return &rules[AttentionMask];
  uint64_t largest = shape.maskElements();
  for (int i = 0; i < AttentionShape::numTensors; ++i) {
    auto tensor = static_cast<AttentionShape::Tensor>(i);
    if (i > AttentionShape::O && !shape.isGradient)
      continue;
    largest = std::max(largest, shape.span(tensor));
    std::array<int64_t, 4> dims = shape.dims(tensor);
    const TensorLayout &layout = shape.layouts[tensor];
    bool isLoadable = layout.offset % 8 == 0 && (dims[3] == 1 || layout.strides[3] == 1);
    for (size_t d = 0; d < 3; ++d)
      isLoadable &= dims[d] == 1 || layout.strides[d] % 8 == 0;
    if (!isLoadable)
      return &rules[AttentionLayouts];
  }
  return largest > static_cast<uint64_t>(mostElements) ? &rules[AttentionSizes] : nullptr;
}

} // namespace lowtide::rt
