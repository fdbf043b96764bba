//===- ImpliedNeeds.h - when values are needed for evicted ones -*- C++ -*-===//
//
// A value that was evicted is needed again, and so is, just then, all that it is
// recomputed from and that is not there either. Whole chains are told so, and
// told again with the next value that goes. What was told together has one need:
// it is kept as a group, from whose top all of it is reached. Where the top is
// told, the group is at once, and only its border is looked at.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lowtide::solve {

/// Per value, at which program point it is needed for what was evicted.
class ImpliedNeeds {
public:
  static constexpr uint32_t never = UINT32_MAX;

  /// Values are numbered 0, 1, …, `count` - 1, best after what they are made from; none is needed.
  void reset(size_t count) {
    entries.assign(count, {});
    groups.clear();
    unused.clear();
  }

  uint32_t at(uint32_t value) const {
    const Entry &entry = entries[value];
    return entry.group == none ? entry.need : groups[entry.group].need;
  }

  /// Sets that of this value alone.
  void set(uint32_t value, uint32_t need) {
    separate(value);
    entries[value].need = need;
  }

  /// `value` is there from now on: what it is made from is not reached through it.
  void separate(uint32_t value) {
    if (entries[value].group != none)
      dissolve(entries[value].group);
  }

  /// `value` is needed at `when`, and so is what it is made from, which is `listSources(value)`, as far as it is not
  /// there by `isThere(value)`. Stops at values that are needed from `now` on and not after `when`. Calls
  /// `limit(value)` for those that are there and get another need.
  template <typename ListSources, typename IsThere, typename Limit>
  void tell(uint32_t value, uint32_t now, uint32_t when, ListSources listSources, IsThere isThere, Limit limit) {
    uint32_t group = none;
    queue.assign(1, value);
    while (!queue.empty()) {
      // A group's top comes before the rest of it.
      std::pop_heap(queue.begin(), queue.end());
      const uint32_t next = queue.back();
      queue.pop_back();
      if (group != none && entries[next].group == group)
        continue;
      const bool isTold = at(next) >= now && at(next) <= when;
      if (isTold || isThere(next)) {
        if (group != none && (groups[group].border.empty() || groups[group].border.back() != next))
          groups[group].border.push_back(next);
        if (!isTold) {
          entries[next].need = when;
          limit(next);
        }
        continue;
      }
      const uint32_t own = isTop(next) ? entries[next].group : none;
      if (own != none) {
        enqueue(groups[own].border);
        groups[own].border.clear();
      } else {
        separate(next);
        enqueue(listSources(next));
      }
      if (group == none)
        group = own != none ? own : begin(next);
      else if (own != none)
        group = merge(group, own);
      else
        add(next, group);
      groups[group].need = when;
    }
  }

private:
  static constexpr uint32_t none = UINT32_MAX;

  struct Entry {
    /// If it is in no group.
    uint32_t need = never;
    uint32_t group = none;
  };
  /// Values that are not there and have the same need.
  struct Group {
    uint32_t top, need;
    /// The top first; and what they are made from that is not one of them.
    std::vector<uint32_t> members, border;
  };

  bool isTop(uint32_t value) const { return entries[value].group != none && groups[entries[value].group].top == value; }

  template <typename Values> void enqueue(const Values &values) {
    for (uint32_t value : values) {
      queue.push_back(value);
      std::push_heap(queue.begin(), queue.end());
    }
  }

  uint32_t begin(uint32_t top) {
    if (unused.empty()) {
      unused.push_back(uint32_t(groups.size()));
      groups.emplace_back();
    }
    const uint32_t group = unused.back();
    unused.pop_back();
    groups[group].top = top;
    add(top, group);
    return group;
  }

  void add(uint32_t value, uint32_t group) {
    entries[value].group = group;
    groups[group].members.push_back(value);
  }

  /// Adds the members of `below`, which has no border; the smaller one moves.
  uint32_t merge(uint32_t group, uint32_t below) {
    if (groups[group].members.size() < groups[below].members.size()) {
      groups[below].top = groups[group].top;
      std::swap(groups[group].border, groups[below].border);
      std::swap(group, below);
    }
    for (uint32_t value : groups[below].members)
      add(value, group);
    drop(below);
    return group;
  }

  void dissolve(uint32_t group) {
    for (uint32_t value : groups[group].members)
      entries[value] = {groups[group].need, none};
    drop(group);
  }

  void drop(uint32_t group) {
    groups[group].members.clear();
    groups[group].border.clear();
    unused.push_back(group);
  }

  std::vector<Entry> entries;
  std::vector<Group> groups;
  /// Numbers of groups that are not in use.
  std::vector<uint32_t> unused;
  /// Scratch of `tell`: a heap, the highest number first.
  std::vector<uint32_t> queue;
};

} // namespace lowtide::solve
