//===- HostMirror.cpp - the host's view of a device's arenas ---------------===//

#include "runtime/devices/Cuda/HostMirror.h"

#include "runtime/MemorySpaces.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace lowtide::rt::cuda {

HostMirror::~HostMirror() {
  for (size_t i = 0; i < arenas_.size(); ++i)
    if (bytes_[i])
      ::munmap(arenas_[i], bytes_[i]);
}

Status HostMirror::reserve(const plan::Plan &plan) {
  for (const plan::Arena &arena : plan.arenas()) {
    size_t bytes =
        arena.bytes() && !isOfRuntime(arena.role()) && arena.space() == plan::Arena::DEVICE ? arena.bytes() : 1;
    void *address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
      return {StatusCode::OverBudget,
              "cannot reserve " + std::to_string(bytes) + " bytes of address space: " + std::strerror(errno),
              "arena '" + printable(arena.name()) + "'"};
    arenas_.push_back(static_cast<uint8_t *>(address));
    bytes_.push_back(bytes);
  }
  return Status::ok();
}

void HostMirror::adopt(size_t arena, uint8_t *memory) {
  ::munmap(arenas_[arena], bytes_[arena]);
  arenas_[arena] = memory;
  bytes_[arena] = 0;
}

void HostMirror::drop(size_t arena) { (void)::madvise(arenas_[arena], bytes_[arena], MADV_DONTNEED); }

} // namespace lowtide::rt::cuda
