//===- HeadChunks.cpp - into how many pieces a head falls -----------------===//

#include "HeadChunks.h"

#include <algorithm>

using namespace lowtide;

static constexpr int64_t smallestTile = 16, fewRows = 32, manyRows = 256, gpuFactor = 8;

/// The most rows of a tile.
static int64_t findMost(const HeadShape &head, bool wide) {
  const int64_t bytesPerRow = std::max<int64_t>(int64_t(head.logitsBytes) / head.rows, 1);
  const int64_t cheap = std::max(head.features / 4, int64_t(smallLogitsBytes) / bytesPerRow);
  return std::clamp(cheap, fewRows, manyRows) * (wide ? gpuFactor : 1);
}

/// The largest divisor from 16 on that is a quarter of all rows at most, and no more than `most`; 0: there is none.
static int64_t findDivisor(const HeadShape &head, int64_t most) {
  for (int64_t tile = std::min(std::max(head.rows / 4, smallestTile), most); tile >= smallestTile; --tile)
    if (head.rows % tile == 0)
      return tile;
  return 0;
}

int64_t lowtide::chooseTile(const HeadShape &head, bool wide) {
  const int64_t most = findMost(head, wide);
  if (const int64_t tile = findDivisor(head, most))
    return tile;
  // Seven samples of 127 tokens: larger tiles are better than all rows.
  for (int64_t tile = most + 1; tile <= head.rows / 4; ++tile)
    if (head.rows % tile == 0)
      return tile;
  return head.rows;
}

int64_t lowtide::choosePaddedRows(const HeadShape &head, bool wide) {
  const int64_t most = findMost(head, wide), tile = std::min(std::max(head.rows / 4, smallestTile), most);
  if (findDivisor(head, most))
    return head.rows;
  HeadShape padded = head;
  padded.rows = (head.rows + tile - 1) / tile * tile;
  padded.logitsBytes = head.logitsBytes / uint64_t(head.rows) * uint64_t(padded.rows);
  return chooseChunks(padded, chooseTile(padded, wide), 0) > 1 ? padded.rows : head.rows;
}

int64_t lowtide::chooseChunks(const HeadShape &head, int64_t tile, int64_t asked) {
  const int64_t tiles = head.rows / tile;
  int64_t wanted = asked < 0 ? tiles : asked;
  if (wanted == 0) {
    const uint64_t most = std::max(smallLogitsBytes, head.weightBytes);
    wanted = int64_t((head.logitsBytes + most - 1) / most);
    while (wanted < tiles && tiles % wanted)
      ++wanted;
  }
  wanted = std::clamp<int64_t>(wanted, 1, tiles);
  while (tiles % wanted)
    --wanted;
  return wanted;
}
