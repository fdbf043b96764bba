//===- ConvCall.cpp - convolutions as library calls -----------------------===//

#include "runtime/calls/CallKind.h"
#include "runtime/calls/Conv/ConvPlan.h"
#include "runtime/calls/Conv/ConvShape.h"
#include "runtime/calls/Conv/NarrowConv.h"
#include "runtime/calls/OperandBytes.h"
#include "runtime/calls/PartialSums.h"
#include "runtime/devices/Cuda/LibraryCall.h"

#include <array>

namespace lowtide::rt {
namespace {

/// Channels rounded up to what 16 bytes hold.
int64_t paddedChannels(int64_t channels) { return (channels + 7) / 8 * 8; }

/// Images of 16-bit elements rewritten channels last; nothing where they are stored so.
Checked channelsLastBytes(const ConvShape &shape, int64_t channels, const ConvShape::Dims &dims) {
  if (shape.channelsLast && channels % 8 == 0)
    return 0;
  return Checked::fromSigned(shape.batch) * Checked::fromSigned(paddedChannels(channels)) *
         Checked::fromSigned(ConvShape::volume(dims)) * 2;
}

/// The same of the filter, whose channels on both sides are rounded up.
Checked channelsLastFilterBytes(const ConvShape &shape) {
  const int64_t outputs = shape.groups * shape.outChannels;
  if (shape.channelsLast && shape.channels % 8 == 0 && outputs % 8 == 0)
    return 0;
  return Checked::fromSigned(paddedChannels(outputs)) * Checked::fromSigned(paddedChannels(shape.channels)) *
         Checked::fromSigned(ConvShape::volume(shape.filter)) * 2;
}

/// Counters and descriptors of engines on Hopper's tensor cores, none of which fits without: 16 to 247 bytes (asked of
/// cuDNN 9.26, `tools/dev libraries`).
constexpr uint64_t convRest = 1024;

class ConvCall final : public ReadCall {
public:
  explicit ConvCall(const ConvShape &shape) : shape_(shape) {}

  Status checkOperands(const plan::Call &call) const override {
    bool biased = shape_.kind == ConvShape::Kind::Forward && call.reads_size() == 3;
    if (call.reads_size() != (biased ? 3 : 2) || call.writes_size() != 1)
      return refuseCall("takes two operands (conv: and a bias) and one result; it has " +
                        std::to_string(call.reads_size()) + " and " + std::to_string(call.writes_size()));
    uint64_t input = shape_.inputElements(), filter = shape_.filterElements(), output = shape_.outputElements();
    uint64_t first = input, second = filter, result = output;
    if (shape_.kind == ConvShape::Kind::InputGrad)
      first = output, second = filter, result = input;
    if (shape_.kind == ConvShape::Kind::FilterGrad)
      first = input, second = output, result = filter;
    uint64_t element = elementBytes(shape_.dtype), resultElement = elementBytes(shape_.resultDtype);
    LOWTIDE_TRY(checkOperandBytes(call.reads(0), first, element, "the first operand", true));
    LOWTIDE_TRY(checkOperandBytes(call.reads(1), second, element, "the second operand", true));
    LOWTIDE_TRY(checkOperandBytes(call.writes(0), result, resultElement, "the result", true));
    if (biased)
      LOWTIDE_TRY(checkOperandBytes(call.reads(2), static_cast<uint64_t>(shape_.groups * shape_.outChannels),
                                    resultElement, "the bias", true));
    for (const plan::Slice &read : call.reads())
      if (sameRange(read, call.writes(0)))
        return refuseCall("an operand shares the bytes of the result");
    return Status::ok();
  }

  bool hasCpuKernel() const override { return !shape_.channelsLast; }
  Expected<uint64_t> cpuWorkspace() const override { return convWorkspace(shape_); }
  Expected<std::unique_ptr<PreparedCall>> prepareCpu(const CallOperands &operands) const override {
    if (isNarrow(shape_.dtype))
      return prepareNarrowConv(shape_, operands);
    return shape_.kind == ConvShape::Kind::FilterGrad ? prepareConvFilterGrad(shape_, operands)
                                                      : prepareConv(shape_, operands);
  }

  const LibraryRule *declinedBy(int reads) const override { return declineConv(shape_, reads > 2); }
  /// In 16 bits: descriptors of the engines, operands and results rewritten channels last, as tensor cores take them;
  /// and the partial sums of a filter gradient.
  Checked gpuWorkspace(uint32_t processors) const override {
    Checked bytes = 0;
    if (isNarrow(shape_.dtype))
      bytes = channelsLastBytes(shape_, shape_.groups * shape_.channels, shape_.input) +
              channelsLastBytes(shape_, shape_.groups * shape_.outChannels, shape_.output) +
              channelsLastFilterBytes(shape_) + convRest;
    if (shape_.kind == ConvShape::Kind::FilterGrad) {
      const int64_t columns = shape_.channels * ConvShape::volume(shape_.filter);
      bytes = bytes + partialSumBytes(shape_.outChannels, columns, shape_.batch * ConvShape::volume(shape_.output),
                                      shape_.groups, processors);
    }
    return bytes;
  }
  Expected<std::unique_ptr<cuda::LibraryCall>> prepareCuda(cuda::Libraries &libraries,
                                                           const cuda::CallAddresses &addresses) const override {
    return cuda::prepareCudnnConv(libraries, shape_, addresses);
  }

private:
  ConvShape shape_;
};

Expected<std::unique_ptr<ReadCall>> read(const plan::Call &call) {
  Expected<ConvShape> shape = readConv(call);
  if (!shape)
    return shape.takeStatus();
  return std::unique_ptr<ReadCall>(std::make_unique<ConvCall>(*shape));
}

constexpr std::array<std::string_view, 3> callees = {"conv", "conv_input_grad", "conv_filter_grad"};

} // namespace

Expected<uint64_t> convWorkspace(const ConvShape &shape) {
  if (isNarrow(shape.dtype)) {
    Expected<NarrowConvPlan> plan = NarrowConvPlan::get(shape);
    if (!plan)
      return plan.takeStatus();
    return plan->bytes;
  }
  return convWorkspaceBytes(shape);
}

Expected<uint64_t> convWorkspaceBytes(const ConvShape &shape) {
  int64_t elements = 0;
  if (shape.kind == ConvShape::Kind::InputGrad) {
    elements = packedFilterElements(shape);
  } else if (shape.kind == ConvShape::Kind::FilterGrad) {
    FilterGradCut cut(shape);
    elements = cut.parts * cut.partElements(shape);
  }
  Checked bytes = Checked::fromSigned(elements) * elementBytes(shape.dtype);
  if (!bytes.atMost(uint64_t(1) << 46))
    return Status(StatusCode::VerifyFailed, "its workspace is too large to count");
  return alignUp(*bytes.get(), workspaceAlignment);
}

CallKind getConvKind() { return {callees, getConvRules(), read}; }

} // namespace lowtide::rt
