//===- PartialSums.cpp - products of a GPU whose depth is cut -------------===//

#include "runtime/calls/PartialSums.h"

#include <algorithm>

namespace lowtide::rt {
namespace {

/// The tile of a block, the depth below which k is not cut, and what cuBLAS takes by itself on Hopper (cuBLAS 13.0
/// documentation, cublasSetWorkspace(): 32 MiB).
constexpr int64_t tile = 128, depthOfPart = 256;
constexpr uint64_t gemmLimit = uint64_t(32) << 20;

int64_t tilesOf(int64_t size) { return (size + tile - 1) / tile; }

} // namespace

uint64_t partialSumBytes(int64_t m, int64_t n, int64_t k, int64_t batch, uint32_t blocksAtOnce) {
  Checked tiles = Checked::fromSigned(tilesOf(m)) * Checked::fromSigned(tilesOf(n)) * Checked::fromSigned(batch);
  if (!tiles.atMost(blocksAtOnce / 2))
    return 0;
  uint64_t parts = std::min<uint64_t>(blocksAtOnce / *tiles.get(), static_cast<uint64_t>(k / depthOfPart));
  Checked bytes = Checked::fromSigned(m) * Checked::fromSigned(n) * Checked::fromSigned(batch) * (4 * parts);
  return parts < 2 ? 0 : bytes.atMost(gemmLimit) ? *bytes.get() : gemmLimit;
}

} // namespace lowtide::rt
