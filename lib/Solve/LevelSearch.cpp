//===- LevelSearch.cpp - a packing of the full moments first --------------===//
//
// 1. A level has the moments with at least so many bytes alive, fewer from level
// to level; the last one has all of them, and every buffer by itself.
// 2. A level is packed by ejection, beginning with the blocks of the level above,
// taken apart; who stands in another's way, or is new, waits for a place.
// 3. A level that is not packed sends the search back to the first one, with
// other random numbers.
//
//===----------------------------------------------------------------------===//
#include "LevelSearch.h"
#include "Ejection.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace lowtide::solve {

std::vector<uint64_t> countLive(std::span<const Buffer> buffers) {
  std::vector<uint64_t> live;
  for (const Buffer &buffer : buffers) {
    live.resize(std::max<size_t>(live.size(), buffer.end + 1));
    live[buffer.begin] += buffer.bytes;
    live[buffer.end] -= buffer.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  return live;
}

LevelSearch::LevelSearch(std::span<const Buffer> buffers, uint64_t capacity, uint64_t seed)
    : buffers(buffers), capacity(capacity), seed(seed), live(countLive(buffers)) {
  size_t moments = 0;
  for (unsigned percent : {97, 94, 90, 85, 78, 70, 60, 45, 25, 0}) {
    const uint64_t least = capacity / 100 * percent;
    const size_t kept = size_t(std::count_if(live.begin(), live.end(), [&](uint64_t bytes) { return bytes >= least; }));
    if (kept > moments)
      thresholds.push_back(least);
    moments = kept;
  }
  thresholds.push_back(0);
}

LevelSearch::Level LevelSearch::makeLevel(uint64_t leastLive, uint64_t mostBytes, const Level *coarse) const {
  std::vector<uint32_t> before{0};
  for (uint64_t bytes : live)
    before.push_back(before.back() + (bytes >= leastLive));
  Level level;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> open;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const uint32_t begin = before[buffers[i].begin], end = before[buffers[i].end];
    if (begin == end) {
      level.blockOf.push_back(none);
      continue;
    }
    auto [it, isNew] =
        open.try_emplace({begin, end, coarse ? coarse->blockOf[i] : none}, uint32_t(level.blocks.size()));
    if (!isNew && level.blocks[it->second].bytes + buffers[i].bytes > mostBytes) {
      it->second = uint32_t(level.blocks.size());
      isNew = true;
    }
    if (isNew)
      level.blocks.push_back({0, begin, end});
    level.blocks[it->second].bytes += buffers[i].bytes;
    level.blockOf.push_back(it->second);
  }
  level.degrees = countDegrees(level.blocks);
  return level;
}

std::vector<uint64_t> LevelSearch::refine(const Level &coarse, const std::vector<uint64_t> &places,
                                          const Level &fine) const {
  std::vector<uint32_t> parent(fine.blocks.size(), none), order(fine.blocks.size());
  for (size_t i = 0; i < buffers.size(); ++i)
    if (fine.blockOf[i] != none)
      parent[fine.blockOf[i]] = coarse.blockOf[i];
  std::iota(order.begin(), order.end(), 0);
  // In a block, what dies last lies lowest.
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Buffer &x = fine.blocks[a], &y = fine.blocks[b];
    return std::tuple(y.end, x.begin, a) < std::tuple(x.end, y.begin, b);
  });
  std::vector<uint64_t> next = places, result(fine.blocks.size(), capacity);
  for (uint32_t block : order)
    if (parent[block] != none) {
      result[block] = next[parent[block]];
      next[parent[block]] += fine.blocks[block].bytes;
    }
  // Blocks that did not meet in fewer moments may meet now: the larger one stays.
  auto area = [&](uint32_t i) { return double(fine.blocks[i].bytes) * (fine.blocks[i].end - fine.blocks[i].begin); };
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return std::tuple(-area(a), a) < std::tuple(-area(b), b); });
  StandingList standing(fine.blocks);
  std::vector<uint32_t> met;
  for (uint32_t block : order) {
    const uint64_t from = result[block], to = from + fine.blocks[block].bytes;
    if (to > capacity)
      continue;
    const size_t count = standing.listMeeting(block, met);
    if (std::any_of(met.begin(), met.begin() + ptrdiff_t(count), [&](uint32_t other) {
          return from < result[other] + fine.blocks[other].bytes && result[other] < to;
        }))
      result[block] = capacity;
    else
      standing.insert(block, from);
  }
  return result;
}

bool LevelSearch::run(uint64_t effort, uint64_t &work) {
  // Large blocks are soon found a place; where that fails, smaller ones get a share of the effort.
  constexpr uint64_t divisors[] = {1, 64}, prices[] = {1, 3};
  uint64_t paid[std::size(divisors)] = {};
  const uint64_t limit = work + effort;
  for (unsigned attempt = 0; work < limit; ++attempt) {
    const size_t kind = size_t(std::min_element(std::begin(paid), std::end(paid)) - std::begin(paid));
    const uint64_t mostBytes = capacity / divisors[kind], before = work;
    Level level = makeLevel(thresholds.front(), mostBytes, nullptr);
    std::vector<uint64_t> places(level.blocks.size(), capacity);
    for (size_t number = 1;; ++number) {
      EjectionSearch ejection(level.blocks, level.degrees, seed + attempt);
      const uint64_t spend = std::min(limit - std::min(limit, work), 12 * ejection.getTurnEffort());
      if (!ejection.lower(places, capacity, spend, work))
        break;
      if (number == thresholds.size()) {
        offsets = std::move(places);
        return true;
      }
      Level fine = makeLevel(thresholds[number], number + 1 < thresholds.size() ? mostBytes : 0, &level);
      places = refine(level, places, fine);
      level = std::move(fine);
    }
    paid[kind] += prices[kind] * (work - before) + 1;
  }
  return false;
}

} // namespace lowtide::solve
