//===- Resources.cpp - everything taken from a CUDA device, given back -----===//

#include "runtime/devices/Cuda/Resources.h"

#include <cstring>

namespace lowtide::rt::cuda {
namespace {

/// What a session made current in this thread last: another session may be on another GPU.
thread_local CUcontext currentContext = nullptr;

} // namespace

Status Resources::open(unsigned gpu) {
  LOWTIDE_CUDA(api_, driver, cuInit, 0);
  int count = 0;
  LOWTIDE_CUDA(api_, driver, cuDeviceGetCount, &count);
  if (count < 1)
    return api_.check(CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount");
  if (gpu >= unsigned(count))
    return {StatusCode::Usage, "there is no GPU " + std::to_string(gpu) + "; visible are " + std::to_string(count) +
                                   ", counted from 0 (CUDA_VISIBLE_DEVICES says which)"};
  LOWTIDE_CUDA(api_, driver, cuDeviceGet, &device_, int(gpu));
  LOWTIDE_CUDA(api_, driver, cuDevicePrimaryCtxRetain, &context_, device_);
  onClose([this] { return api_.check(api_.driver.cuDevicePrimaryCtxRelease(device_), "cuDevicePrimaryCtxRelease"); });
  return enter();
}

Status Resources::enter() {
  if (thread_ == std::this_thread::get_id() && currentContext == context_)
    return Status::ok();
  currentContext = nullptr;
  LOWTIDE_CUDA(api_, driver, cuCtxSetCurrent, context_);
  thread_ = std::this_thread::get_id();
  currentContext = context_;
  return Status::ok();
}

Expected<CUdeviceptr> Resources::deviceMemory(uint64_t bytes) {
  CUdeviceptr address = 0;
  if (!bytes)
    return address;
  ++allocations_;
  LOWTIDE_CUDA(api_, driver, cuMemAlloc, &address, bytes);
  deviceBytes_ += bytes;
  onClose([this, address, bytes] {
    deviceBytes_ -= bytes;
    return api_.check(api_.driver.cuMemFree(address), "cuMemFree");
  });
  return address;
}

Expected<uint8_t *> Resources::pinnedMemory(uint64_t bytes) {
  void *address = nullptr;
  if (!bytes)
    return static_cast<uint8_t *>(address);
  ++allocations_;
  LOWTIDE_CUDA(api_, driver, cuMemHostAlloc, &address, bytes, 0);
  pinnedBytes_ += bytes;
  onClose([this, address, bytes] {
    pinnedBytes_ -= bytes;
    return api_.check(api_.driver.cuMemFreeHost(address), "cuMemFreeHost");
  });
  std::memset(address, 0, bytes);
  return static_cast<uint8_t *>(address);
}

Expected<CUstream> Resources::stream() {
  CUstream stream = nullptr;
  LOWTIDE_CUDA(api_, driver, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  onClose([this, stream] { return api_.check(api_.driver.cuStreamDestroy(stream), "cuStreamDestroy"); });
  return stream;
}

Expected<CUevent> Resources::event(unsigned flags) {
  CUevent event = nullptr;
  LOWTIDE_CUDA(api_, driver, cuEventCreate, &event, flags);
  onClose([this, event] { return api_.check(api_.driver.cuEventDestroy(event), "cuEventDestroy"); });
  return event;
}

Expected<CUmodule> Resources::module(const void *image) {
  CUmodule module = nullptr;
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  Status status = api_.check(api_.driver.cuModuleLoadDataEx(&module, image, 2, options, values), "cuModuleLoadDataEx");
  if (!status.isOk()) {
    log[sizeof log - 1] = 0;
    return Status(status.code(), status.message() + (log[0] ? ": " + printable(log) : ""), "section 'code'");
  }
  onClose([this, module] { return api_.check(api_.driver.cuModuleUnload(module), "cuModuleUnload"); });
  return module;
}

Expected<CUgraphExec> Resources::executable(CUgraph graph, CUstream stream) {
  CUgraphExec executable = nullptr;
  Status status = api_.check(api_.driver.cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
  if (status.isOk())
    onClose(
        [this, executable] { return api_.check(api_.driver.cuGraphExecDestroy(executable), "cuGraphExecDestroy"); });
  Status destroyed = api_.check(api_.driver.cuGraphDestroy(graph), "cuGraphDestroy");
  if (!status.isOk())
    return status;
  if (!destroyed.isOk())
    return destroyed;
  LOWTIDE_CUDA(api_, driver, cuGraphUpload, executable, stream);
  return executable;
}

Status Resources::close() {
  // Whoever closes may be in another thread than whoever opened.
  Status first = releases_.empty() ? Status::ok() : enter();
  while (!releases_.empty()) {
    // Taken off before it is called: a release is tried once.
    std::function<Status()> release = std::move(releases_.back());
    releases_.pop_back();
    Status status = release();
    if (first.isOk() && !status.isOk())
      first = std::move(status).at("shutdown");
  }
  return first;
}

} // namespace lowtide::rt::cuda
