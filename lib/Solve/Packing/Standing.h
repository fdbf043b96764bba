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

/// Buffers in order of a key, their first or last byte. Keeping the order costs a move of memory per change, which is
/// far less than sorting those who meet a buffer whenever it asks.
class StandingList {
public:
  explicit StandingList(std::span<const Buffer> buffers) : buffers(buffers) {}

  void clear() {
    keys.clear();
    order.clear();
    lives.clear();
  }
  size_t size() const { return order.size(); }

  void insert(uint32_t buffer, uint64_t key) {
    const ptrdiff_t at = std::upper_bound(keys.begin(), keys.end(), key) - keys.begin();
    keys.insert(keys.begin() + at, key);
    order.insert(order.begin() + at, buffer);
    lives.insert(lives.begin() + at, {buffers[buffer].begin, buffers[buffer].end});
  }

  void erase(uint32_t buffer, uint64_t key) {
    const ptrdiff_t from = std::lower_bound(keys.begin(), keys.end(), key) - keys.begin();
    const ptrdiff_t at = std::find(order.begin() + from, order.end(), buffer) - order.begin();
    keys.erase(keys.begin() + at);
    order.erase(order.begin() + at);
    lives.erase(lives.begin() + at);
  }

  /// Those who meet `buffer`, in order, as `found[0]`, `found[1]`, …; how many. `found` grows as needed.
  size_t listMeeting(uint32_t buffer, std::vector<uint32_t> &found) const {
    if (found.size() < order.size())
      found.resize(order.size());
    const uint32_t begin = buffers[buffer].begin, end = buffers[buffer].end;
    size_t count = 0;
    // Without a branch that cannot be predicted.
    for (size_t at = 0; at < order.size(); ++at) {
      found[count] = order[at];
      count += unsigned(lives[at].begin < end) & unsigned(begin < lives[at].end);
    }
    return count;
  }

private:
  std::span<const Buffer> buffers;
  std::vector<uint64_t> keys;
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
