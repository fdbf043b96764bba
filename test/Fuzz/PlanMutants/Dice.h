//===- Dice.h - numbers that a seed decides --------------------------------===//
#ifndef LOWTIDE_TEST_FUZZ_PLANMUTANTS_DICE_H
#define LOWTIDE_TEST_FUZZ_PLANMUTANTS_DICE_H

#include <cstdint>
#include <iterator>

namespace lowtide::fuzz {

/// SplitMix64: the same seed, the same numbers, on every machine.
class Dice {
public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// A number below `count`; 0 where that is 0.
  uint64_t below(uint64_t count) { return count ? next() % count : 0; }
  bool oneIn(uint64_t count) { return below(count) == 0; }
  template <typename List> auto &pick(List &list) { return *std::next(std::begin(list), long(below(std::size(list)))); }

private:
  uint64_t state_;
};

} // namespace lowtide::fuzz

#endif // LOWTIDE_TEST_FUZZ_PLANMUTANTS_DICE_H
