//===- Blocks.cpp - a step's forward part in blocks -----------------------===//
//
// 1. The width of a position: bytes of what was made before it and is read after
// it in the forward part, without what is cheaply made of the rest.
// 2. Positions that are the narrowest within a reach of bytes on both sides,
// narrow against the blocks beside them and not wider than their neighbors.
// 3. The backward part of a block begins where it is first read there.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Searches/Blocks.h"

#include <algorithm>

namespace lowtide::solve {

uint32_t Blocks::findAt(uint32_t position) const {
  if (position < getForwardEnd())
    return uint32_t(std::upper_bound(begins.begin(), begins.end(), position) - begins.begin()) - 1;
  uint32_t block = size() - 1;
  while (block > 0 && backwardFrom[block - 1] <= position)
    --block;
  return block;
}

std::vector<uint32_t> Blocks::listCrossing(uint32_t from, uint32_t to) const {
  std::vector<uint32_t> crossing;
  if (to < size())
    std::copy_if(boundaries[to].begin(), boundaries[to].end(), std::back_inserter(crossing),
                 [&](uint32_t value) { return made[value] >= begins[from]; });
  return crossing;
}

namespace {

constexpr uint32_t mostBlocks = 64;

class BlockSearch {
public:
  BlockSearch(const StepGraph &graph, std::span<const uint32_t> order) : graph(graph), order(order) {}

  Blocks run() {
    findLives();
    for (uint32_t position = 1; position <= end; ++position)
      measure(position);
    for (double parts = 160;; parts /= 2) {
      cut(bytesBefore.back() / parts);
      if (blocks.size() <= mostBlocks)
        break;
    }
    findBackward();
    assignMembers();
    return std::move(blocks);
  }

private:
  void findLives() {
    for (uint32_t position = 0; position < order.size(); ++position)
      if (graph.operations[order[position]].isForward)
        end = position + 1;
    blocks.made.assign(graph.values.size(), Blocks::none);
    blocks.lastForward.assign(graph.values.size(), 0);
    isNeeded.assign(graph.values.size(), false);
    isCrossing.assign(graph.values.size(), false);
    bytesBefore.assign(end + 1, 0);
    double seconds = 0;
    for (uint32_t position = 0; position < order.size(); ++position) {
      const StepOperation &operation = graph.operations[order[position]];
      for (uint32_t value : operation.reads)
        if (operation.isForward)
          blocks.lastForward[value] = position;
        else
          isNeeded[value] = true;
      if (position >= end)
        continue;
      seconds += operation.seconds;
      bytesBefore[position + 1] = bytesBefore[position];
      for (uint32_t value : operation.writes) {
        blocks.lastForward[value] = position;
        if (graph.values[value].placed)
          continue;
        blocks.made[value] = position;
        bytesBefore[position + 1] += double(graph.size(value));
      }
    }
    meanPrice = bytesBefore.back() > 0 ? seconds / bytesBefore.back() : 0;
    widths.assign(end + 1, 0);
    crossing.assign(end + 1, {});
  }

  bool isTransient(uint32_t value) const { return graph.values[value].producer >= 0 && !graph.values[value].placed; }

  /// What crosses the position, and its bytes. Positions in their order.
  void measure(uint32_t position) {
    for (uint32_t value : graph.operations[order[position - 1]].writes)
      if (blocks.made[value] != Blocks::none)
        alive.push_back(value);
    std::erase_if(alive, [&](uint32_t value) { return blocks.lastForward[value] < position; });
    for (uint32_t value : alive)
      isCrossing[value] = true;
    std::vector<uint32_t> &named = crossing[position];
    // Later ones first: they are made from earlier ones.
    for (size_t i = alive.size(); i-- > 0;) {
      const uint32_t value = alive[i];
      std::vector<uint32_t> missing;
      const std::optional<uint32_t> maker = findMaker(graph, value);
      const bool isCheap = maker && graph.at(*maker).seconds <= meanPrice * double(graph.size(value));
      if (isCheap)
        std::copy_if(graph.at(*maker).reads.begin(), graph.at(*maker).reads.end(), std::back_inserter(missing),
                     [&](uint32_t read) { return isTransient(read) && !isCrossing[read]; });
      if (isCheap && missing.empty()) {
        isCrossing[value] = false;
      } else if (isCheap && missing.size() == 1 && isNeeded[missing[0]] && blocks.made[missing[0]] < position &&
                 graph.size(missing[0]) <= graph.size(value)) {
        // The backward part reads the other one in any case.
        isCrossing[value] = false;
        named.push_back(missing[0]);
      }
    }
    for (uint32_t value : alive) {
      if (isCrossing[value])
        named.push_back(value);
      isCrossing[value] = false;
    }
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    for (uint32_t value : named)
      widths[position] += graph.size(value);
  }

