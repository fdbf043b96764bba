//===- ConvShape.cpp - convolutions and their derivatives, read -----------===//

#include "runtime/calls/Conv/ConvShape.h"

#include "runtime/CheckedMath.h"

#include <algorithm>
#include <string>

namespace lowtide::rt {

Expected<ConvShape> readConv(const plan::Call &call) {
  ConvShape shape;
  if (call.callee() == "conv")
    shape.kind = ConvShape::Kind::Forward;
  else if (call.callee() == "conv_input_grad")
    shape.kind = ConvShape::Kind::InputGrad;
  else if (call.callee() == "conv_filter_grad")
    shape.kind = ConvShape::Kind::FilterGrad;
  else
    return refuseCall("'" + printable(call.callee()) + "' is no convolution");
  CallAttributes attributes(call);
  std::vector<int64_t> input, filter, output, strides, padsBegin, padsEnd, dilations;
  LOWTIDE_TRY(attributes.dtypes(shape.dtype, shape.resultDtype));
  LOWTIDE_TRY(attributes.list("input", input, 1, true));
  LOWTIDE_TRY(attributes.list("filter", filter, 1, true));
  LOWTIDE_TRY(attributes.list("output", output, 1, true));
  LOWTIDE_TRY(attributes.list("strides", strides, 1, false));
  LOWTIDE_TRY(attributes.list("pads_begin", padsBegin, 0, false));
  LOWTIDE_TRY(attributes.list("pads_end", padsEnd, 0, false));
  LOWTIDE_TRY(attributes.list("dilations", dilations, 1, false));
  LOWTIDE_TRY(attributes.integer("groups", shape.groups, 1, false));
  LOWTIDE_TRY(attributes.flag("channels_last", shape.channelsLast));
  LOWTIDE_TRY(attributes.allUsed());

  size_t rank = input.size();
  if (rank < 3 || rank > 5 || filter.size() != rank || output.size() != rank)
    return refuseCall("input, filter and output are not of one rank from 3 to 5");
  size_t spatial = rank - 2;
  auto complete = [&](std::vector<int64_t> &list, int64_t value) {
    if (list.empty())
      list.assign(spatial, value);
    return list.size() == spatial;
  };
  if (!complete(strides, 1) || !complete(padsBegin, 0) || !complete(padsEnd, 0) || !complete(dilations, 1))
    return refuseCall("strides, pads or dilations do not match the number of spatial dimensions");
  shape.batch = input[0];
  shape.channels = filter[1];
  shape.outChannels = filter[0] / shape.groups;
  Checked groupedChannels = Checked::fromSigned(filter[1]) * Checked::fromSigned(shape.groups);
  if (output[0] != input[0] || filter[0] % shape.groups || output[1] != filter[0] ||
      groupedChannels.get() != static_cast<uint64_t>(input[1]))
    return refuseCall("batch, channels and groups of input, filter and output do not agree");
  for (size_t d = 0; d < spatial; ++d) {
    size_t to = ConvShape::spatial - spatial + d;
    shape.input[to] = input[2 + d], shape.filter[to] = filter[2 + d], shape.output[to] = output[2 + d];
    shape.stride[to] = strides[d], shape.padBegin[to] = padsBegin[d], shape.dilation[to] = dilations[d];
    // All numbers are at most 2^40, only the product needs care.
    Checked reach = Checked::fromSigned(dilations[d]) * Checked::fromSigned(filter[2 + d] - 1);
    int64_t padded = input[2 + d] + padsBegin[d] + padsEnd[d] - 1;
    if (!reach.atMost(static_cast<uint64_t>(padded)) ||
        (padded - static_cast<int64_t>(*reach.get())) / strides[d] + 1 != output[2 + d])
      return refuseCall("output size " + std::to_string(output[2 + d]) + " does not follow from input " +
                        std::to_string(input[2 + d]) + ", filter " + std::to_string(filter[2 + d]) +
                        ", stride, pads and dilation");
  }
  Checked counts[3] = {1, 1, 1};
  for (size_t d = 0; d < rank; ++d) {
    counts[0] *= Checked::fromSigned(input[d]);
    counts[1] *= Checked::fromSigned(filter[d]);
    counts[2] *= Checked::fromSigned(output[d]);
  }
  if (!std::all_of(counts, counts + 3, [](Checked c) { return c.atMost(maxCount); }))
    return refuseCall("its operands are too large to count");
  return shape;
}

} // namespace lowtide::rt
