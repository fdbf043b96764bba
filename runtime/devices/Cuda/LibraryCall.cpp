//===- LibraryCall.cpp - a call of the plan as calls of NVIDIA's libraries -===//

#include "runtime/devices/Cuda/LibraryCall.h"

#include "runtime/calls/CallKind.h"

namespace lowtide::rt::cuda {

static Status declined(const LibraryRule &rule) {
  return {StatusCode::Unsupported, std::string(rule.library) + " does not take this call: " + rule.declines +
                                       "; compile the model again with this release"};
}

Expected<std::unique_ptr<LibraryCall>> Libraries::prepare(const plan::Call &call, const CallAddresses &addresses) {
  Expected<std::unique_ptr<ReadCall>> read = readCall(call);
  if (!read)
    return read.takeStatus();
  if (const LibraryRule *rule = (*read)->declinedBy(call.reads_size()))
    return declined(*rule);
  return (*read)->prepareCuda(*this, addresses);
}

Expected<cublasLtHandle_t> Libraries::openCublasLt() {
  if (cublasLt_)
    return *cublasLt_;
  if (!api_.fake)
    LOWTIDE_TRY(loadCublasLt(api_));
  cublasLtHandle_t handle = nullptr;
  LOWTIDE_CUDA(api_, cublasLt, cublasLtCreate, &handle);
  cublasLt_ = handle;
  resources_.onClose([this] { return api_.check(api_.cublasLt.cublasLtDestroy(*cublasLt_), "cublasLtDestroy"); });
  return handle;
}

Expected<cudnnHandle_t> Libraries::openCudnn() {
  if (cudnn_)
    return *cudnn_;
  if (!api_.fake)
    LOWTIDE_TRY(loadCudnn(api_));
  cudnnHandle_t handle = nullptr;
  LOWTIDE_CUDA(api_, cudnn, cudnnCreate, &handle);
  cudnn_ = handle;
  resources_.onClose([this] { return api_.check(api_.cudnn.cudnnDestroy(*cudnn_), "cudnnDestroy"); });
  return handle;
}

} // namespace lowtide::rt::cuda
