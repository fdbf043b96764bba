//===- Ejection.h - a packing below a given height --------------*- C++ -*-===//
//
// The search behind Packing: makes room for a buffer by throwing others out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace lowtide::solve {

/// Who is alive at the same time: those of buffer i are list[first[i]] … list[first[i + 1] - 1].
struct Neighbourhood {
  std::vector<size_t> first;
  std::vector<uint32_t> list;

  std::span<const uint32_t> of(uint32_t i) const { return std::span(list).subspan(first[i], first[i + 1] - first[i]); }
  size_t degree(uint32_t i) const { return first[i + 1] - first[i]; }
};

/// Guided ejection (Nagata and Bräysy 2009, there for vehicles): a buffer that has no place takes the one whose
/// occupants are the cheapest to throw out, and these wait for a place in turn. Whoever could not stay becomes dearer.
class EjectionSearch {
public:
  /// `sizes` are rounded up to the alignment; buffers of size 0 stay where they are.
  EjectionSearch(std::span<const uint64_t> sizes, const Neighbourhood &neighbours, uint64_t seed)
      : sizes(sizes), neighbours(neighbours), random(seed) {}

  /// Moves buffers, `offsets` being a right packing of any height, until all end at or below `capacity`; false, with
  /// `offsets` as they were, when `effort` looked-at neighbours did not do. Adds what was spent to `work`.
  bool lower(std::vector<uint64_t> &offsets, uint64_t capacity, uint64_t effort, uint64_t &work);

private:
  /// One attempt from `offsets`.
  bool run(uint64_t effort);
  /// Where `buffer` goes at the least price; those who stand there are thrown out.
  void insert(uint32_t buffer);
  void throwOut(uint32_t buffer);
  uint32_t takeWaiting();

  struct Occupant {
    uint64_t begin, end;
    double price;
  };

  std::span<const uint64_t> sizes;
  const Neighbourhood &neighbours;
  std::mt19937_64 random;
  uint64_t capacity = 0, smallest = 0, spent = 0;
  std::vector<uint64_t> offsets;
  std::vector<char> placed;
  std::vector<double> price, weight;
  /// Buffers without a place: large ones, and small ones, whose turn comes later.
  std::vector<uint32_t> waiting, later;
  // Scratch of `insert`.
  std::vector<Occupant> byBegin, byEnd;
  std::vector<uint64_t> candidates;
};

} // namespace lowtide::solve
