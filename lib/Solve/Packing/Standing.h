//===- Standing.h - buffers in order of their addresses ---------*- C++ -*-===//
//
// Who already has an address, lowest first; of these, who is alive together
// with a given buffer.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Solve/Packing/Packing.h"

#include <algorithm>

namespace lowtide::solve {

/// Buffers in order of a key, their first or last byte, with the price of throwing each out. Keeping the order costs a
/// move of memory per change, which is far less than sorting those who meet a buffer whenever it asks.
class StandingList {
public:
  explicit StandingList(std::span<const Buffer> buffers) : buffers(buffers) {}

  void clear() {
    occupants.clear();
    order.clear();
    lives.clear();
  }
  size_t size() const { return order.size(); }

  void insert(uint32_t buffer, uint64_t key, double price) {
    const ptrdiff_t at = findAfter(key);
    occupants.insert(occupants.begin() + at, {key, price});
    order.insert(order.begin() + at, buffer);
    lives.insert(lives.begin() + at, {buffers[buffer].begin, buffers[buffer].end});
  }

  void erase(uint32_t buffer, uint64_t key) {
    const ptrdiff_t at = find(buffer, key);
    occupants.erase(occupants.begin() + at);
    order.erase(order.begin() + at);
    lives.erase(lives.begin() + at);
  }

  /// Erases one and inserts another: what lies between both is all that moves.
  void replace(uint32_t old, uint64_t oldKey, uint32_t buffer, uint64_t key, double price) {
    const ptrdiff_t from = find(old, oldKey), after = findAfter(key), to = after > from ? after - 1 : after;
    moveWithin(occupants, from, to) = {key, price};
    moveWithin(order, from, to) = buffer;
    moveWithin(lives, from, to) = {buffers[buffer].begin, buffers[buffer].end};
  }

  /// Those who meet `buffer`, in order: `keys[0]`, `prices[0]`, … and, where asked for, their numbers, as `numbers[0]`,
  /// …; how many. There is room for one more than all buffers.
  template <bool withNumbers>
  size_t listMeeting(uint32_t buffer, uint64_t *keys, double *prices, uint32_t *numbers) const {
    const uint32_t begin = buffers[buffer].begin, end = buffers[buffer].end;
    // What is written might be any of these, for all that is known of its address: they are read once.
    const Occupant *from = occupants.data();
    const uint32_t *number = order.data();
    const Life *life = lives.data();
    size_t count = 0;
    // Without a branch that cannot be predicted. Differences of time have a sign.
    for (const Life *last = life + lives.size(); life != last; ++life, ++from, ++number) {
      keys[count] = from->key;
      prices[count] = from->price;
      if constexpr (withNumbers)
        numbers[count] = *number;
      count += ((life->begin - end) & (begin - life->end)) >> 31;
    }
    return count;
  }

private:
  struct Occupant {
    uint64_t key;
    double price;
  };

  /// Where those with larger keys begin.
  ptrdiff_t findAfter(uint64_t key) const {
    return std::ranges::upper_bound(occupants, key, {}, &Occupant::key) - occupants.begin();
  }

  ptrdiff_t find(uint32_t buffer, uint64_t key) const {
    const ptrdiff_t from = std::ranges::lower_bound(occupants, key, {}, &Occupant::key) - occupants.begin();
    return std::find(order.begin() + from, order.end(), buffer) - order.begin();
  }

  /// Moves what lies after `from`, up to `to`, or before it, to make room there.
  template <typename T> static T &moveWithin(std::vector<T> &all, ptrdiff_t from, ptrdiff_t to) {
    if (from < to)
      std::move(all.begin() + from + 1, all.begin() + to + 1, all.begin() + from);
    else
      std::move_backward(all.begin() + to, all.begin() + from, all.begin() + from + 1);
    return all[size_t(to)];
  }

  std::span<const Buffer> buffers;
  std::vector<Occupant> occupants;
  std::vector<uint32_t> order;
  /// When each of `order` is alive: to fetch that from all over the buffers takes longer than to compare it.
  struct Life {
    uint32_t begin, end;
  };
  std::vector<Life> lives;
};

/// Buffers by the stretches of time in which they are alive: whoever meets a short-lived one is found among few.
class AliveLists {
public:
  explicit AliveLists(std::span<const Buffer> buffers) : buffers(buffers) {}

  void insert(uint32_t buffer) {
    const size_t last = buffers[buffer].end / stride;
    if (lists.size() <= last)
      lists.resize(last + 1);
    for (size_t at = buffers[buffer].begin / stride; at <= last; ++at)
      lists[at].push_back(buffer);
  }

  /// Whether `check(other)` is true for one that meets `buffer`.
  template <typename Check> bool meetsAny(uint32_t buffer, Check check) const {
    const Buffer &one = buffers[buffer];
    for (size_t at = one.begin / stride; at < lists.size() && at <= one.end / stride; ++at)
      for (uint32_t i : lists[at])
        if (buffers[i].begin < one.end && one.begin < buffers[i].end && check(i))
          return true;
    return false;
  }

private:
  static constexpr uint32_t stride = 8;
  std::span<const Buffer> buffers;
  std::vector<std::vector<uint32_t>> lists;
};

} // namespace lowtide::solve
