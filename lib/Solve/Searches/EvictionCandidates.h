//===- EvictionCandidates.h - the value that eviction takes -----*- C++ -*-===//
//
// What may go is kept in blocks. A score rises as time passes, for a value is needed
// sooner then: what was the least of a block bounds it until something of the
// block changes. Blocks whose bound is above the least score of the others are
// not looked at.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace lowtide::solve {

class EvictionCandidates {
public:
  static constexpr uint32_t none = UINT32_MAX;

  /// What is known of a candidate.
  struct Answer {
    /// Whether it may go now.
    bool mayGo = false;
    double score = 0;
    /// Before this program point the answer is the same but for a score that rises; 0: not even now.
    uint32_t until = 0;
  };

  /// Values are numbered 0, 1, …, `count` - 1; none is a candidate.
  void reset(size_t count) {
    present.clear();
    blocks.clear();
    slot.assign(count, none);
  }

  /// `value` becomes one; it was none.
  void add(uint32_t value) {
    slot[value] = uint32_t(present.size());
    present.push_back(value);
    blocks.resize((present.size() + width - 1) / width);
    forget(value);
  }

  /// It is one no longer; the last one takes its slot, and what bounds that one bounds it there.
  void remove(uint32_t value) {
    Block &block = blocks[slot[value] / width];
    const Block &last = blocks.back();
    block = {std::min(block.least, last.least), std::min(block.until, last.until)};
    slot[present.back()] = slot[value];
    present[slot[value]] = present.back();
    present.pop_back();
    slot[value] = none;
    blocks.resize((present.size() + width - 1) / width);
  }

  /// What `ask` said of `value` holds no longer.
  void forget(uint32_t value) {
    if (slot[value] != none)
      blocks[slot[value] / width].until = 0;
  }

  /// It holds before `when` at most.
  void limit(uint32_t value, uint32_t when) {
    if (slot[value] != none)
      blocks[slot[value] / width].until = std::min(blocks[slot[value] / width].until, when);
  }

  /// Of those that may go, the one of the least score, of equal ones the lowest number; `none` if none may. Calls
  /// `ask(value)`, which returns an Answer, of those of which it is not known that they are not the one.
  template <typename Ask> uint32_t findLeast(uint32_t now, Ask ask) {
    Least least;
    for (size_t i = 0; i < blocks.size(); ++i)
      if (blocks[i].until <= now)
        look(i, ask, least);
    // Powers are exact but for a few bits.
    constexpr double nearly = 1 - 1e-9;
    for (size_t i = 0; i < blocks.size(); ++i)
      if (blocks[i].until > now && (least.value == none || blocks[i].least * nearly <= least.score))
        look(i, ask, least);
    return least.value;
  }

private:
  static constexpr size_t width = 8;

  struct Block {
    /// No score of the block is below it before `until`.
    double least = 0;
    uint32_t until = 0;
  };
  struct Least {
    uint32_t value = none;
    double score = 0;
  };

  template <typename Ask> void look(size_t number, Ask ask, Least &least) {
    Block block{std::numeric_limits<double>::infinity(), UINT32_MAX};
    for (size_t i = number * width, end = std::min(i + width, present.size()); i < end; ++i) {
      const uint32_t value = present[i];
      const Answer answer = ask(value);
      block.until = std::min(block.until, answer.until);
      if (!answer.mayGo)
        continue;
      block.least = std::min(block.least, answer.score);
      if (least.value == none || answer.score < least.score || (answer.score == least.score && value < least.value))
        least = {value, answer.score};
    }
    blocks[number] = block;
  }

  /// The candidates, and where in this list each value is.
  std::vector<uint32_t> present, slot;
  /// Of each `width` of them.
  std::vector<Block> blocks;
};

} // namespace lowtide::solve
