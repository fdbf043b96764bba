//===- BlockChain.cpp - what each block of a step keeps -------------------===//
//
// After Rotor (Beaumont et al. 2019) with several choices for each block, as in
// Rockmate (Zhao et al. 2023), but on any graph that has narrow places.
// 1. Saved sets: priced cuts in which boundaries are free, so that what lies
// between two of them is chosen apart: all boundaries, every second one, and so
// on. Blocks of the same structure get the same choices, for one cut.
// 2. The exact timeline of each set gives bytes and seconds of all its blocks.
// 3. Over ranges of blocks and units of memory, the cheapest of: the first
// blocks by a choice, then the rest; or run to a checkpoint, do what is after
// it, and run what is before it again.
// 4. What was chosen is written as a schedule, recomputations on demand.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Solve/Searches/BlockChain.h"
#include "OnDemand.h"
#include "PricedCut.h"
#include "lowtide/Solve/Searches/Baselines.h"

#include <algorithm>

namespace lowtide::solve {
namespace {

/// Boundaries are free from every one to every sixth.
constexpr uint32_t mostStride = 6;
/// Units of the largest budget that a table is made for; half as many of the smallest.
constexpr int64_t numUnits = 600;
constexpr float impossible = 1e30f;

bool isWorse(const BlockChoice &choice, const BlockChoice &other) {
  if (other.end != choice.end || other.keptBytes > choice.keptBytes || other.peakBytes > choice.peakBytes ||
      other.seconds > choice.seconds)
    return false;
  return other.keptBytes < choice.keptBytes || other.peakBytes < choice.peakBytes || other.seconds < choice.seconds ||
         other.set < choice.set;
}

} // namespace

BlockChain::BlockChain(const StepGraph &graph, std::span<const uint32_t> order)
    : graph(graph), order(order), blocks(findBlocks(graph, order)), choices(blocks.size()) {
  if (blocks.size() > 1)
    listChoices();
}

int64_t BlockChain::countCrossing(uint32_t from, uint32_t to) const {
  int64_t bytes = 0;
  for (uint32_t value : blocks.listCrossing(from, to))
    bytes += int64_t(graph.size(value));
  return bytes;
}

void BlockChain::listChoices() {
  const uint32_t count = blocks.size();
  forwardBytes.assign(count, INT64_MAX);
  sets.emplace_back(graph.values.size(), true);
  for (uint32_t stride = 1; stride <= std::min(mostStride, count - 1); ++stride)
    for (uint32_t offset = 0; offset < stride; ++offset) {
      std::vector<char> isFree(graph.values.size(), false);
      for (uint32_t block = offset; block < count; block += stride)
        for (uint32_t value : blocks.boundaries[block])
          isFree[value] = true;
      for (SavedSet &saved : listCutsBetween(graph, order, isFree)) {
        for (uint32_t value = 0; value < saved.size(); ++value)
          saved[value] = saved[value] || isFree[value];
        sets.push_back(std::move(saved));
      }
    }
  std::sort(sets.begin() + 1, sets.end());
  sets.erase(std::unique(sets.begin() + 1, sets.end()), sets.end());
  for (size_t set = 0; set < sets.size(); ++set)
    measure(sets[set], int16_t(set));
  for (uint32_t block = 0; block < count; ++block) {
    std::vector<BlockChoice> useful;
    for (const BlockChoice &choice : choices[block])
      if (std::none_of(choices[block].begin(), choices[block].end(),
                       [&](const BlockChoice &other) { return isWorse(choice, other); }))
        useful.push_back(choice);
    choices[block] = std::move(useful);
    double seconds = 0;
    for (uint32_t position = blocks.begins[block]; position < blocks.begins[block + 1]; ++position)
      for (uint32_t again : listReruns(graph, order[position]))
        seconds += graph.at(again).seconds;
    rerunSeconds.push_back(seconds);
    // By itself, from nothing but its boundary.
    const auto least = std::min_element(choices[block].begin(), choices[block].end(), [&](auto &one, auto &other) {
      return std::pair(one.end, one.keptBytes) < std::pair(other.end, other.keptBytes);
    });
    lastRerunSeconds.push_back(least != choices[block].end() && least->end == block + 1 ? least->seconds : seconds);
  }
}

void BlockChain::measure(const SavedSet &saved, int16_t set) {
  const FittedSchedule plan = planFromSaved(graph, order, saved, "saved");
  if (plan.timeline.live.empty())
    return;
  const uint32_t count = blocks.size();
  // Bytes of a block that wait for backward parts, and in all blocks before it; most bytes in either part.
  std::vector<int64_t> waiting(count + 1, 0), forward(count, 0), backward(count, 0);
  std::vector<double> seconds(count, 0);
  std::vector<char> ran(graph.operations.size(), false), isWaiting(graph.values.size(), false);
  std::vector<uint32_t> runs(graph.values.size(), 0);
  uint32_t position = 0;
  for (uint32_t now = 0; now < plan.schedule.size(); ++now) {
    const uint32_t op = plan.schedule[now], block = blocks.findAt(position);
    const bool isForward = position < blocks.getForwardEnd();
    int64_t &most = isForward ? forward[block] : backward[block];
    most = std::max(most, int64_t(plan.timeline.live[now]));
    for (uint32_t value : graph.at(op).reads)
      isWaiting[value] = isWaiting[value] || (!isForward && runs[value] == 1);
    for (uint32_t value : graph.at(op).writes)
      ++runs[value];
    if (op < ran.size() && !ran[op]) {
      ran[op] = true;
      ++position;
    } else {
      seconds[block] += graph.at(op).seconds;
    }
  }
  for (uint32_t block = 0; block < count; ++block) {
    waiting[block + 1] = waiting[block];
    for (uint32_t value : blocks.members[block]) {
      isWaiting[value] = isWaiting[value] && !graph.values[value].kept;
      waiting[block + 1] += isWaiting[value] ? int64_t(graph.size(value)) : 0;
    }
    forwardBytes[block] = std::min(forwardBytes[block], forward[block] - waiting[block]);
  }
  auto isCut = [&](uint32_t block) {
    return block >= count || std::all_of(blocks.boundaries[block].begin(), blocks.boundaries[block].end(),
                                         [&](uint32_t value) { return saved[value]; });
  };
  for (uint32_t first = 0, end = 0; first < count; first = end) {
    BlockChoice choice;
    choice.set = set;
    for (end = first; end == first || !isCut(end); ++end) {
      choice.peakBytes = std::max({choice.peakBytes, forward[end] - waiting[first], backward[end] - waiting[first]});
      choice.seconds += seconds[end];
    }
    choice.end = end;
    // The boundary counts whether or not this set needs it.
    choice.keptBytes = waiting[end] - waiting[first];
    for (uint32_t value : blocks.listCrossing(first, end))
      choice.keptBytes += isWaiting[value] ? 0 : int64_t(graph.size(value));
    choices[first].push_back(choice);
  }
}

void BlockChain::solve(uint64_t mostBytes) {
  const uint32_t count = blocks.size();
  unitBytes = std::max<int64_t>(1, int64_t(mostBytes) / numUnits);
  table.assign(size_t(count) * count, {});
  for (uint32_t length = 1; length <= count; ++length)
    for (uint32_t first = 0; first + length <= count; ++first) {
      const uint32_t last = first + length - 1;
      std::vector<Cell> &cells = at(first, last);
      cells.assign(numUnits + 1, {impossible, -1, 0});
      for (const BlockChoice &choice : choices[first]) {
        if (choice.end > last + 1)
          continue;
        const std::vector<Cell> *rest = choice.end <= last ? &at(choice.end, last) : nullptr;
        const int64_t kept = rest ? toUnits(choice.keptBytes) : 0;
        for (int64_t units = std::max(toUnits(choice.peakBytes), kept); units <= numUnits; ++units)
          if (const float seconds = float(choice.seconds) + (rest ? (*rest)[units - kept].seconds : 0);
              seconds < cells[units].seconds)
            cells[units] = {seconds, choice.set, int16_t(choice.end)};
      }
      double rerun = 0;
      int64_t most = 0;
      for (uint32_t checkpoint = first + 1; checkpoint <= last; ++checkpoint) {
        const std::vector<Cell> &rest = at(checkpoint, last), &again = at(first, checkpoint - 1);
        const float cost = float(rerun + lastRerunSeconds[checkpoint - 1]);
        const int64_t kept = toUnits(countCrossing(first, checkpoint));
        rerun += rerunSeconds[checkpoint - 1];
        most = std::max(most, toUnits(forwardBytes[checkpoint - 1]));
        for (int64_t units = std::max(most, kept); units <= numUnits; ++units)
          if (const float seconds = cost + rest[units - kept].seconds + again[units].seconds;
              seconds < cells[units].seconds)
            cells[units] = {seconds, -1, int16_t(checkpoint)};
      }
    }
}

void BlockChain::trace(uint32_t first, uint32_t last, int64_t units, bool isFirstRun) {
  const Cell cell = at(first, last)[units];
  const uint32_t end = uint32_t(cell.end);
  const bool isLast = end > last;
  // What is after the last block is there, or done, when it runs again.
  Rerun rerun{isLast && !isFirstRun ? std::vector<uint32_t>() : blocks.listCrossing(first, end), first, end};
  if (cell.set >= 0)
    for (uint32_t block = first; block < end; ++block)
      std::copy_if(blocks.members[block].begin(), blocks.members[block].end(), std::back_inserter(rerun.values),
                   [&](uint32_t value) { return sets[cell.set][value]; });
  if (isFirstRun)
    for (uint32_t value : rerun.values)
      isKept[value] = true;
  else
    reruns[last].push_back(std::move(rerun));
  if (isLast)
    return;
  if (cell.set < 0) {
    trace(end, last, units - toUnits(countCrossing(first, end)), isFirstRun);
    trace(first, end - 1, units, false);
    return;
  }
  const auto choice = std::find_if(choices[first].begin(), choices[first].end(), [&](const BlockChoice &choice) {
    return choice.set == cell.set && choice.end == end;
  });
  trace(end, last, units - toUnits(choice->keptBytes), isFirstRun);
}

std::optional<FittedSchedule> BlockChain::write() const {
  std::vector<char> isPinned(graph.values.size(), false);
  for (uint32_t value = 0; value < isPinned.size(); ++value)
    isPinned[value] = blocks.made[value] != Blocks::none && !findMaker(graph, value);
  std::vector<std::vector<uint32_t>> lastRead(blocks.getForwardEnd() + 1);
  for (uint32_t value = 0; value < graph.values.size(); ++value)
    if (blocks.made[value] != Blocks::none)
      lastRead[blocks.lastForward[value] + 1].push_back(value);
  for (;;) {
    OnDemand writer(graph, order);
    std::vector<char> stays = isKept;
    bool isWritten = true;
    uint32_t block = blocks.size();
    auto forget = [&](uint32_t position, std::vector<char> &there) {
      auto drop = [&](uint32_t value) { there[value] = there[value] && (stays[value] || isPinned[value]); };
      if (position < lastRead.size())
        std::for_each(lastRead[position].begin(), lastRead[position].end(), drop);
      while (isWritten && block > 0 && blocks.backwardFrom[block - 1] <= position) {
        --block;
        auto dropRest = [&] {
          for (uint32_t before = 0; before <= block; ++before)
            std::for_each(blocks.members[before].begin(), blocks.members[before].end(), drop);
        };
        dropRest();
        for (const Rerun &rerun : reruns[block]) {
          isWritten = isWritten && std::all_of(rerun.values.begin(), rerun.values.end(),
                                               [&](uint32_t value) { return writer.provide(value); });
          for (uint32_t again = rerun.begin; again < rerun.end; ++again)
            for (uint32_t value : blocks.members[again])
              stays[value] = false;
          for (uint32_t value : rerun.values)
            stays[value] = true;
          dropRest();
        }
      }
    };
    if (writer.run(forget) && isWritten) {
      std::optional<Timeline> timeline = evaluate(graph, writer.schedule);
      if (!timeline)
        return std::nullopt;
      return FittedSchedule{std::move(writer.schedule), std::move(*timeline), "block by block"};
    }
    if (isPinned[writer.missing])
      return std::nullopt;
    isPinned[writer.missing] = true;
  }
}

std::optional<FittedSchedule> BlockChain::plan(uint64_t budgetBytes) {
  const uint32_t count = blocks.size();
  if (count < 2 || sets.empty())
    return std::nullopt;
  if (!unitBytes || int64_t(budgetBytes) > unitBytes * numUnits || int64_t(budgetBytes) < unitBytes * numUnits / 2)
    solve(2 * budgetBytes);
  const int64_t units = std::min(int64_t(budgetBytes) / unitBytes, numUnits);
  if (at(0, count - 1)[units].seconds >= impossible)
    return std::nullopt;
  isKept.assign(graph.values.size(), false);
  reruns.assign(count, {});
  trace(0, count - 1, units, true);
  return write();
}

} // namespace lowtide::solve
