//===- Packing.cpp - addresses for buffers with known live ranges -----------===//
//
// 1. Round sizes up; sweep the live ranges for the lower bound and for how many
// buffers each is alive together with.
// 2. Place the buffers one by one, in several orders, each in a gap between
// those of its neighbours that stand.
// 3. Where no order comes to 1.004 of the bound, pack the full program points first
// (LevelSearch.h), of the whole step and of windows of time (WindowSearch.h), and
// by guided ejection (Ejection.h), in turns that become longer; then nearer by the
// latter, or, where 1.004 is not found, as near as halving the distance gets, and
// ejection from there.
// Where buffers are very many, a sweep over time with a list of free ranges
// takes the place of 2 and 3.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Packing/Packing.h"
#include "Ejection.h"
#include "LevelSearch.h"
#include "OccupiedRanges.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

namespace lowtide::solve {
namespace {

enum class Fit { Best, Lowest };

/// A buffer begins (bytes > 0) or ends at a time; ends sort before begins.
struct Event {
  uint32_t time;
  bool begins;
  uint32_t buffer;
  auto key() const { return std::tuple(time, begins, buffer); }
  bool operator<(const Event &other) const { return key() < other.key(); }
};

std::vector<Event> sweep(std::span<const Buffer> buffers) {
  std::vector<Event> events;
  events.reserve(2 * buffers.size());
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].bytes && buffers[i].begin < buffers[i].end) {
      events.push_back({buffers[i].begin, true, i});
      events.push_back({buffers[i].end, false, i});
    }
  std::sort(events.begin(), events.end());
  return events;
}

} // namespace

