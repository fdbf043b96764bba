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
      : buffers(buffers), degrees(degrees), random(seed), byBegin(buffers), byEnd(buffers) {}

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
  bool insert(uint32_t buffer);
  void throwOut(uint32_t buffer);
  uint32_t takeWaiting();

  struct Occupant {
    uint64_t begin, end;
    double price;
  };

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
  // Scratch of `insert`.
  std::vector<uint32_t> found;
  std::vector<Occupant> begins, ends;
  /// How many fixed ones are among the first i of `begins` and of `ends`.
  std::vector<uint32_t> fixedBegins, fixedEnds;
};

} // namespace lowtide::solve
