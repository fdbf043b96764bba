//===- ShadowMemory.h - what every byte of an arena holds, and who touched it ===//
//
// The verifier's model of one arena: a partition of [0, bytes) into cells with equal history. Independent of any
// planner.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_SHADOWMEMORY_H
#define LOWTIDE_RUNTIME_SHADOWMEMORY_H

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace lowtide::rt {

/// A point in a stream's time: the `time`-th instruction of `stream`.
struct StreamTime {
  uint32_t stream = 0;
  uint64_t time = 0;
};

/// History shared by all bytes of a cell.
struct ShadowCell {
  uint64_t end = 0;                 ///< first byte after the cell
  uint64_t value = 0;               ///< value number; 0 = undefined
  uint64_t bornAt = 0, lastUse = 0; ///< instruction indices, for liveness
  uint64_t madeAt = 0;              ///< tick of RepeatRounds; 0: before the step
  StreamTime writer;
  std::vector<StreamTime> readers; ///< since the write; the latest per stream
};

class ShadowMemory {
public:
  explicit ShadowMemory(uint64_t bytes) {
    if (bytes)
      cells_[0].end = bytes;
  }

  /// Calls `visit(begin, cell)` for every cell of [begin, end), after splitting cells at both borders. A visit may
  /// change the cell's history, not its extent.
  template <typename Visit> void forEach(uint64_t begin, uint64_t end, Visit &&visit) {
    if (begin >= end)
      return;
    split(begin);
    split(end);
    for (auto it = cells_.lower_bound(begin); it != cells_.end() && it->first < end; ++it)
      visit(it->first, it->second);
  }

  /// Replaces everything in [begin, end) by one cell with the history `cell` (its `end` is set here).
  void assign(uint64_t begin, uint64_t end, ShadowCell cell) {
    if (begin >= end)
      return;
    split(begin);
    split(end);
    cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(end));
    cell.end = end;
    cells_.emplace(begin, std::move(cell));
  }

private:
  void split(uint64_t at) {
    auto it = cells_.upper_bound(at);
    if (it == cells_.begin())
      return;
    --it;
    if (it->first == at || it->second.end <= at)
      return;
    ShadowCell right = it->second;
    it->second.end = at;
    cells_.emplace(at, std::move(right));
  }

  std::map<uint64_t, ShadowCell> cells_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_SHADOWMEMORY_H
