//===- ValueWriters.h - which bytes were given which value number, by whom --===//
#ifndef LOWTIDE_RUNTIME_VALUEWRITERS_H
#define LOWTIDE_RUNTIME_VALUEWRITERS_H

#include "plan.pb.h"

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

namespace lowtide::rt {

/// A (value, byte) pair has one writer in a step. An instruction of a repeat is one writer in all rounds.
class ValueWriters {
public:
  /// Notes that `writer` (null: the runtime, before the step) gives the slice its value. False if another instruction
  /// gives it to one of these bytes too, or this one outside a repeat a second time. O(log n) for n writes of a value.
  bool add(const plan::Slice &slice, const plan::Instruction *writer, bool inRepeat) {
    if (!slice.bytes())
      return true;
    Ranges &ranges = ranges_[slice.value()];
    const uint64_t begin = slice.offset(), end = begin + slice.bytes();
    auto it = ranges.upper_bound({slice.arena(), begin});
    if (it != ranges.begin()) {
      auto before = std::prev(it);
      if (before->first.first == slice.arena() && before->second.end > begin)
        it = before;
    }
    bool known = false;
    for (; it != ranges.end() && it->first.first == slice.arena() && it->first.second < end; ++it) {
      if (it->second.writer != writer || !inRepeat || it->first.second != begin || it->second.end != end)
        return false;
      known = true;
    }
    if (!known)
      ranges.emplace(std::pair(slice.arena(), begin), Range{end, writer});
    return true;
  }

  /// The instruction that gives `value` to a byte; null: none.
  const plan::Instruction *find(uint64_t value, uint32_t arena, uint64_t byte) const {
    auto ranges = ranges_.find(value);
    if (ranges == ranges_.end())
      return nullptr;
    auto after = ranges->second.upper_bound({arena, byte});
    if (after == ranges->second.begin())
      return nullptr;
    auto &[start, range] = *std::prev(after);
    return start.first == arena && byte < range.end ? range.writer : nullptr;
  }

private:
  struct Range {
    uint64_t end;
    const plan::Instruction *writer;
  };
  /// By arena and first byte; ranges of one value never overlap.
  using Ranges = std::map<std::pair<uint32_t, uint64_t>, Range>;
  std::unordered_map<uint64_t, Ranges> ranges_;
};

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_VALUEWRITERS_H
