//===- ImpliedNeeds.h - when values are needed for evicted ones -*- C++ -*-===//
//
// A value that was evicted is needed again, and so is, just then, all that it is
// recomputed from and that is not there either. Whole chains are told so, and
// told again with the next value that goes. What was told together has one need:
// it is kept as a group, from whose top all of it is reached. Where the top is
// told, the group is at once, and only its border is looked at. Often it is told
// from further down, by a value that goes sooner: where all ways down go through
// that place, the group is cut there, and what is above it keeps its need. So
// telling takes time for what comes to a group or leaves it, not for the chain.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
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
    telling = 0;
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
    ++telling;
    fresh.clear();
    freshBorder.clear();
    joined.clear();
    bool isChain = true;
    auto look = [&](uint32_t each) {
      const bool isTold = at(each) >= now && at(each) <= when;
      if (!isTold && isThere(each)) {
        entries[each].need = when;
        limit(each);
        return true;
      }
      return isTold;
    };
    uint32_t group = none;
    queue.assign(1, value);
    while (!queue.empty()) {
      // A group's top comes before the rest of it.
      const uint32_t next = pop();
      if (isPart(next)) {
        // Made from what it makes, too.
        isChain = false;
        continue;
      }
      if (look(next)) {
        freshBorder.push_back({next, uint32_t(fresh.size())});
        continue;
      }
      const bool isOnlyWay = queue.empty();
      const uint32_t own = cutAbove(next);
      if (own == none) {
        if (group == none)
          group = begin();
        entries[next].group = group;
        entries[next].isNeck = isOnlyWay;
        fresh.push_back(next);
        enqueue(listSources(next));
        continue;
      }
      isChain &= isOnlyWay && joined.empty();
      if (group == none)
        group = own;
      joined.push_back(own);
      groups[own].telling = telling;
      // What is not there any more is reached from somewhere in the group.
      std::erase_if(groups[own].border, [&](const Border &each) {
        if (isPart(each.value) || look(each.value))
          return false;
        isChain = false;
        enqueue(std::span(&each.value, 1));
        return true;
      });
    }
    if (group != none)
      gather(group, isChain, when);
  }

private:
  static constexpr uint32_t none = UINT32_MAX;

  struct Entry {
    /// If it is in no group.
    uint32_t need = never;
    uint32_t group = none;
    /// Where it stands among the members, and whether all that stands before it is reached through it alone.
    uint32_t place : 31 = 0;
    uint32_t isNeck : 1 = 0;
  };
  /// What members are made from and is not one of them. Those are before `place`, or reached through who is there.
  struct Border {
    uint32_t value, place;
  };
  /// Values that are not there and have the same need.
  struct Group {
    uint32_t need = never;
    /// Before this place no member is a neck, whatever it says.
    uint32_t firstNeck = 0;
    /// The last telling that came to it.
    uint64_t telling = 0;
    /// The top last.
    std::vector<uint32_t> members = {};
    std::vector<Border> border = {};
  };

  /// Whether what is told now has come to `value`.
  bool isPart(uint32_t value) const {
    return entries[value].group != none && groups[entries[value].group].telling == telling;
  }

  /// The highest number of the queue, which is there no more.
  uint32_t pop() {
    const uint32_t value = queue.front();
    while (!queue.empty() && queue.front() == value) {
      std::pop_heap(queue.begin(), queue.end());
      queue.pop_back();
    }
    return value;
  }

  template <typename Values> void enqueue(const Values &values) {
    for (uint32_t value : values) {
      queue.push_back(value);
      std::push_heap(queue.begin(), queue.end());
    }
  }

  /// A group without members, to which this telling comes.
  uint32_t begin() {
    if (unused.empty()) {
      unused.push_back(uint32_t(groups.size()));
      groups.emplace_back();
    }
    const uint32_t group = unused.back();
    unused.pop_back();
    groups[group].firstNeck = 0;
    groups[group].telling = telling;
    return group;
  }

  void add(uint32_t value, uint32_t group) {
    entries[value].group = group;
    entries[value].place = uint32_t(groups[group].members.size());
    groups[group].members.push_back(value);
  }

  /// The group whose top `value` is, once what stands above it is a group of its own; `none` where it is in none, or in
  /// one that cannot be cut there and is none any more.
  uint32_t cutAbove(uint32_t value) {
    const uint32_t group = entries[value].group, place = entries[value].place;
    if (group == none || groups[group].members.back() == value)
      return group;
    if (!entries[value].isNeck || place < groups[group].firstNeck) {
      dissolve(group);
      return none;
    }
    const uint32_t above = begin();
    Group &from = groups[group], &to = groups[above];
    to.need = from.need;
    to.telling = 0;
    for (size_t i = place + 1; i < from.members.size(); ++i)
      add(from.members[i], above);
    from.members.resize(place + 1);
    to.border.push_back({value, 0});
    std::erase_if(from.border, [&](const Border &each) {
      if (each.place <= place)
        return false;
      to.border.push_back({each.value, each.place - place - 1});
      return true;
    });
    return group;
  }

  /// Makes one group of what was told: of the values `fresh`, which are marked as of `group`, and the groups `joined`.
  /// `isChain`: of at most one of these, through its top alone.
  void gather(uint32_t group, bool isChain, uint32_t when) {
    const bool isOwn = !joined.empty() && joined.front() == group;
    const uint32_t top = isOwn ? groups[group].members.back() : fresh.front();
    // The largest stays, the others move.
    uint32_t target = joined.empty() ? group : joined.front();
    for (uint32_t each : joined)
      if (groups[each].members.size() > groups[target].members.size())
        target = each;
    Group &all = groups[target];
    all.need = when;
    if (isChain && target != group) {
      entries[all.members.back()].isNeck = true;
      all.firstNeck = std::min(all.firstNeck, uint32_t(all.members.size() - 1));
    }
    for (uint32_t each : joined)
      if (each != target) {
        for (uint32_t value : groups[each].members)
          add(value, target);
        for (const Border &border : groups[each].border)
          all.border.push_back({border.value, 0});
        drop(each);
      }
    const auto end = uint32_t(all.members.size() + fresh.size());
    for (size_t i = fresh.size(); i-- > 0;)
      add(fresh[i], target);
    for (const auto &[value, before] : freshBorder)
      all.border.push_back({value, isChain ? end - before : 0});
    if (!isChain) {
      // The order of the members says nothing.
      all.firstNeck = end;
      const uint32_t last = all.members.back(), place = entries[top].place;
      std::swap(all.members[place], all.members.back());
      entries[last].place = place;
      entries[top].place = end - 1;
    }
    if (!isOwn && target != group)
      drop(group);
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
  /// Counts them.
  uint64_t telling = 0;
  /// Scratch of `tell`: a heap, the highest number first; the values that it comes to and that are in no group, in its
  /// order; what these are made from and is told or there, with how many of them come before; the groups that it comes
  /// to.
  std::vector<uint32_t> queue, fresh, joined;
  std::vector<Border> freshBorder;
};

} // namespace lowtide::solve
