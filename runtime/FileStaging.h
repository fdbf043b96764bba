//===- FileStaging.h - what passes to a file and back goes through ---------===//
#ifndef LOWTIDE_RUNTIME_FILESTAGING_H
#define LOWTIDE_RUNTIME_FILESTAGING_H

#include "plan.pb.h"

#include <algorithm>
#include <cstdint>

namespace lowtide::rt {

/// Addresses, offsets and sizes of what goes past the page cache are multiples of it: the block of a disk at most.
inline constexpr uint64_t fileAlignment = 4096;
/// What is written or read at once, in bytes.
inline constexpr uint64_t filePiece = uint64_t(1) << 20;

constexpr uint64_t alignToFile(uint64_t bytes) { return (bytes + fileAlignment - 1) / fileAlignment * fileAlignment; }

/// A half for each direction, where the largest value has `largestBytes`: as much as is written or read at once.
inline plan::Arena listFileStaging(uint64_t largestBytes = 1) {
  plan::Arena arena;
  arena.set_name("staging");
  arena.set_role(plan::Arena::STAGING);
  arena.set_space(plan::Arena::DEVICE);
  arena.set_bytes(2 * alignToFile(std::min(largestBytes, filePiece)));
  arena.set_alignment(fileAlignment);
  return arena;
}

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_FILESTAGING_H
