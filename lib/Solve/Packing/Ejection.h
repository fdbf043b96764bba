//===- Ejection.h - a packing below a given height --------------*- C++ -*-===//
//
// The search in Packing: makes room for a buffer by throwing others out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Standing.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace lowtide::solve {

/// With how many others each buffer is alive.
std::vector<uint32_t> countDegrees(std::span<const Buffer> buffers);

/// Guided ejection (Nagata and Bräysy 2009, there for vehicles): a buffer that has no place takes the one whose
/// occupants are the cheapest to throw out, and these wait for a place in turn. Whoever could not stay becomes more
/// expensive.
class EjectionSearch {
public:
  /// Sizes are multiples of the alignment and not 0; `degrees[i]` buffers are alive together with buffer i.
  EjectionSearch(std::span<const Buffer> buffers, std::span<const uint32_t> degrees, uint64_t seed)
      : buffers(buffers), degrees(degrees), random(seed), byBegin(buffers), byEnd(buffers), begins(buffers.size() + 1),
        ends(buffers.size() + 1) {}

  /// Those for which this is not 0 are never moved: they have places below every `capacity`, and none overlap. None at
  /// first.
  void fix(std::vector<char> which) { fixed = std::move(which); }

  /// Moves buffers until all end at or below `capacity`, where those that do so at first must not overlap; false, with
  /// `offsets` as they were, when `effort` looked-at neighbours did not do. Adds what was spent to `work`.
  bool lower(std::vector<uint64_t> &offsets, uint64_t capacity, uint64_t effort, uint64_t &work);

  /// What one turn may spend at most.
  uint64_t getTurnEffort() const;

private:
  /// One attempt from `offsets`.
  bool run(uint64_t effort);
  /// Where `buffer` goes at the least price; those who stand there are thrown out. False if fixed ones stand
  /// everywhere.
  bool insert(uint32_t buffer) { return fixed.empty() ? insertAmong<false>(buffer) : insertAmong<true>(buffer); }
  template <bool hasFixed> bool insertAmong(uint32_t buffer);
  void stand(uint32_t buffer);
  /// Lets a buffer that no list has any more wait.
  void wait(uint32_t buffer);
  uint32_t takeWaiting();

  bool isFixed(uint32_t buffer) const { return !fixed.empty() && fixed[buffer]; }
  uint64_t getEnd(uint32_t buffer) const { return offsets[buffer] + buffers[buffer].bytes; }

  std::span<const Buffer> buffers;
  std::span<const uint32_t> degrees;
  std::vector<char> fixed;
  std::mt19937_64 random;
  uint64_t capacity = 0, smallest = 0, spent = 0;
  std::vector<uint64_t> offsets;
  std::vector<double> price, weight;
  /// Those who have a place, by their first and by their last bytes.
  StandingList byBegin, byEnd;
  /// Buffers without a place: large ones, and small ones, whose turn comes later.
  std::vector<uint32_t> waiting, later;
  /// Buffers in order of a key; as many as a search meets, and one more.
  struct Sorted {
    explicit Sorted(size_t size) : keys(size), prices(size), numbers(size) {}

    /// Makes each of the first `count` prices the sum of those before it.
    void addUp(size_t count);

    std::vector<uint64_t> keys;
    std::vector<double> prices;
    std::vector<uint32_t> numbers;
  };
  /// Scratch of `insert`: who meets a buffer, by first and by last bytes; these without numbers where none is fixed.
  Sorted begins, ends;
};

} // namespace lowtide::solve
