//===- LibraryCall.cpp - a call of the plan as calls of NVIDIA's libraries -===//

#include "runtime/devices/Cuda/LibraryCall.h"

#include "runtime/LibraryTable.h"

namespace lowtide::rt::cuda {

static Status declined(const LibraryRule &rule) {
  return {StatusCode::Unsupported, std::string(rule.library) + " does not take this call: " + rule.declines +
                                       "; compile the model again with this release"};
}

Expected<std::unique_ptr<LibraryCall>> Libraries::prepare(const plan::Call &call, const CallAddresses &addresses) {
  Expected<const LibraryRule *> rule = declineCall(call);
  if (!rule)
    return rule.takeStatus();
  if (*rule)
    return declined(**rule);
  if (call.callee() == "gemm") {
    Expected<GemmShape> shape = readGemm(call);
    if (!shape)
      return shape.takeStatus();
    LOWTIDE_TRY(openCublasLt());
    return prepareCublasLtGemm(api_, resources_, cublasLt_, *shape, addresses);
  }
  if (isAttention(call)) {
    Expected<AttentionShape> shape = readAttention(call);
    if (!shape)
      return shape.takeStatus();
    LOWTIDE_TRY(openCudnn());
    return prepareCudnnAttention(api_, resources_, cudnn_, *shape, addresses);
  }
  Expected<ConvShape> shape = readConv(call);
  if (!shape)
    return shape.takeStatus();
  LOWTIDE_TRY(openCudnn());
  return prepareCudnnConv(api_, resources_, cudnn_, *shape, addresses);
}

Status Libraries::openCublasLt() {
  if (cublasLt_)
    return Status::ok();
  if (!api_.fake)
    LOWTIDE_TRY(loadCublasLt(api_));
  LOWTIDE_CUDA(api_, cublasLt, cublasLtCreate, &cublasLt_);
  resources_.onClose([this] { return api_.check(api_.cublasLt.cublasLtDestroy(cublasLt_), "cublasLtDestroy"); });
  return Status::ok();
}

Status Libraries::openCudnn() {
  if (cudnn_)
    return Status::ok();
  if (!api_.fake)
    LOWTIDE_TRY(loadCudnn(api_));
  LOWTIDE_CUDA(api_, cudnn, cudnnCreate, &cudnn_);
  resources_.onClose([this] { return api_.check(api_.cudnn.cudnnDestroy(cudnn_), "cudnnDestroy"); });
  return Status::ok();
}

} // namespace lowtide::rt::cuda
