//===- Memory.cpp - the arenas of a session, counted as they are allocated ===//

#include "runtime/devices/Cpu/Memory.h"

#include "runtime/CheckedMath.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace lowtide::rt {

Memory::~Memory() {
  for (const Mapping &mapping : mappings_)
    ::munmap(mapping.address, mapping.bytes);
}

Expected<uint8_t *> Memory::allocate(uint64_t bytes, uint64_t alignment, const std::string &what) {
  constexpr uint64_t page = 4096, hugePage = uint64_t(2) << 20;
  ++allocations_;
  uint64_t extra = alignment > page ? alignment : 0;
  if (bytes >= 2 * hugePage)
    extra = hugePage;
  size_t mapped = alignUp(bytes ? bytes : 1, page) + extra;
  void *address = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return Status(StatusCode::OverBudget,
                  "cannot allocate " + std::to_string(bytes) + " bytes: " + std::strerror(errno), what);
  mappings_.push_back({address, mapped});
  allocatedBytes_ += bytes;
  auto start = reinterpret_cast<uintptr_t>(address);
  uintptr_t aligned = extra ? alignUp(start, extra) : start;
  if (bytes >= 2 * hugePage)
    (void)::madvise(reinterpret_cast<void *>(aligned), bytes, MADV_HUGEPAGE); // only a wish
  auto *memory = reinterpret_cast<uint8_t *>(aligned);
  for (uint64_t at = 0; at < bytes; at += page)
    const_cast<volatile uint8_t *>(memory)[at] = 0;
  return memory;
}

} // namespace lowtide::rt
