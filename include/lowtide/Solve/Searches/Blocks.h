//===- Blocks.h - a step's forward part in blocks ---------------*- C++ -*-===//
//
// The forward part falls into blocks at the places where few bytes cross that
// are read further on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Model/Timeline.h"

namespace lowtide::solve {

/// Blocks in the order in which they run. What jumps over a block belongs to its boundaries: no chain is assumed.
struct Blocks {
  static constexpr uint32_t none = UINT32_MAX;

  /// Positions at which blocks begin, and the end of the forward part.
  std::vector<uint32_t> begins;
  /// Per block, the values from which it and all after it can run. Of what is cheaply made from another value only
  /// that is named.
  std::vector<std::vector<uint32_t>> boundaries;
  /// Per block, from which position on its backward part runs; the last block's comes first.
  std::vector<uint32_t> backwardFrom;
  /// Per block, its values: those of boundaries are in the block that makes them, others in the last that reads them
  /// before the loss. Per value, its block; `none` if it is not transient or not made in the forward part.
  std::vector<std::vector<uint32_t>> members;
  std::vector<uint32_t> blockOf;
  /// Per transient forward value, the position that makes it (`none` for others) and that of its last forward reader.
  std::vector<uint32_t> made, lastForward;

  uint32_t size() const { return uint32_t(begins.size()) - 1; }
  uint32_t getForwardEnd() const { return begins.back(); }
  /// The block whose forward part holds the position, or whose backward part does.
  uint32_t findAt(uint32_t position) const;
  /// Values of `to`'s boundary that are made in `from` or after it; nothing after the last block.
  std::vector<uint32_t> listCrossing(uint32_t from, uint32_t to) const;
};

/// At most 64 blocks; a single one where nothing is narrow.
Blocks findBlocks(const StepGraph &graph, std::span<const uint32_t> order);

} // namespace lowtide::solve
