//===- HostMirror.h - the host's view of a device's arenas -----------------===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CUDA_HOSTMIRROR_H
#define LOWTIDE_RUNTIME_DEVICES_CUDA_HOSTMIRROR_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace lowtide::rt::cuda {

/// Address space as large as the arenas that bindings lie in. Pages become memory when they are touched, and only
/// bindings are.
class HostMirror {
public:
  HostMirror() = default;
  ~HostMirror();
  HostMirror(const HostMirror &) = delete;
  HostMirror &operator=(const HostMirror &) = delete;

  Status reserve(const plan::Plan &plan);
  /// Shows memory of the host in which an arena lies, in place of a mirror of it; it outlives this.
  void adopt(size_t arena, uint8_t *memory);
  /// Gives the memory of an arena back; it reads as zero afterwards. Not of one that was adopted.
  void drop(size_t arena);

  std::span<uint8_t *const> arenas() const { return arenas_; }
  uint8_t *address(const plan::Slice &slice) const { return arenas_[slice.arena()] + slice.offset(); }

private:
  std::vector<uint8_t *> arenas_;
  std::vector<size_t> bytes_;
};

} // namespace lowtide::rt::cuda

#endif // LOWTIDE_RUNTIME_DEVICES_CUDA_HOSTMIRROR_H