  /// Of equally narrow positions the last.
  bool isNarrowest(uint32_t position, double reach) const {
    const double at = bytesBefore[position];
    if (at <= reach)
      return false;
    for (uint32_t other = position + 1; other <= end && bytesBefore[other] <= at + reach; ++other)
      if (other == end || widths[other] <= widths[position])
        return false;
    for (uint32_t other = position; --other > 0 && bytesBefore[other] >= at - reach;)
      if (widths[other] < widths[position])
        return false;
    return true;
  }

  /// Bytes that a block hands on, and nothing before it.
  std::vector<double> listHandedOn() const {
    std::vector<double> bytes(blocks.begins.size(), 0);
    for (uint32_t block = 1; block < blocks.size(); ++block)
      for (uint32_t value : blocks.listCrossing(block - 1, block))
        bytes[block] += double(graph.size(value));
    return bytes;
  }

  void remove(size_t block) {
    blocks.begins.erase(blocks.begins.begin() + ptrdiff_t(block));
    blocks.boundaries.erase(blocks.boundaries.begin() + ptrdiff_t(block));
  }

  void cut(double reach) {
    blocks.begins.assign(1, 0);
    blocks.boundaries.assign(1, {});
    for (uint32_t position = 1; position < end; ++position)
      if (isNarrowest(position, reach)) {
        blocks.begins.push_back(position);
        blocks.boundaries.push_back(crossing[position]);
      }
    blocks.begins.push_back(end);
    // What crosses is at most a third of what is made on either side.
    for (;;) {
      const std::vector<double> bytes = listHandedOn();
      size_t worst = 0;
      double most = 1;
      for (size_t block = 1; block < blocks.size(); ++block) {
        auto countMade = [&](size_t k) { return bytesBefore[blocks.begins[k + 1]] - bytesBefore[blocks.begins[k]]; };
        const double share = 3 * bytes[block] / std::min(countMade(block - 1), countMade(block));
        if (share > most) {
          worst = block;
          most = share;
        }
      }
      if (!worst)
        break;
      remove(worst);
    }
    const std::vector<double> bytes = listHandedOn();
    for (size_t block = blocks.size(); --block > 0;)
      if (bytes[block] > 1.25 * std::max(bytes[block - 1], bytes[block + 1]))
        remove(block);
  }

  void findBackward() {
    const uint32_t count = blocks.size();
    blocks.backwardFrom.assign(count, uint32_t(order.size()));
    blocks.backwardFrom.back() = end;
    // The last block that a value is there for.
    std::vector<uint32_t> readFor(graph.values.size(), Blocks::none);
    // A mask or a seed that is read early says nothing.
    std::vector<uint64_t> largest(count, 0);
    for (uint32_t value = 0; value < graph.values.size(); ++value)
      if (blocks.made[value] != Blocks::none) {
        readFor[value] = blocks.findAt(blocks.lastForward[value]);
        largest[readFor[value]] = std::max(largest[readFor[value]], graph.size(value));
      }
    for (uint32_t block = 0; block < count; ++block)
      for (uint32_t value : blocks.boundaries[block])
        readFor[value] = std::max(readFor[value], block);
    uint32_t first = count - 1;
    for (uint32_t position = end; position < order.size(); ++position)
      for (uint32_t value : graph.operations[order[position]].reads)
        while (readFor[value] < first && 64 * graph.size(value) >= largest[readFor[value]])
          blocks.backwardFrom[--first] = position;
  }

  void assignMembers() {
    std::vector<char> isBoundary(graph.values.size(), false);
    for (const std::vector<uint32_t> &boundary : blocks.boundaries)
      for (uint32_t value : boundary)
        isBoundary[value] = true;
    blocks.members.assign(blocks.size(), {});
    blocks.blockOf.assign(graph.values.size(), Blocks::none);
    for (uint32_t value = 0; value < graph.values.size(); ++value)
      if (blocks.made[value] != Blocks::none) {
        const uint32_t block = blocks.findAt(isBoundary[value] ? blocks.made[value] : blocks.lastForward[value]);
        blocks.blockOf[value] = block;
        blocks.members[block].push_back(value);
      }
  }

  const StepGraph &graph;
  std::span<const uint32_t> order;
  Blocks blocks;
  uint32_t end = 0;
  /// Seconds to make a byte of the forward part, on the average.
  double meanPrice = 0;
  std::vector<double> bytesBefore;
  std::vector<uint64_t> widths;
  std::vector<std::vector<uint32_t>> crossing;
  std::vector<char> isNeeded, isCrossing;
  /// Made before the position at hand and read after it, by their making.
  std::vector<uint32_t> alive;
};

} // namespace

Blocks findBlocks(const StepGraph &graph, std::span<const uint32_t> order) { return BlockSearch(graph, order).run(); }

} // namespace lowtide::solve
