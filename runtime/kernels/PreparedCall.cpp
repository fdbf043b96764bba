//===- PreparedCall.cpp - callees by name ----------------------------------===//

#include "runtime/kernels/PreparedCall.h"

#include "runtime/CallShape.h"
#include "runtime/LibraryTable.h"

namespace lowtide::rt {

Expected<std::unique_ptr<PreparedCall>> prepareCall(const plan::Call &call, const CallOperands &operands) {
  if (call.callee() == "gemm") {
    Expected<GemmShape> shape = readGemm(call);
    if (!shape)
      return shape.takeStatus();
    return prepareGemmWithEpilogue(*shape, operands);
  }
  if (!hasCpuKernel(call))
    return Status(StatusCode::Unsupported,
                  "the CPU has no kernel for '" + call.callee() + "'; compile the model for it");
  if (isAttention(call)) {
    Expected<AttentionShape> shape = readAttention(call);
    if (!shape)
      return shape.takeStatus();
    return prepareAttention(*shape, operands);
  }
  Expected<ConvShape> shape = readConv(call);
  if (!shape)
    return shape.takeStatus();
  if (isNarrow(shape->dtype))
    return prepareNarrowConv(*shape, operands);
  return shape->kind == ConvShape::Kind::FilterGrad ? prepareConvFilterGrad(*shape, operands)
                                                    : prepareConv(*shape, operands);
}

} // namespace lowtide::rt
