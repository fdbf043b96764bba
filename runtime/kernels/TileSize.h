//===- TileSize.h - how products are cut for the registers of a CPU --------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_TILESIZE_H
#define LOWTIDE_RUNTIME_KERNELS_TILESIZE_H

#include <cstdint>

namespace lowtide::rt {

/// Rows and columns of the register tile (columns in f32; f64 uses half).
inline constexpr int64_t tileRows = 6, tileColumns = 16;
/// The same for vectors of 64 bytes.
inline constexpr int64_t wideTileRows = 12, wideTileColumns = 32;

constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_KERNELS_TILESIZE_H
