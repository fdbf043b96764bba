//===- Workspace.cpp - what a library call needs, asked before it runs -----===//

#include "runtime/Workspace.h"

#include "runtime/CallShape.h"
#include "runtime/CheckedMath.h"
#include "runtime/Verify.h"
#include "runtime/kernels/ConvPlan.h"
#include "runtime/kernels/NarrowConv.h"

#include <algorithm>

namespace lowtide::rt {

Expected<uint64_t> queryWorkspace(const plan::Call &call) {
  if (call.callee() == "gemm") {
    Expected<GemmShape> shape = readGemm(call);
    if (!shape)
      return shape.takeStatus();
    return uint64_t(0);
  }
  Expected<ConvShape> shape = readConv(call);
  if (!shape)
    return shape.takeStatus();
  return queryWorkspace(*shape);
}

Expected<uint64_t> queryWorkspace(const ConvShape &shape) {
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

uint64_t workspaceBytes(const plan::Call &call) {
  Expected<uint64_t> bytes = queryWorkspace(call);
  return bytes ? *bytes : 0;
}

uint64_t countScratchParts(int64_t extent, int64_t grain, uint32_t threadsMax) {
  uint64_t tasks = extent <= 0 ? 0 : static_cast<uint64_t>((extent - 1) / grain) + 1;
  return std::min<uint64_t>(tasks, threadsMax);
}

} // namespace lowtide::rt