std::vector<uint32_t> countDegrees(std::span<const Buffer> buffers) {
  std::vector<uint32_t> begins, ends, degrees;
  for (const Buffer &buffer : buffers) {
    begins.push_back(buffer.begin);
    ends.push_back(buffer.end);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  for (const Buffer &buffer : buffers) {
    const ptrdiff_t begun = std::lower_bound(begins.begin(), begins.end(), buffer.end) - begins.begin();
    const ptrdiff_t ended = std::upper_bound(ends.begin(), ends.end(), buffer.begin) - ends.begin();
    degrees.push_back(uint32_t(begun - ended - 1));
  }
  return degrees;
}

namespace {

/// An order of buffers, and how far each fit came in it.
struct Order {
  std::vector<uint32_t> buffers;
  /// How many were looked at, where all of them were placed up from zero.
  size_t fromBottom[2] = {SIZE_MAX, SIZE_MAX};
};

/// From the first program point to the last.
uint32_t countPoints(std::span<const Buffer> buffers) {
  uint32_t points = 0;
  for (const Buffer &buffer : buffers)
    points = std::max(points, buffer.end);
  return points;
}

/// One packing problem; places orders and keeps the best result.
class Packer {
public:
  /// `buffers` take bytes, multiples of the alignment, in live ranges that are not empty.
  Packer(std::span<const Buffer> buffers, const PackingOptions &options)
      : buffers(buffers), alignment(options.alignment), nearness(options.nearness), fromTop(buffers.size()),
        offsets(buffers.size()), standing(countPoints(buffers)) {
    best.boundBytes = liveBound(buffers, alignment);
    best.offsets.assign(buffers.size(), 0);
    best.arenaBytes = UINT64_MAX;
    degrees = countDegrees(buffers);
  }

  /// Places in `order` and keeps the result if it is the best so far; gives up where it cannot be, and does not begin
  /// where it has come to nothing in the same way.
  void place(Order &order, Fit fit, const char *method);
  /// Places in order of time, from a list of free ranges.
  void placeByTime();
  /// Looks for a packing of a height, the full program points first; false if it was not found.
  bool searchLevels(uint64_t height, uint64_t effort, uint64_t seed,
                    LevelSearch::Method method = LevelSearch::Method::Ejection);
  /// The same by ejection from the best packing so far on.
  bool lower(EjectionSearch &ejection, uint64_t height, uint64_t effort);
  /// Looks for a packing of the height that is within reach nearly always. Most that is found is found soon, by levels
  /// or by ejection, and in windows of time where a step has many alike: they take turns, each four times as long as
  /// the one before. How long a turn is does not depend on `effort`, so that more of it finds what less has found.
  bool searchNear(uint64_t effort, uint64_t seed, EjectionSearch &ejection);
  /// Lowers the best packing so far, as far as `effort` reaches.
  void search(uint64_t effort, uint64_t seed);

  /// The height that is within reach nearly always.
  uint64_t getNearHeight() const { return (best.boundBytes + best.boundBytes / 250) & ~(alignment - 1); }

  /// With how many buffers one is alive.
  uint32_t degree(uint32_t i) const { return degrees[i]; }
  /// The largest arena from which the plain orders need not go on.
  bool isGoodEnough() const {
    return best.arenaBytes <= best.boundBytes + (nearness < finest ? best.boundBytes / nearness : 0);
  }
  /// Which buffers are placed down from the bound; none at first.
  void setFromTop(std::vector<bool> which) { fromTop = std::move(which); }
  uint64_t work = 0;
  Packing best;

private:
  void keep(uint64_t arena, const char *method) {
    if (arena >= best.arenaBytes)
      return;
    best.arenaBytes = arena;
    best.offsets = offsets;
    best.method = method;
  }

  /// The same for offsets whose arena no one knows.
  void keep(const char *method) {
    uint64_t arena = 0;
    for (size_t i = 0; i < buffers.size(); ++i)
      arena = std::max(arena, offsets[i] + buffers[i].bytes);
    keep(arena, method);
  }

  /// Places until the arena is as large as the best so far; how many were looked at.
  size_t placeInOrder(std::span<const uint32_t> order, Fit fit, const char *method);

  /// As near as the search tries to come.
  static constexpr uint64_t finest = 4000;
  /// From this nearness on one packing is looked for with all effort; below, many are told from each other.
  static constexpr uint64_t thorough = 333;

  std::span<const Buffer> buffers;
  uint64_t alignment, nearness;
  std::vector<uint32_t> degrees;
  // Buffers that are placed down from the bound instead of up from zero.
  std::vector<bool> fromTop;
  // State of one placement.
  std::vector<uint64_t> offsets;
  OccupiedRanges standing;
};

void Packer::place(Order &order, Fit fit, const char *method) {
  size_t &known = order.fromBottom[unsigned(fit)];
  auto areFromBottom = [&](size_t count) {
    return count <= order.buffers.size() &&
           std::none_of(order.buffers.begin(), order.buffers.begin() + ptrdiff_t(count),
                        [&](uint32_t i) { return fromTop[i]; });
  };
  // The best is no larger since then.
  if (areFromBottom(known))
    return;
  const size_t count = placeInOrder(order.buffers, fit, method);
  if (areFromBottom(count))
    known = count;
}

size_t Packer::placeInOrder(std::span<const uint32_t> order, Fit fit, const char *method) {
  standing.clear();
  uint64_t arena = 0;
  for (size_t placed = 0; placed < order.size(); ++placed) {
    const uint32_t i = order[placed];
    const Buffer &buffer = buffers[i];
    const uint64_t size = buffer.bytes;
    uint64_t chosen = UINT64_MAX, chosenGap = UINT64_MAX;
    auto consider = [&](uint64_t from, uint64_t to) {
      if (fromTop[i])
        to = std::min(to, best.boundBytes);
      if (to < from + size)
        return true;
      if (fromTop[i])
        chosen = to - size;
      else if (to - from < chosenGap)
        chosen = from, chosenGap = to - from;
      return fromTop[i] || (fit == Fit::Best && chosenGap > size);
    };
    const uint64_t end = standing.forEachGap(buffer.begin, buffer.end, size, consider);
    if (fromTop[i])
      consider(end, best.boundBytes);
    offsets[i] = chosen == UINT64_MAX ? end : chosen;
    arena = std::max(arena, offsets[i] + size);
    if (arena >= best.arenaBytes)
      return placed + 1;
    standing.take(buffer.begin, buffer.end, offsets[i], offsets[i] + size);
  }
  keep(arena, method);
  return order.size();
}

void Packer::placeByTime() {
  std::set<std::pair<uint64_t, uint64_t>> byOffset,
      bySize; // (offset, size) and (size, offset) of free ranges
  uint64_t arena = 0;
  auto insert = [&](uint64_t offset, uint64_t size) {
    byOffset.insert({offset, size});
    bySize.insert({size, offset});
  };
  auto remove = [&](uint64_t offset, uint64_t size) {
    byOffset.erase({offset, size});
    bySize.erase({size, offset});
  };
  for (const Event &event : sweep(buffers)) {
    uint64_t size = buffers[event.buffer].bytes;
    if (event.begins) {
      auto gap = bySize.lower_bound({size, 0});
      if (gap != bySize.end()) {
        auto [gapSize, offset] = *gap;
        remove(offset, gapSize);
        if (gapSize > size)
          insert(offset + size, gapSize - size);
        offsets[event.buffer] = offset;
        continue;
      }
      // Grow the arena, from the free range at its end if there is one.
      uint64_t offset = arena;
      if (!byOffset.empty()) {
        auto [lastOffset, lastSize] = *byOffset.rbegin();
        if (lastOffset + lastSize == arena) {
          remove(lastOffset, lastSize);
          offset = lastOffset;
        }
      }
      offsets[event.buffer] = offset;
      arena = offset + size;
      continue;
    }
    uint64_t offset = offsets[event.buffer];
    auto next = byOffset.lower_bound({offset, 0});
    if (next != byOffset.begin()) {
      auto [previousOffset, previousSize] = *std::prev(next);
      if (previousOffset + previousSize == offset) {
        remove(previousOffset, previousSize);
        offset = previousOffset;
        size += previousSize;
      }
    }
    if (next != byOffset.end() && next->first == offset + size) {
      auto [nextOffset, nextSize] = *next;
      remove(nextOffset, nextSize);
      size += nextSize;
    }
    insert(offset, size);
  }
  keep(arena, "time/best-fit");
}

bool Packer::searchLevels(uint64_t height, uint64_t effort, uint64_t seed, LevelSearch::Method method) {
  LevelSearch levels(buffers, height, seed);
  if (!levels.run(method, effort, work))
    return false;
  offsets = levels.getOffsets();
  keep("levels");
  return true;
}

bool Packer::lower(EjectionSearch &ejection, uint64_t height, uint64_t effort) {
  offsets = best.offsets;
  if (!ejection.lower(offsets, height, effort, work))
    return false;
  keep("ejection");
  return true;
}

bool Packer::searchNear(uint64_t effort, uint64_t seed, EjectionSearch &ejection) {
  uint64_t limit = work + effort;
  const uint64_t height = getNearHeight();
  for (uint64_t turn = ejection.getTurnEffort() / 64 + 1; work < limit; turn *= 4) {
    const uint64_t before = work;
    if (searchLevels(height, std::min(3 * turn, limit - work), seed) ||
        (work < limit && lower(ejection, height, std::min(turn, limit - work))))
      return true;
    // Windows get as much as the others, and do not shorten their turns.
    const uint64_t spent = work - before;
    if (searchLevels(height, spent, seed, LevelSearch::Method::Windows))
      return true;
    limit += work - before - spent;
    seed += 7919; // attempts within a turn count up from its seed
  }
  return false;
}

void Packer::search(uint64_t effort, uint64_t seed) {
  const uint64_t bound = best.boundBytes;
  EjectionSearch ejection(buffers, degrees, seed);
  auto lower = [&](uint64_t height, uint64_t spend) { return this->lower(ejection, height, spend); };
  // What is within reach nearly always, and what mostly is, with all the effort there is: a few thousandths less let a
  // plan into more budgets. Then less effort, for what little it gives.
  bool isFound = best.arenaBytes <= getNearHeight() || searchNear(4 * effort, seed, ejection);
  if (const uint64_t height = (bound + bound / thorough) & ~(alignment - 1);
      isFound && nearness >= thorough && best.arenaBytes > height)
    isFound = lower(height, std::min(4 * effort, 64 * ejection.getTurnEffort()));
  for (uint64_t share : {uint64_t(500), uint64_t(1000), finest}) {
    if (!isFound || share > nearness)
      break;
    const uint64_t height = (bound + bound / share) & ~(alignment - 1);
    isFound = best.arenaBytes <= height || searchLevels(height, effort / 8, seed) || lower(height, effort / 16);
  }
  // Not within reach: at least lower than it was.
  const uint64_t limit = work + effort;
  for (uint64_t low = bound + bound / 250; best.arenaBytes > low + low / 1000 && work < limit;) {
    const uint64_t height = alignTo(low + (best.arenaBytes - low) / 2, alignment);
    if (height >= best.arenaBytes)
      break;
    if (!searchLevels(height, effort / 4, seed) && !lower(height, effort / 12))
      low = height;
  }
  if (nearness < thorough)
    return;
  // What levels have found gives way to ejection, in smaller steps where it fails.
  const uint64_t last = work + 4 * effort;
  for (uint64_t part : {2, 4, 8})
    while (!best.isNear() && work < last) {
      const uint64_t step = alignTo((best.arenaBytes - getNearHeight()) / part + 1, alignment);
      if (!lower(best.arenaBytes - step, std::min(24 * ejection.getTurnEffort(), last - work)))
        break;
    }
}

} // namespace

uint64_t liveBound(std::span<const Buffer> buffers, uint64_t alignment) {
  uint64_t live = 0, most = 0;
  for (const Event &event : sweep(buffers)) {
    uint64_t size = alignTo(buffers[event.buffer].bytes, alignment);
    live = event.begins ? live + size : live - size;
    most = std::max(most, live);
  }
  return most;
}

bool isPackable(std::span<const Buffer> buffers, uint64_t alignment) {
  uint64_t sum = 0;
  for (const Buffer &buffer : buffers) {
    uint64_t size;
    if (__builtin_add_overflow(buffer.bytes, alignment - 1, &size) || __builtin_add_overflow(sum, size, &sum))
      return false;
  }
  return sum < uint64_t(1) << 63;
}

namespace {

/// The same buffers as any other list of them that meet in the same way: those that take bytes, in a fixed order, time
/// counted in program points that begin where something begins after something has ended. `order[i]` is the index in
/// `buffers` of the i-th.
std::vector<Buffer> canonicalize(std::span<const Buffer> buffers, uint64_t alignment, std::vector<uint32_t> &order) {
  std::vector<Buffer> canonical(buffers.size());
  uint32_t point = 0;
  bool hasEnded = false;
  order.clear();
  for (const Event &event : sweep(buffers)) {
    Buffer &buffer = canonical[event.buffer];
    if (!event.begins) {
      buffer.end = point + 1;
      hasEnded = true;
      continue;
    }
    point += hasEnded;
    hasEnded = false;
    buffer = {alignTo(buffers[event.buffer].bytes, alignment), point, 0};
    order.push_back(event.buffer);
  }
  auto key = [&](uint32_t i) { return std::tuple(canonical[i].begin, canonical[i].end, canonical[i].bytes, i); };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  std::vector<Buffer> sorted;
  sorted.reserve(order.size());
  for (uint32_t i : order)
    sorted.push_back(canonical[i]);
  return sorted;
}

/// How full the program points before each one were, added up: bytes alive ÷ bound, squared so many times.
std::vector<double> sumFullness(std::span<const Buffer> buffers, uint64_t boundBytes, unsigned squared) {
  std::vector<double> sums{0};
  for (uint64_t live : countLive(buffers)) {
    double fullness = double(live) / double(boundBytes);
    for (unsigned i = 0; i < squared; ++i)
      fullness *= fullness;
    sums.push_back(sums.back() + fullness);
  }
  return sums;
}

/// More are placed by time alone.
constexpr size_t mostBuffers = 20'000;

Packing packSorted(std::span<const Buffer> buffers, const PackingOptions &options) {
  Packer packer(buffers, options);
  packer.placeByTime();
  if (packer.isGoodEnough() || buffers.size() > mostBuffers)
    return packer.best;

  auto life = [&](uint32_t i) { return uint64_t(buffers[i].end - std::min(buffers[i].begin, buffers[i].end)); };
  auto area = [&](uint32_t i) { return (unsigned __int128)buffers[i].bytes * life(i); };
  auto tryOrder = [&](Order &order, auto before, const char *bestName, const char *lowestName) {
    if (packer.isGoodEnough())
      return;
    if (order.buffers.empty()) {
      order.buffers.resize(buffers.size());
      std::iota(order.buffers.begin(), order.buffers.end(), 0);
      std::sort(order.buffers.begin(), order.buffers.end(), [&](uint32_t a, uint32_t b) {
        auto keyA = before(a), keyB = before(b);
        return keyA != keyB ? keyA > keyB : a < b;
      });
    }
    packer.place(order, Fit::Best, bestName);
    if (!packer.isGoodEnough())
      packer.place(order, Fit::Lowest, lowestName);
  };
  auto tryKey = [&](auto before, const char *bestName, const char *lowestName) {
    Order order;
    tryOrder(order, before, bestName, lowestName);
  };
  auto getSizeKey = [&](uint32_t i) { return std::tuple(buffers[i].bytes, life(i)); };
  auto getLifeKey = [&](uint32_t i) { return std::tuple(life(i), buffers[i].bytes); };
  Order bySize, byArea, byLife;
  tryOrder(bySize, getSizeKey, "size/best-fit", "size/lowest");
  tryOrder(byArea, area, "area/best-fit", "area/lowest");
  tryOrder(byLife, getLifeKey, "life/best-fit", "life/lowest");
  tryKey([&](uint32_t i) { return std::tuple(UINT32_MAX - buffers[i].begin, life(i)); }, "begin/best-fit",
         "begin/lowest");
  tryKey([&](uint32_t i) { return std::tuple(packer.degree(i), buffers[i].bytes); }, "degree/best-fit",
         "degree/lowest");
  // Few program points are full, and who is alive in many of them has the least choice: life counted in full program
  // points.
  for (unsigned squared : {6, 4, 2}) {
    const std::vector<double> sums = sumFullness(buffers, packer.best.boundBytes, squared);
    auto fullLife = [&](uint32_t i) { return sums[buffers[i].end] - sums[buffers[i].begin]; };
    tryKey([&](uint32_t i) { return std::tuple(fullLife(i), buffers[i].end); }, "full life/best-fit",
           "full life/lowest");
    tryKey([&](uint32_t i) { return std::tuple(std::floor(8 * fullLife(i) / sums.back()), buffers[i].end); },
           "rough full life/best-fit", "rough full life/lowest");
    tryKey([&](uint32_t i) { return fullLife(i) * double(buffers[i].bytes); }, "full area/best-fit",
           "full area/lowest");
  }
  // Long lives from the bottom, short ones from the top: what a training step looks like.
  for (uint64_t shortLife = 1; shortLife <= 16 && !packer.isGoodEnough(); shortLife += (shortLife + 1) / 2) {
    std::vector<bool> fromTop(buffers.size());
    for (uint32_t i = 0; i < buffers.size(); ++i)
      fromTop[i] = life(i) <= shortLife;
    packer.setFromTop(std::move(fromTop));
    tryOrder(byLife, getLifeKey, "two-ended/life", "two-ended/life-lowest");
    tryOrder(byArea, area, "two-ended/area", "two-ended/area-lowest");
    tryOrder(bySize, getSizeKey, "two-ended/size", "two-ended/size-lowest");
  }
  if (!packer.isGoodEnough())
    packer.search(options.effort, options.seed);
  return packer.best;
}

} // namespace

/// `sorted[i]` is `buffers[order[i]]`: from a packing of the former to one of the latter.
static Packing restoreOrder(Packing packing, std::span<const uint32_t> order, size_t count) {
  std::vector<uint64_t> offsets(count, 0);
  for (size_t i = 0; i < order.size(); ++i)
    offsets[order[i]] = packing.offsets[i];
  packing.offsets = std::move(offsets);
  return packing;
}

Packing pack(std::span<const Buffer> buffers, const PackingOptions &options) {
  std::vector<uint32_t> order;
  const std::vector<Buffer> sorted = canonicalize(buffers, options.alignment, order);
  return restoreOrder(packSorted(sorted, options), order, buffers.size());
}

namespace {

/// Packings that were found last, up to so many buffers of theirs together.
class KnownPackings {
public:
  std::optional<Packing> find(uint64_t hash, std::span<const Buffer> sorted, const PackingOptions &options) {
    const std::scoped_lock lock(mutex);
    for (const Known &each : known)
      if (each.hash == hash && each.options == options && std::ranges::equal(each.sorted, sorted))
        return each.packing;
    return std::nullopt;
  }

  void keep(uint64_t hash, std::vector<Buffer> sorted, const PackingOptions &options, const Packing &packing) {
    const std::scoped_lock lock(mutex);
    count += sorted.size() + own;
    known.push_front({hash, std::move(sorted), options, packing});
    for (; count > mostKept; known.pop_back())
      count -= known.back().sorted.size() + own;
  }

private:
  struct Known {
    uint64_t hash;
    std::vector<Buffer> sorted;
    PackingOptions options;
    Packing packing;
  };
  /// Each counts as so many buffers more than it has.
  static constexpr size_t mostKept = 500'000, own = 256;

  std::mutex mutex;
  std::deque<Known> known; // the last one first
  /// What all of them take, in buffers.
  size_t count = 0;
};

uint64_t hashBuffers(std::span<const Buffer> buffers) {
  uint64_t hash = buffers.size();
  for (const Buffer &buffer : buffers)
    for (uint64_t part : {buffer.bytes, uint64_t(buffer.begin) << 32 | buffer.end})
      hash = (std::rotl(hash, 23) ^ part) * 0x9e3779b97f4a7c15;
  return hash;
}

} // namespace

Packing packOnce(std::span<const Buffer> buffers, const PackingOptions &options) {
  static KnownPackings known;
  std::vector<uint32_t> order;
  std::vector<Buffer> sorted = canonicalize(buffers, options.alignment, order);
  const uint64_t hash = hashBuffers(sorted);
  if (std::optional<Packing> packing = known.find(hash, sorted, options))
    return restoreOrder(std::move(*packing), order, buffers.size());
  Packing packing = packSorted(sorted, options);
  // What is placed by time alone is placed faster than it is kept.
  if (sorted.size() <= mostBuffers)
    known.keep(hash, std::move(sorted), options, packing);
  return restoreOrder(std::move(packing), order, buffers.size());
}

bool areSameProblem(std::span<const Buffer> a, std::span<const Buffer> b, uint64_t alignment) {
  std::vector<uint32_t> order;
  return canonicalize(a, alignment, order) == canonicalize(b, alignment, order);
}

std::vector<std::pair<size_t, size_t>> findOverlaps(std::span<const Buffer> buffers, const Packing &packing) {
  std::vector<std::pair<size_t, size_t>> overlaps;
  std::vector<uint32_t> alive;
  for (const Event &event : sweep(buffers)) {
    uint32_t i = event.buffer;
    if (!event.begins) {
      alive.erase(std::find(alive.begin(), alive.end(), i));
      continue;
    }
    uint64_t from = packing.offsets[i], to = from + buffers[i].bytes;
    if (to > packing.arenaBytes)
      overlaps.push_back({i, i});
    for (uint32_t other : alive)
      if (from < packing.offsets[other] + buffers[other].bytes && packing.offsets[other] < to)
        overlaps.push_back({other, i});
    alive.push_back(i);
  }
  return overlaps;
}

} // namespace lowtide::solve
