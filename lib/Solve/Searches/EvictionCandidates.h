//===- EvictionCandidates.h - the value that eviction takes -----*- C++ -*-===//
//
// What may go is kept in blocks. A score rises as time passes, for a value is needed
// sooner then: what was the least of a block bounds it until something of the
// block changes. Blocks whose bound is above the least score of the others are
// not looked at. Blocks are bounded together, too, and those again: of n candidates
// an eviction passes by most without a look at each block.
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
    slot.assign(count, none);
    levels.assign(1, {});
    for (size_t most = (count + width - 1) / width; most > width; most = (most + width - 1) / width)
      levels.emplace_back();
  }

  /// `value` becomes one; it was none.
  void add(uint32_t value) {
    slot[value] = uint32_t(present.size());
    present.push_back(value);
    resize();
    forget(value);
  }

  /// It is one no longer; the last one takes its slot, and what bounds that one bounds it there.
  void remove(uint32_t value) {
    lower(slot[value], levels.front().back());
    slot[present.back()] = slot[value];
    present[slot[value]] = present.back();
    present.pop_back();
    slot[value] = none;
    resize();
  }

  /// What `ask` said of `value` holds no longer.
  void forget(uint32_t value) { limit(value, 0); }

  /// It holds before `when` at most.
  void limit(uint32_t value, uint32_t when) {
    if (slot[value] != none)
      lower(slot[value], {std::numeric_limits<double>::infinity(), when});
  }

  /// Of those that may go, the one of the least score, of equal ones the lowest number; `none` if none may. Calls
  /// `ask(value)`, which returns an Answer, of those of which it is not known that they are not the one.
  template <typename Ask> uint32_t findLeast(uint32_t now, Ask ask) {
    Least least;
    auto isOver = [&](const Bound &bound, size_t) { return bound.until <= now; };
    visit(levels.size() - 1, 0, levels.back().size(), isOver, ask, least);
    // Powers are exact but for a few bits.
    constexpr double nearly = 1 - 1e-9;
    // A block that does not hold was looked at just now; of blocks that are bounded together others may hold.
    auto mayBeLeast = [&](const Bound &bound, size_t level) {
      return (level > 0 || bound.until > now) && (least.value == none || bound.least * nearly <= least.score);
    };
    visit(levels.size() - 1, 0, levels.back().size(), mayBeLeast, ask, least);
    return least.value;
  }

private:
  static constexpr size_t width = 8;

  /// At first of nothing.
  struct Bound {
    /// No score is below it before `until`.
    double least = std::numeric_limits<double>::infinity();
    uint32_t until = UINT32_MAX;

    bool operator==(const Bound &other) const = default;
    void include(const Bound &other) {
      least = std::min(least, other.least);
      until = std::min(until, other.until);
    }
  };
  struct Least {
    uint32_t value = none;
    double score = 0;
  };

  /// Bounds what holds a slot by what bounds another value, too. Where nothing changes, nothing does above it.
  void lower(size_t place, const Bound &by) {
    for (std::vector<Bound> &level : levels) {
      place /= width;
      Bound bound = level[place];
      bound.include(by);
      if (bound == level[place])
        return;
      level[place] = bound;
    }
  }

  /// As many blocks as the candidates fill. What bounds blocks that are gone bounds those that are left.
  void resize() {
    size_t size = present.size();
    for (std::vector<Bound> &level : levels) {
      size = (size + width - 1) / width;
      if (level.size() == size)
        return;
      level.resize(size);
    }
  }

  /// Looks, in their order, at the blocks below `from` to `end` of a level that are wanted.
  template <typename Wanted, typename Ask>
  void visit(size_t level, size_t from, size_t end, Wanted &isWanted, Ask &ask, Least &least) {
    for (size_t i = from; i < end; ++i) {
      if (!isWanted(levels[level][i], level))
        continue;
      if (level == 0) {
        look(i, ask, least);
        continue;
      }
      const size_t first = i * width, last = std::min(first + width, levels[level - 1].size());
      visit(level - 1, first, last, isWanted, ask, least);
      Bound bound;
      for (size_t below = first; below < last; ++below)
        bound.include(levels[level - 1][below]);
      levels[level][i] = bound;
    }
  }

  template <typename Ask> void look(size_t number, Ask &ask, Least &least) {
    Bound bound;
    for (size_t i = number * width, end = std::min(i + width, present.size()); i < end; ++i) {
      const uint32_t value = present[i];
      const Answer answer = ask(value);
      bound.until = std::min(bound.until, answer.until);
      if (!answer.mayGo)
        continue;
      bound.least = std::min(bound.least, answer.score);
      if (least.value == none || answer.score < least.score || (answer.score == least.score && value < least.value))
        least = {value, answer.score};
    }
    levels.front()[number] = bound;
  }

  /// The candidates, and where in this list each value is.
  std::vector<uint32_t> present, slot;
  /// Of each `width` of them, a block; of each `width` blocks; and so on up to a level of few.
  std::vector<std::vector<Bound>> levels;
};

} // namespace lowtide::solve
