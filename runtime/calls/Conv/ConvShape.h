//===- ConvShape.h - convolutions and their derivatives, read -------------===//
#ifndef LOWTIDE_RUNTIME_CALLS_CONV_CONVSHAPE_H
#define LOWTIDE_RUNTIME_CALLS_CONV_CONVSHAPE_H

#include "runtime/calls/CallAttributes.h"
#include "runtime/calls/CallKind.h"

#include <array>
#include <cstdint>
#include <memory>

namespace lowtide::rt {

/// Spatial dimensions are brought to three by leading ones: depth, height, width.
struct ConvShape {
  enum class Kind { Forward, InputGrad, FilterGrad };
  static constexpr int spatial = 3;
  using Dims = std::array<int64_t, spatial>;

  Kind kind = Kind::Forward;
  plan::DType dtype = plan::F32;       ///< of the operands; 16-bit floats are summed in f32
  plan::DType resultDtype = plan::F32; ///< of result and bias: f32 or `dtype`
  bool channelsLast = false;           ///< dimension 1 of all three tensors is stored as the last one
  int64_t batch = 0, groups = 1;
  int64_t channels = 0;    ///< input channels per group
  int64_t outChannels = 0; ///< output channels per group
  Dims input{1, 1, 1}, filter{1, 1, 1}, output{1, 1, 1};
  Dims stride{1, 1, 1}, padBegin{0, 0, 0}, dilation{1, 1, 1};

  static int64_t volume(const Dims &dims) { return dims[0] * dims[1] * dims[2]; }
  uint64_t inputElements() const { return static_cast<uint64_t>(batch * groups * channels * volume(input)); }
  uint64_t outputElements() const { return static_cast<uint64_t>(batch * groups * outChannels * volume(output)); }
  uint64_t filterElements() const { return static_cast<uint64_t>(groups * outChannels * channels * volume(filter)); }
};

/// Reads "conv", "conv_input_grad" or "conv_filter_grad"; the three shapes must agree with each other.
Expected<ConvShape> readConv(const plan::Call &call);
std::span<const LibraryRule> getConvRules();
/// `biased`: the call reads a bias.
const LibraryRule *declineConv(const ConvShape &shape, bool biased);
/// Bytes of Call.workspace on the CPU.
Expected<uint64_t> convWorkspace(const ConvShape &shape);

std::unique_ptr<PreparedCall> prepareConv(const ConvShape &shape, const CallOperands &operands);
std::unique_ptr<PreparedCall> prepareConvFilterGrad(const ConvShape &shape, const CallOperands &operands);
/// The same for 16-bit operands.
std::unique_ptr<PreparedCall> prepareNarrowConv(const ConvShape &shape, const CallOperands &operands);

namespace cuda {
Expected<std::unique_ptr<LibraryCall>> prepareCudnnConv(Libraries &libraries, const ConvShape &shape,
                                                        const CallAddresses &addresses);
} // namespace cuda

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_CALLS_CONV_CONVSHAPE_H
