//===- HeadChunks.h - into how many pieces a head falls ---------*- C++ -*-===//
//
// The rule that every loss head is parted by. Tiles depend on shapes alone: bits depend on them. Chunks are whole
// tiles.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace lowtide {

/// A product of `rows` rows of `features` numbers with a matrix, of which logits of `logitsBytes` come. `weightBytes`:
/// of the matrix, or 0 where it has no gradient.
struct HeadShape {
  int64_t rows, features;
  uint64_t logitsBytes, weightBytes;
};

/// Logits below this are not worth a loop.
inline constexpr uint64_t smallLogitsBytes = uint64_t(1) << 20;
/// A head that stays whole and is larger is a warning.
inline constexpr uint64_t largeLogitsBytes = uint64_t(64) << 20;

/// Rows that are added up in one piece: the largest divisor of all rows that is a quarter of them at most, and where
/// that is below 16 the smallest that is larger; all rows if there is none. The logits of a tile take a quarter of the
/// weight's bytes or 1 MiB at most, within 32 to 256 rows: smaller tiles would cost products their speed, and a tile's
/// sum is read and written once. `wide`: for a GPU eight times as many, since there a tile's sum of the size of the
/// weight takes longer to read and write than a product of so few rows takes to compute (measured on an H100:
/// docs/measurements/gpu.md).
int64_t chooseTile(const HeadShape &head, bool wide);

/// `head.rows`, or so many more that they fall into tiles of that size, where they do not and are worth more than one
/// chunk: 8,191 tokens of a sequence that is shifted by one are a prime number. Depends on shapes alone, too.
int64_t choosePaddedRows(const HeadShape &head, bool wide);

/// How many chunks of whole tiles: `asked` at most, a divisor of the tiles; 0 chooses: logits of one chunk as large as
/// the weight, whose gradient is as large anyway, or 1 MiB; -1: one for each tile.
int64_t chooseChunks(const HeadShape &head, int64_t tile, int64_t asked);

} // namespace lowtide
