//===- WindowSearch.h - places for buffers, a window of time at a time -*- C++ -*-===//
//
// Most of what stands in a buffer's way is alive at about the same time. A step
// of equal blocks has many such places, each of which is mended within a few
// draws, and which no single run of a search mends all at once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Packing/Packing.h"

namespace lowtide::solve {

/// Gives a place to every buffer that ends above `capacity`; the others must not overlap at first. True if all end at
/// or below `capacity`; false, with the places that were found so far, when `effort` looked-at neighbours did not do or
/// a window has no packing that is found. Adds what was spent to `work`.
bool placeInWindows(std::span<const Buffer> buffers, std::vector<uint64_t> &offsets, uint64_t capacity, uint64_t effort,
                    uint64_t seed, uint64_t &work);

} // namespace lowtide::solve
