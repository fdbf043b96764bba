//===- ConvRules.cpp - what cuDNN takes of convolutions -------------------===//

#include "runtime/calls/Conv/ConvShape.h"

#include <algorithm>
#include <span>

namespace lowtide::rt {
namespace {

enum Row : size_t {
  ConvTypes,
  ConvSizes,
  ConvChannelsLast,
  ConvBias,
};

constexpr LibraryRule rules[] = {
    {"cuDNN", "f32, f16 and bf16 operands with results of the same type, f32 arithmetic",
     "its operand and result types are not a supported set",
     "cuDNN 9 documentation, convolutions of packed tensors: PSEUDO_HALF, PSEUDO_BFLOAT16 and FLOAT "
     "configurations",
     true, true},
    {"cuDNN", "tensors below 2^31 elements", "a tensor has 2^31 elements or more",
     "cuDNN 9 documentation, 64-bit indexing is offered by part of the engines only", false},
    {"cuDNN",
     "convolutions channels last in 16 bits; where there are groups, each with a multiple of 8 channels on both sides",
     "it has its channels last in f32, or groups of channels that are no multiple of 8",
     "NVIDIA, Convolutional Layers User's Guide: tensor layouts in memory, channels in and out; cuDNN pads channels, "
     "but not those of groups",
     false, true},
    {"cuDNN", "convolutions without a bias", "it adds a bias, for which no engine is offered by itself",
     "cuDNN 9.26, asked for engines for sm_80 and sm_90: none adds one value per channel to tensors with channels "
     "first",
     false, true},
};

} // namespace

std::span<const LibraryRule> getConvRules() { return rules; }

const LibraryRule *declineConv(const ConvShape &shape, bool biased) {
  if (biased)
    return &rules[ConvBias];
  bool narrow = isNarrow(shape.dtype);
  if (!(shape.dtype == plan::F32 || narrow) || shape.resultDtype != shape.dtype)
    return &rules[ConvTypes];
  if (std::max({shape.inputElements(), shape.outputElements(), shape.filterElements()}) >
      static_cast<uint64_t>(mostElements))
    return &rules[ConvSizes];
  const bool isGrouped = shape.groups > 1;
  if (shape.channelsLast && (!narrow || (isGrouped && (shape.channels % 8 || shape.outChannels % 8))))
    return &rules[ConvChannelsLast];
  return nullptr;
}

} // namespace lowtide::rt
