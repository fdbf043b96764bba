//===- Resources.h - everything taken from a CUDA device, given back -------===//
//
// Owns the context, memory, streams, events, modules and graphs of one session and releases them in the reverse order,
// whatever failed in between.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_RESOURCES_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_RESOURCES_H

#include "runtime/devices/Cuda/Api.h"

#include <functional>
#include <span>
#include <thread>
#include <vector>

namespace lowtide::rt::cuda {

class Resources {
public:
  /// `api` must outlive it.
  explicit Resources(const Api &api) : api_(api) {}
  ~Resources() { (void)close(); }
  Resources(const Resources &) = delete;
  Resources &operator=(const Resources &) = delete;

  /// Visible GPU number `gpu`, its primary context made current in this thread.
  Status open(unsigned gpu = 0);
  /// Makes the context current, if the calling thread is another than last time or a session of another GPU was here.
  Status enter();

  /// At a multiple of 256; null for no bytes.
  Expected<CUdeviceptr> deviceMemory(uint64_t bytes);
  /// Host memory that the device reads and writes directly; zeroed; null for no bytes.
  Expected<uint8_t *> pinnedMemory(uint64_t bytes);
  /// A stream that does not wait for the default stream.
  Expected<CUstream> stream();
  Expected<CUevent> event(unsigned flags = CU_EVENT_DISABLE_TIMING);
  /// Loads a cubin, PTX (NUL-terminated) or, on the fake device, an ELF shared object.
  Expected<CUmodule> module(const void *image);
  /// Makes an executable of a captured graph, which it takes, and brings it to the device: no launch allocates.
  Expected<CUgraphExec> executable(CUgraph graph, CUstream stream);
  /// To be called before everything that was taken earlier is released.
  void onClose(std::function<Status()> release) { releases_.push_back(std::move(release)); }

  /// Releases everything; the first failure.
  Status close();

  CUdevice device() const { return device_; }
  /// Bytes that were asked for and given, and not given back yet, of either memory; calls for both so far.
  uint64_t deviceBytes() const { return deviceBytes_; }
  uint64_t pinnedBytes() const { return pinnedBytes_; }
  uint64_t allocations() const { return allocations_; }

private:
  const Api &api_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::thread::id thread_;
  std::vector<std::function<Status()>> releases_;
  uint64_t deviceBytes_ = 0, pinnedBytes_ = 0, allocations_ = 0;
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_RESOURCES_H
