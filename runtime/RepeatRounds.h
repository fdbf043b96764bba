//===- RepeatRounds.h - which round of which repeat made a value -----------===//
//
// The verifier's clock: every executed instruction and every start of a round is one tick.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_REPEATROUNDS_H
#define LOWTIDE_RUNTIME_REPEATROUNDS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lowtide::rt {

/// The repeats around the instruction that is being executed, innermost last.
class RepeatRounds {
public:
  /// Tick of the next instruction.
  uint64_t advance() { return ++now_; }
  uint64_t now() const { return now_; }

  void enter() { levels_.push_back({++now_, now_}); }
  void beginRound() { levels_.back().round = ++now_; }
  void leave() { levels_.pop_back(); }
  /// Tick at which the next round begins: what a round hands on counts as made then.
  uint64_t nextRound() const { return now_ + 1; }

  /// Whether a value made at tick `madeAt` may be read now. What an earlier round of a repeat made may not: the same
  /// bytes bear the same number in every round, so the number alone does not tell the rounds apart.
  bool isCurrent(uint64_t madeAt) const {
    return std::all_of(levels_.begin(), levels_.end(),
                       [&](const Level &level) { return madeAt < level.entered || madeAt >= level.round; });
  }

private:
  struct Level {
    uint64_t entered; ///< tick at which the repeat began
    uint64_t round;   ///< tick at which its current round began
  };
  uint64_t now_ = 0;
  std::vector<Level> levels_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_REPEATROUNDS_H
