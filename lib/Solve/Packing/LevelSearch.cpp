//===- LevelSearch.cpp - a packing of the full program points first --------------===//
//
// 1. A level has the fullest program points, a third more from level to level, and a
// block for all buffers that are alive in the same of them; the last level has
// all program points, and every buffer by itself.
// 2. A level is packed by ejection, beginning with the blocks of the level above,
// taken apart; who stands in another's way, or is new, waits for a place. Ejection
// looks at the whole level, or at the windows in which something waits.
// 3. A level that is not packed sends the search half the way back, with other
// random numbers.
//
//===----------------------------------------------------------------------===//
#include "LevelSearch.h"
#include "Ejection.h"
#include "WindowSearch.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace lowtide::solve {

/// Turns of ejection that a level gets at a time.
static constexpr uint64_t turns = 12;
/// Levels that may fail in windows. Where windows are what a problem needs, few do; elsewhere nearly all do, and soon.
static constexpr size_t mostFailures = 12;

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
  std::vector<uint64_t> sorted = live;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  for (size_t points = 3; points < sorted.size(); points += std::max<size_t>(1, points * 3 / 10))
    if (thresholds.empty() || sorted[points - 1] < thresholds.back())
      thresholds.push_back(sorted[points - 1]);
  thresholds.push_back(0);
}

LevelSearch::Level LevelSearch::makeLevel(uint64_t leastLive, bool isLast) const {
  std::vector<uint32_t> before{0};
  for (uint64_t bytes : live)
    before.push_back(before.back() + (bytes >= leastLive));
  Level level;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> known;
  for (const Buffer &buffer : buffers) {
    const uint32_t begin = before[buffer.begin], end = before[buffer.end], fresh = uint32_t(level.blocks.size());
    if (begin == end) {
      level.blockOf.push_back(none);
      continue;
    }
    const uint32_t number = isLast ? fresh : known.try_emplace({begin, end}, fresh).first->second;
    if (number == fresh)
      level.blocks.push_back({0, begin, end});
    level.blocks[number].bytes += buffer.bytes;
    level.blockOf.push_back(number);
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
  // Blocks that did not meet in fewer program points may meet now: the larger one stays.
  auto area = [&](uint32_t i) { return double(fine.blocks[i].bytes) * (fine.blocks[i].end - fine.blocks[i].begin); };
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return std::tuple(-area(a), a) < std::tuple(-area(b), b); });
  AliveLists standing(fine.blocks);
  for (uint32_t block : order) {
    const uint64_t from = result[block], to = from + fine.blocks[block].bytes;
    if (to > capacity)
      continue;
    if (standing.meetsAny(block, [&](uint32_t other) {
          return from < result[other] + fine.blocks[other].bytes && result[other] < to;
        }))
      result[block] = capacity;
    else
      standing.insert(block);
  }
  return result;
}

bool LevelSearch::run(Method method, uint64_t effort, uint64_t &work) {
  const uint64_t limit = work + effort;
  std::vector<Level> levels;
  // Of each level, what was found last.
  std::vector<std::vector<uint64_t>> found;
  size_t failures = 0;
  for (size_t number = 0, attempt = 0; work < limit; ++attempt) {
    if (levels.size() == number)
      levels.push_back(makeLevel(thresholds[number], /*isLast=*/number + 1 == thresholds.size()));
    const Level &level = levels[number];
    std::vector<uint64_t> places = number ? refine(levels[number - 1], found[number - 1], level)
                                          : std::vector<uint64_t>(level.blocks.size(), capacity);
    auto packAtOnce = [&] {
      EjectionSearch ejection(level.blocks, level.degrees, seed + attempt);
      return ejection.lower(places, capacity, std::min(limit - work, turns * ejection.getTurnEffort()), work);
    };
    const bool isPacked = method == Method::Windows
                              ? placeInWindows(level.blocks, places, capacity, limit - work, seed + attempt, work)
                              : packAtOnce();
    if (!isPacked) {
      if (method == Method::Windows && ++failures == mostFailures)
        return false;
      number /= 2;
      continue;
    }
    found.resize(number);
    found.push_back(std::move(places));
    if (++number == thresholds.size()) {
      offsets = std::move(found.back());
      return true;
    }
  }
  return false;
}

} // namespace lowtide::solve
