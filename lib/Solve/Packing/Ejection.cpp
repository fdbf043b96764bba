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
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace lowtide::solve {

namespace {

/// A buffer's weight: size^first · neighbours^second.
struct Exponents {
  double size, neighbours;
};
constexpr unsigned maxTurns = 350;
constexpr Exponents turns[] = {{0.5, 0}, {0, 1}, {1, 1}, {0, 0}, {0.5, 0.5}, {1, 0}, {0.5, 1}};

} // namespace

void EjectionSearch::wait(uint32_t buffer) {
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

template <bool hasFixed> bool EjectionSearch::insertAmong(uint32_t buffer) {
  const uint64_t size = buffers[buffer].bytes, highest = capacity - size;
  const size_t count =
      byBegin.listMeeting<true>(buffer, begins.keys.data(), begins.prices.data(), begins.numbers.data());
  byEnd.listMeeting<hasFixed>(buffer, ends.keys.data(), ends.prices.data(), ends.numbers.data());
  begins.addUp(count);
  ends.addUp(count);
  spent += byBegin.size() + 12 * count + 1;
  const uint64_t *const beginAt = begins.keys.data(), *const endAt = ends.keys.data();
  const double *const beginPrices = begins.prices.data(), *const endPrices = ends.prices.data();
  // Of how many the candidate's end is above the first byte, and the candidate above the last; of these, fixed ones.
  size_t begun = 0, ended = 0, begunFixed = 0, endedFixed = 0;
  uint64_t chosen = 0, chosenGap = UINT64_MAX;
  double chosenPrice = std::numeric_limits<double>::infinity();
  bool isChosenFree = true;
  size_t equals = 0;
  auto consider = [&](uint64_t at) {
    // Everyone who ends by `at` has begun: nothing stands there when as many have begun as ended.
    const bool isFree = begun == ended;
    const double cost = isFree ? 0 : beginPrices[begun] - endPrices[ended];
    if (!(cost <= chosenPrice) || (hasFixed && begunFixed != endedFixed))
      return;
    // Free bytes end where the next one begins; they begin where the last one has ended.
    const uint64_t floor = ended ? endAt[ended - 1] : 0;
    const uint64_t gap = isFree ? std::min(beginAt[begun], capacity) - floor : 0;
    if (cost < chosenPrice || (isFree >= isChosenFree && gap < chosenGap)) {
      chosen = at, chosenPrice = cost, chosenGap = gap, equals = 1, isChosenFree = isFree;
    } else if (isFree == isChosenFree && gap == chosenGap && random() % ++equals == 0) {
      chosen = at;
    }
  };
  // At the bottom, directly above somebody, directly below, and at the top: the two lists, merged.
  for (; beginAt[begun] < size; ++begun)
    begunFixed += hasFixed && isFixed(begins.numbers[begun]);
  consider(0);
  // Which of both comes next, an end or a begin, cannot be predicted: no branch depends on it. At one place whoever
  // ends there is passed first, then it is considered, then whoever begins directly above it is passed.
  uint64_t last = 0;
  for (;;) {
    const uint64_t above = endAt[ended], below = beginAt[begun] - size, at = std::min(above, below);
    if (at > highest)
      break;
    const bool isEnd = above <= below;
    if constexpr (hasFixed)
      endedFixed += isEnd && isFixed(ends.numbers[ended]);
    ended += isEnd;
    const bool isPassed = endAt[ended] != at;
    if (isPassed & (at != last) & ((begun == ended) | (beginPrices[begun] - endPrices[ended] <= chosenPrice)))
      consider(at);
    last = isPassed ? at : last;
    if constexpr (hasFixed)
      begunFixed += !isEnd && isFixed(begins.numbers[begun]);
    begun += !isEnd;
  }
  if (last != highest)
    consider(highest);
  if (equals == 0)
    return false;
  // The first of those who give way leaves its place in the lists to the buffer.
  std::optional<uint32_t> first;
  if (!isChosenFree)
    for (size_t i = 0; i < count && beginAt[i] < chosen + size; ++i) {
      const uint32_t other = begins.numbers[i];
      if (chosen >= getEnd(other))
        continue;
      if (first) {
        byBegin.erase(other, offsets[other]);
        byEnd.erase(other, getEnd(other));
      }
      first = first.value_or(other);
      wait(other);
    }
  offsets[buffer] = chosen;
  if (!first) {
    stand(buffer);
    return true;
  }
  byBegin.replace(*first, offsets[*first], buffer, chosen, price[buffer]);
  byEnd.replace(*first, getEnd(*first), buffer, chosen + size, price[buffer]);
  return true;
}

void EjectionSearch::Sorted::addUp(size_t count) {
  double sum = 0;
  for (double &each : std::span(prices).first(count))
    sum += std::exchange(each, sum);
  // After the last one no candidate comes.
  keys[count] = UINT64_MAX;
  prices[count] = sum;
}

void EjectionSearch::stand(uint32_t buffer) {
  byBegin.insert(buffer, offsets[buffer], price[buffer]);
  byEnd.insert(buffer, getEnd(buffer), price[buffer]);
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
      stand(i);
    } else if (buffers[i].bytes < smallest) {
      later.push_back(i);
    } else if (getEnd(i) > capacity) {
      waiting.push_back(i);
      price[i] += weight[i];
    } else {
      stand(i);
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
