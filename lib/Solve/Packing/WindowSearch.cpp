//===- WindowSearch.cpp - places for buffers, a window of time at a time ------===//
//
// Large neighbourhood search: the window around a buffer without a place is
// packed by ejection, in which whoever is alive outside of it too stays
// where it is. A window that is not packed grows.
//
//===----------------------------------------------------------------------===//
#include "WindowSearch.h"
#include "Ejection.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace lowtide::solve {

namespace {

/// Buffers that a window may move: at first, how many times as many in the next one, and in the last one.
constexpr size_t fewest = 24, growth = 3, most = 216;

class WindowSearch {
public:
  WindowSearch(std::span<const Buffer> buffers, std::vector<uint64_t> &offsets, uint64_t capacity, uint64_t seed);

  bool run(uint64_t effort, uint64_t &work);

private:
  struct Window {
    uint32_t begin, end;
    bool contains(const Buffer &buffer) const { return begin <= buffer.begin && buffer.end <= end; }
  };

  bool hasPlace(uint32_t i) const { return offsets[i] + buffers[i].bytes <= capacity; }
  /// The part of `byBegin` that begins within the window.
  std::span<const uint32_t> listBegun(const Window &window) const;
  /// From the window of the buffer on; with at least `count` buffers in it, or all of them.
  Window grow(Window window, size_t count) const;
  /// Packs what is alive in the window alone; false if that was not found.
  bool pack(const Window &window, uint64_t effort, uint64_t &work);

  std::span<const Buffer> buffers;
  std::vector<uint64_t> &offsets;
  const uint64_t capacity;
  std::mt19937_64 random;
  uint32_t last = 0;
  std::vector<uint32_t> byBegin, begins;
  /// Who is alive at every so many program points and began before.
  static constexpr uint32_t stride = 16;
  std::vector<std::vector<uint32_t>> alive;
  // Scratch of `pack`.
  std::vector<uint32_t> members;
  std::vector<Buffer> clipped;
  std::vector<uint64_t> places;
};

} // namespace

WindowSearch::WindowSearch(std::span<const Buffer> buffers, std::vector<uint64_t> &offsets, uint64_t capacity,
                           uint64_t seed)
    : buffers(buffers), offsets(offsets), capacity(capacity), random(seed), byBegin(buffers.size()) {
  std::iota(byBegin.begin(), byBegin.end(), 0);
  std::sort(byBegin.begin(), byBegin.end(),
            [&](uint32_t a, uint32_t b) { return std::pair(buffers[a].begin, a) < std::pair(buffers[b].begin, b); });
  for (uint32_t i : byBegin) {
    begins.push_back(buffers[i].begin);
    last = std::max(last, buffers[i].end);
  }
  alive.resize(last / stride + 1);
  for (uint32_t i : byBegin)
    for (uint32_t at = buffers[i].begin / stride + 1; at * stride < buffers[i].end; ++at)
      alive[at].push_back(i);
}

std::span<const uint32_t> WindowSearch::listBegun(const Window &window) const {
  const auto from = std::lower_bound(begins.begin(), begins.end(), window.begin);
  const auto to = std::lower_bound(from, begins.end(), window.end);
  return std::span(byBegin).subspan(size_t(from - begins.begin()), size_t(to - from));
}

WindowSearch::Window WindowSearch::grow(Window window, size_t count) const {
  for (uint32_t reach = 1;; reach *= 2) {
    const Window wider{window.begin - std::min(reach, window.begin), std::min(last, window.end + reach)};
    const std::span<const uint32_t> begun = listBegun(wider);
    const auto inside =
        size_t(std::count_if(begun.begin(), begun.end(), [&](uint32_t i) { return wider.contains(buffers[i]); }));
    if (inside >= count || wider.contains({0, 0, last}))
      return wider;
  }
}

bool WindowSearch::pack(const Window &window, uint64_t effort, uint64_t &work) {
  members.clear();
  auto add = [&](uint32_t i) {
    // Who has no place and reaches beyond has a window of its own.
    if (buffers[i].end > window.begin && (hasPlace(i) || window.contains(buffers[i])))
      members.push_back(i);
  };
  const uint32_t at = window.begin / stride;
  for (uint32_t i : alive[at])
    add(i);
  for (uint32_t i : listBegun({at * stride, window.end}))
    add(i);
  clipped.clear();
  places.clear();
  std::vector<char> stays;
  for (uint32_t i : members) {
    const Buffer &buffer = buffers[i];
    clipped.push_back({buffer.bytes, std::max(buffer.begin, window.begin), std::min(buffer.end, window.end)});
    places.push_back(offsets[i]);
    stays.push_back(!window.contains(buffer));
  }
  const std::vector<uint32_t> degrees = countDegrees(clipped);
  EjectionSearch ejection(clipped, degrees, random());
  ejection.fix(stays);
  if (!ejection.lower(places, capacity, std::min(effort, ejection.getTurnEffort()), work))
    return false;
  for (size_t k = 0; k < members.size(); ++k)
    offsets[members[k]] = places[k];
  return true;
}

bool WindowSearch::run(uint64_t effort, uint64_t &work) {
  const uint64_t limit = work + effort;
  for (uint32_t i : byBegin)
    for (size_t count = fewest; !hasPlace(i); count *= growth) {
      if (count > most || work >= limit)
        return false;
      const Window window = grow({buffers[i].begin, buffers[i].end}, count);
      if (!pack(window, limit - work, work) && window.contains({0, 0, last}))
        return false;
    }
  return true;
}

bool placeInWindows(std::span<const Buffer> buffers, std::vector<uint64_t> &offsets, uint64_t capacity, uint64_t effort,
                    uint64_t seed, uint64_t &work) {
  return WindowSearch(buffers, offsets, capacity, seed).run(effort, work);
}

} // namespace lowtide::solve
