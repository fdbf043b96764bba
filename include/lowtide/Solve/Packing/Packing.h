//===- Packing.h - addresses for buffers with known live ranges ---*- C++ -*-===//
//
// Static memory planning (dynamic storage allocation): give each buffer an
// address so that buffers alive at the same time never overlap and the arena
// stays small.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lowtide::solve {

/// A range of bytes that is needed during the instructions begin, begin + 1, …,
/// end - 1.
struct Buffer {
  uint64_t bytes = 0;
  uint32_t begin = 0;
  uint32_t end = 0;

  bool operator==(const Buffer &other) const = default;
};

struct PackingOptions {
  /// Power of two; every offset is a multiple of it.
  uint64_t alignment = 64;
  /// Work that the search may spend after the plain orders, counted in
  /// looked-at neighbours: the same on every machine.
  uint64_t effort = 100'000'000;
  /// An arena that is no more than a nearness-th above the bound is good enough: the search stops there.
  uint64_t nearness = 4000;
  /// Seed of the search.
  uint64_t seed = 1;

  bool operator==(const PackingOptions &other) const = default;

  /// To tell many problems from each other: an arena that is good enough is nearly always found, and soon.
  PackingOptions getQuick() const {
    PackingOptions quick = *this;
    quick.nearness = 250;
    quick.effort /= 8;
    return quick;
  }
};

/// Whether an arena is within a 200th of its bound: what plans are held to.
constexpr bool isNearBound(uint64_t arenaBytes, uint64_t boundBytes) {
  return arenaBytes <= boundBytes + boundBytes / 200;
}

struct Packing {
  /// One per buffer, in bytes; 0 for empty buffers.
  std::vector<uint64_t> offsets;
  /// Size of the arena: the largest end of a buffer, rounded up to the
  /// alignment.
  uint64_t arenaBytes = 0;
  /// The most bytes alive at one instruction, sizes rounded up to the
  /// alignment: no arena is smaller.
  uint64_t boundBytes = 0;
  /// What found it: "size/best-fit", "ejection", …
  std::string method;

  bool isNear() const { return isNearBound(arenaBytes, boundBytes); }
};

/// Rounds up to a power of two. The sum must fit in 64 bits.
constexpr uint64_t alignTo(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

/// The most bytes alive at one instruction, sizes rounded up to `alignment`.
uint64_t liveBound(std::span<const Buffer> buffers, uint64_t alignment);

/// Whether the sizes, rounded up, add up to less than 2^63: what `pack` asks of
/// its input.
bool isPackable(std::span<const Buffer> buffers, uint64_t alignment);

/// Packs `buffers` (isPackable). Tries five orders × two ways to choose a gap
/// (Pisarchyk and Lee 2020; XLA's best fit of decreasing size), then lowers the
/// best by guided ejection (Nagata and Bräysy 2009);
/// stops as soon as the arena equals the bound, the search at `nearness`. Deterministic: depends on the sizes and on
/// who meets whom only, not on the order of the buffers or on how finely time is counted, so that a schedule and the
/// plan that is made of it take equally many bytes. Less nearness finds no lower arena.
Packing pack(std::span<const Buffer> buffers, const PackingOptions &options = {});

/// What `pack` returns, found once for the last problems that this was asked for, some thousands of buffers each:
/// searches come to one schedule on several ways, and passes pack a step to know its arena and again to place it. From
/// any thread.
Packing packOnce(std::span<const Buffer> buffers, const PackingOptions &options = {});

/// Whether `pack` sees the same in both: equally many buffers of the same sizes that meet in the same way.
bool areSameProblem(std::span<const Buffer> a, std::span<const Buffer> b, uint64_t alignment);

/// Index pairs of buffers that are alive together and overlap in memory, or one
/// that ends beyond the arena (paired with itself). Empty for a right packing.
/// Quadratic where many buffers are alive together: for tests and reports.
std::vector<std::pair<size_t, size_t>> findOverlaps(std::span<const Buffer> buffers, const Packing &packing);

} // namespace lowtide::solve
