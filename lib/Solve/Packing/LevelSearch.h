//===- LevelSearch.h - a packing of the full program points first ------*- C++ -*-===//
//
// What decides about an arena are the program points in which it is full. They are
// packed alone, as blocks of buffers that cannot be told apart there; what was
// found begins the search with less full program points, to all of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Packing/Packing.h"

namespace lowtide::solve {

/// Bytes alive at each program point. Sizes are those of the buffers.
std::vector<uint64_t> countLive(std::span<const Buffer> buffers);

/// Looks for a packing below a given height, from coarse to fine.
class LevelSearch {
public:
  /// Sizes are multiples of the alignment and not 0.
  LevelSearch(std::span<const Buffer> buffers, uint64_t capacity, uint64_t seed);

  /// How a level is packed: all of it at once, or the windows of time in which something has no place.
  enum class Method { Ejection, Windows };

  /// Whether a packing was found with so many looked-at neighbours; what was spent is added to `work`.
  bool run(Method method, uint64_t effort, uint64_t &work);
  const std::vector<uint64_t> &getOffsets() const { return offsets; }

private:
  /// Some program points, and what is alive in them: one block for all buffers that are alive in the same of them.
  struct Level {
    std::vector<Buffer> blocks;
    std::vector<uint32_t> degrees;
    /// Per buffer, its block; `none` if it is alive in none of the program points.
    std::vector<uint32_t> blockOf;
  };
  static constexpr uint32_t none = UINT32_MAX;

  /// The last level has no merged blocks.
  Level makeLevel(uint64_t leastLive, bool isLast) const;
  /// Where the blocks of a level stand when those of a coarser one stand at `places`; from the capacity on: nowhere.
  std::vector<uint64_t> refine(const Level &coarse, const std::vector<uint64_t> &places, const Level &fine) const;

  std::span<const Buffer> buffers;
  const uint64_t capacity, seed;
  std::vector<uint64_t> live;
  /// Bytes alive from which on a level has a program point.
  std::vector<uint64_t> thresholds;
  std::vector<uint64_t> offsets;
};

} // namespace lowtide::solve
