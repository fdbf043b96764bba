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
#include <numeric>

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
  byBegin.erase(buffer, offsets[buffer]);
  byEnd.erase(buffer, getEnd(buffer));
  price[buffer] += weight[buffer];
  (buffers[buffer].bytes < smallest ? later : waiting).push_back(buffer);
}

uint32_t EjectionSearch::takeWaiting() {
  if (waiting.empty())
    std::swap(waiting, later);
  // The largest of a few: expensive ones first, but not always in the same order.
  size_t best = random() % waiting.size();
  for (unsigned draw = 0; draw < 3; ++draw)
    if (size_t other = random() % waiting.size(); buffers[waiting[other]].bytes > buffers[waiting[best]].bytes)
      best = other;
  uint32_t buffer = waiting[best];
  waiting[best] = waiting.back();
  waiting.pop_back();
  return buffer;
}

bool EjectionSearch::insert(uint32_t buffer) {
  const uint64_t size = buffers[buffer].bytes, highest = capacity - size;
  const size_t count = byEnd.listMeeting(buffer, found);
  if (ends.size() <= count) {
    ends.resize(buffers.size() + 1);
    begins.resize(buffers.size() + 1);
  }
  auto countFixed = [&](std::vector<uint32_t> &sums) {
    sums.assign(1, 0);
    for (size_t i = 0; i < count; ++i)
      sums.push_back(sums.back() + isFixed(found[i]));
  };
  for (size_t i = 0; i < count; ++i)
    ends[i] = {offsets[found[i]], getEnd(found[i]), price[found[i]]};
  if (!fixed.empty())
    countFixed(fixedEnds);
  byBegin.listMeeting(buffer, found);
  for (size_t i = 0; i < count; ++i)
    begins[i] = {offsets[found[i]], getEnd(found[i]), price[found[i]]};
  if (!fixed.empty())
    countFixed(fixedBegins);
  spent += byBegin.size() + 12 * count + 1;
  // After the last one, where no candidate comes.
  begins[count].begin = ends[count].end = UINT64_MAX;

  uint64_t chosen = 0, chosenGap = UINT64_MAX;
  double chosenPrice = 0, begun = 0, ended = 0;
  bool isChosenFree = true;
  const Occupant *nextBegin = begins.data(), *nextEnd = ends.data();
  size_t equals = 0;
  uint64_t floor = 0; // the highest end of those that begin below the candidate's end
  auto consider = [&](uint64_t at) {
    for (; nextBegin->begin < at + size; ++nextBegin) {
      begun += nextBegin->price;
      floor = std::max(floor, nextBegin->end);
    }
    for (; nextEnd->end <= at; ++nextEnd)
      ended += nextEnd->price;
    const ptrdiff_t begunCount = nextBegin - begins.data(), endedCount = nextEnd - ends.data();
    if (!fixed.empty() && fixedBegins[begunCount] != fixedEnds[endedCount])
      return;
    // Everyone who ends by `at` has begun: nothing stands there when as many have begun as ended.
    const bool isFree = begunCount == endedCount;
    const double cost = isFree ? 0 : begun - ended;
    const uint64_t gap = isFree ? std::min(nextBegin->begin, capacity) - floor : 0;
    const bool first = equals == 0;
    if (first || cost < chosenPrice || (cost == chosenPrice && isFree >= isChosenFree && gap < chosenGap)) {
      chosen = at, chosenPrice = cost, chosenGap = gap, equals = 1, isChosenFree = isFree;
    } else if (cost == chosenPrice && isFree == isChosenFree && gap == chosenGap && random() % ++equals == 0) {
      chosen = at;
    }
  };
  // At the bottom, directly above somebody, directly below, and at the top: the two lists, merged.
  consider(0);
  uint64_t last = 0;
  const Occupant *above = ends.data(), *below = begins.data();
  while (below->begin < size)
    ++below;
  for (;;) {
    const uint64_t at = std::min(above->end, below->begin - size);
    if (at > highest)
      break;
    above += above->end == at;
    below += below->begin - size == at;
    if (at != last)
      consider(last = at);
  }
  if (highest != last)
    consider(highest);
  if (equals == 0)
    return false;
  if (!isChosenFree)
    for (size_t i = 0; i < count && offsets[found[i]] < chosen + size; ++i)
      if (chosen < getEnd(found[i]))
        throwOut(found[i]);
  offsets[buffer] = chosen;
  byBegin.insert(buffer, chosen);
  byEnd.insert(buffer, chosen + size);
  return true;
}

bool EjectionSearch::run(uint64_t effort) {
  byBegin.clear();
  byEnd.clear();
  price = weight;
  waiting.clear();
  later.clear();
  spent = 0;
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (isFixed(i)) {
      byBegin.insert(i, offsets[i]);
      byEnd.insert(i, getEnd(i));
    } else if (buffers[i].bytes < smallest) {
      later.push_back(i);
    } else if (getEnd(i) > capacity) {
      waiting.push_back(i);
      price[i] += weight[i];
    } else {
      byBegin.insert(i, offsets[i]);
      byEnd.insert(i, getEnd(i));
    }
  while (!waiting.empty() || !later.empty()) {
    if (spent >= effort)
      return false;
    if (!insert(takeWaiting()))
      return false;
  }
  return true;
}

uint64_t EjectionSearch::getTurnEffort() const {
  return 400 * (std::accumulate(degrees.begin(), degrees.end(), uint64_t(0)) + buffers.size());
}

bool EjectionSearch::lower(std::vector<uint64_t> &result, uint64_t height, uint64_t effort, uint64_t &work) {
  capacity = height;
  smallest = height / 2000;
  for (const Buffer &buffer : buffers)
    if (buffer.bytes > height)
      return false;
  const uint64_t limit = work + effort, each = getTurnEffort();
  // Small problems are solved in a few turns, or not at all.
  for (unsigned turn = 0; work < limit && turn < maxTurns; ++turn) {
    const Exponents &exponents = turns[turn % std::size(turns)];
    weight.resize(buffers.size());
    for (uint32_t i = 0; i < buffers.size(); ++i)
      weight[i] =
          std::pow(double(buffers[i].bytes), exponents.size) * std::pow(double(degrees[i] + 1), exponents.neighbours);
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
