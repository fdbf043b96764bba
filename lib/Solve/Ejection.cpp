//===- Ejection.cpp - a packing below a given height ----------------------===//
//
// The price of a place is the sum over those who stand there: two sorted lists
// of their begins and ends give it for all places in one walk. A buffer's price
// is its weight times how often it was thrown out; no weight is the best for all
// problems, so that runs with several take turns. Places that cost nothing are
// taken by the smallest gap. Small buffers wait until all large ones stand.
//
//===----------------------------------------------------------------------===//
#include "Ejection.h"

#include <algorithm>
#include <cmath>

namespace lowtide::solve {

namespace {

/// A buffer's weight: size^first · neighbours^second.
struct Exponents {
  double size, neighbours;
};
constexpr unsigned maxTurns = 350;
constexpr Exponents turns[] = {{0.5, 0}, {0, 1}, {1, 1}, {0, 0}, {0.5, 0.5}, {1, 0}, {0.5, 1}};

} // namespace

void EjectionSearch::throwOut(uint32_t buffer) {
  placed[buffer] = false;
  price[buffer] += weight[buffer];
  (sizes[buffer] < smallest ? later : waiting).push_back(buffer);
}

uint32_t EjectionSearch::takeWaiting() {
  if (waiting.empty())
    std::swap(waiting, later);
  // The largest of a few: dear ones first, but not always in the same order.
  size_t best = random() % waiting.size();
  for (unsigned draw = 0; draw < 3; ++draw)
    if (size_t other = random() % waiting.size(); sizes[waiting[other]] > sizes[waiting[best]])
      best = other;
  uint32_t buffer = waiting[best];
  waiting[best] = waiting.back();
  waiting.pop_back();
  return buffer;
}

void EjectionSearch::insert(uint32_t buffer) {
  const uint64_t size = sizes[buffer], highest = capacity - size;
  byBegin.clear();
  for (uint32_t other : neighbours.of(buffer)) {
    if (!placed[other])
      continue;
    const uint64_t begin = offsets[other], end = begin + sizes[other];
    byBegin.push_back({begin, end, price[other]});
  }
  spent += 2 * neighbours.degree(buffer) + 4 * byBegin.size() + 1;
  byEnd = byBegin;
  std::sort(byBegin.begin(), byBegin.end(), [](const Occupant &a, const Occupant &b) { return a.begin < b.begin; });
  std::sort(byEnd.begin(), byEnd.end(), [](const Occupant &a, const Occupant &b) { return a.end < b.end; });
  // Directly above somebody, directly below, at the bottom and at the top: the two lists, merged.
  candidates.clear();
  auto add = [&](uint64_t at) {
    if (at <= highest && (candidates.empty() || candidates.back() != at))
      candidates.push_back(at);
  };
  add(0);
  for (size_t above = 0, below = 0; above < byEnd.size() || below < byBegin.size();) {
    if (below < byBegin.size() && byBegin[below].begin < size)
      ++below;
    else if (below == byBegin.size() || (above < byEnd.size() && byEnd[above].end <= byBegin[below].begin - size))
      add(byEnd[above++].end);
    else
      add(byBegin[below++].begin - size);
  }
  add(highest);

  uint64_t chosen = 0, chosenGap = UINT64_MAX;
  double chosenPrice = 0, begun = 0, ended = 0;
  bool isChosenFree = true;
  size_t nextBegin = 0, nextEnd = 0, equals = 0;
  uint64_t floor = 0; // the highest end of those that begin below the candidate's end
  for (uint64_t at : candidates) {
    while (nextBegin < byBegin.size() && byBegin[nextBegin].begin < at + size) {
      begun += byBegin[nextBegin].price;
      floor = std::max(floor, byBegin[nextBegin].end);
      ++nextBegin;
    }
    while (nextEnd < byEnd.size() && byEnd[nextEnd].end <= at)
      ended += byEnd[nextEnd++].price;
    // Everyone who ends by `at` has begun: nobody stands there when as many have begun as ended.
    const bool isFree = nextBegin == nextEnd;
    const double cost = isFree ? 0 : begun - ended;
    const uint64_t gap =
        isFree ? (nextBegin < byBegin.size() ? std::min(byBegin[nextBegin].begin, capacity) : capacity) - floor : 0;
    const bool first = equals == 0;
    if (first || cost < chosenPrice || (cost == chosenPrice && isFree >= isChosenFree && gap < chosenGap)) {
      chosen = at, chosenPrice = cost, chosenGap = gap, equals = 1, isChosenFree = isFree;
    } else if (cost == chosenPrice && isFree == isChosenFree && gap == chosenGap && random() % ++equals == 0) {
      chosen = at;
    }
  }
  if (!isChosenFree)
    for (uint32_t other : neighbours.of(buffer))
      if (placed[other] && offsets[other] < chosen + size && chosen < offsets[other] + sizes[other])
        throwOut(other);
  offsets[buffer] = chosen;
  placed[buffer] = true;
}

bool EjectionSearch::run(uint64_t effort) {
  placed.assign(sizes.size(), true);
  price = weight;
  waiting.clear();
  later.clear();
  spent = 0;
  for (uint32_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] && (sizes[i] < smallest || offsets[i] + sizes[i] > capacity))
      throwOut(i);
  while (!waiting.empty() || !later.empty()) {
    if (spent >= effort)
      return false;
    insert(takeWaiting());
  }
  return true;
}

bool EjectionSearch::lower(std::vector<uint64_t> &result, uint64_t height, uint64_t effort, uint64_t &work) {
  capacity = height;
  smallest = height / 2000;
  if (std::any_of(sizes.begin(), sizes.end(), [&](uint64_t size) { return size > height; }))
    return false;
  const uint64_t limit = work + effort, each = 200 * (neighbours.list.size() + sizes.size());
  // Small problems are solved in a few turns, or not at all.
  for (unsigned turn = 0; work < limit && turn < maxTurns; ++turn) {
    const Exponents &exponents = turns[turn % std::size(turns)];
    weight.resize(sizes.size());
    for (uint32_t i = 0; i < sizes.size(); ++i)
      weight[i] =
          std::pow(double(sizes[i]), exponents.size) * std::pow(double(neighbours.degree(i) + 1), exponents.neighbours);
    offsets = result;
    const bool fits = run(std::min(each, limit - work));
    work += std::max<uint64_t>(spent, 1);
    if (fits) {
      result = offsets;
      return true;
    }
  }
  return false;
}

} // namespace lowtide::solve
