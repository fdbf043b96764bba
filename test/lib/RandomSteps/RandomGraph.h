//===- RandomGraph.h - training graphs that no one thought of --------*- C++ -*-===//
//
// Random models, valid by construction: layers of every family on vectors, sequences and images, with residuals,
// branches, views, broadcasts, ties, integers, random numbers and several types, and a loss.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "StepGraph.h"
#include "llvm/ADT/ArrayRef.h"

namespace lowtide::test {

/// Uniform 64-bit numbers; the same on every machine.
class RandomNumbers {
public:
  explicit RandomNumbers(uint64_t seed) : state(seed) {
    state = next(); // streams of neighbouring seeds have nothing in common
  }
  uint64_t next();
  /// In [0, count).
  int64_t below(int64_t count) { return static_cast<int64_t>(next() % static_cast<uint64_t>(count)); }
  /// In [low, high].
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T> const T &pick(llvm::ArrayRef<T> from) {
    return from[static_cast<size_t>(below(static_cast<int64_t>(from.size())))];
  }

private:
  uint64_t state;
};

/// The graph and the settings that belong to a seed.
StepGraph makeRandomGraph(uint64_t seed, StepSettings &settings);

} // namespace lowtide::test
