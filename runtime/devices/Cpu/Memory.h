//===- Memory.h - the arenas of a session, counted as they are allocated ---===//
#ifndef LOWTIDE_RUNTIME_DEVICES_CPU_MEMORY_H
#define LOWTIDE_RUNTIME_DEVICES_CPU_MEMORY_H

#include "runtime/Status.h"

#include <cstdint>
#include <vector>

namespace lowtide::rt {

/// Allocates blocks of host memory and counts what was asked for. Everything is released with the object.
class Memory {
public:
  Memory() = default;
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// `bytes` zeroed bytes, present in memory (no page faults later), at a multiple of `alignment` (a power of two up to
  /// 2 MiB). `what` names the block in an error.
  Expected<uint8_t *> allocate(uint64_t bytes, uint64_t alignment, const std::string &what);

  /// Bytes that were asked for and given, whole pages and gaps for alignment not counted; calls of `allocate` so far.
  uint64_t allocatedBytes() const { return allocatedBytes_; }
  uint64_t allocations() const { return allocations_; }

private:
  struct Mapping {
    void *address;
    size_t bytes;
  };
  std::vector<Mapping> mappings_;
  uint64_t allocatedBytes_ = 0, allocations_ = 0;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_DEVICES_CPU_MEMORY_H
