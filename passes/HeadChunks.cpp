//===- HeadChunks.cpp - into how many pieces a head falls -----------------===//

#include "HeadChunks.h"

#include <algorithm>

int64_t lowtide::chooseTile(const HeadShape &head, bool wide) {
  constexpr int64_t smallestTile = 16, fewRows = 32, manyRows = 256, gpuFactor = 8;
  const int64_t factor = wide ? gpuFactor : 1;
  const int64_t bytesPerRow = std::max<int64_t>(int64_t(head.logitsBytes) / head.rows, 1);
  const int64_t cheap = std::max(head.features / 4, int64_t(smallLogitsBytes) / bytesPerRow);
  const int64_t most = std::clamp(cheap, fewRows, manyRows) * factor;
  for (int64_t tile = std::min(std::max(head.rows / 4, smallestTile), most); tile >= smallestTile; --tile)
    if (head.rows % tile == 0)
      return tile;
  return head.rows;
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
