//===- MutateInstructions.cpp - order, places and value numbers ------------===//

#include "PlanWalk.h"

#include <algorithm>

namespace lowtide::fuzz {

bool swapInstructions(plan::Plan &plan, Dice &dice) {
  Instructions *list = anyList(plan, dice);
  if (!list || list->size() < 2)
    return false;
  const int a = anyIndex(*list, dice), b = dice.oneIn(2) ? (a + 1) % list->size() : anyIndex(*list, dice);
  list->SwapElements(a, b);
  return a != b;
}

bool deleteInstruction(plan::Plan &plan, Dice &dice) {
  Instructions *list = anyList(plan, dice);
  if (!list)
    return false;
  list->DeleteSubrange(anyIndex(*list, dice), 1);
  return true;
}

bool duplicateInstruction(plan::Plan &plan, Dice &dice) {
  Instructions *list = anyList(plan, dice);
  if (!list)
    return false;
  const int at = anyIndex(*list, dice);
  const plan::Instruction copy = list->Get(at);
  *list->Add() = copy;
  sink(*list, dice.oneIn(2) ? at + 1 : anyIndex(*list, dice));
  return true;
}

bool moveInstruction(plan::Plan &plan, Dice &dice) {
  Instructions *from = anyList(plan, dice);
  if (!from)
    return false;
  const int at = anyIndex(*from, dice);
  const plan::Instruction moved = from->Get(at);
  if (moved.has_repeat()) {
    // A repeat stays in its list: it may hold the others.
    for (int to = anyIndex(*from, dice), i = at; i != to; i += to > i ? 1 : -1)
      from->SwapElements(i, i + (to > i ? 1 : -1));
    return true;
  }
  from->DeleteSubrange(at, 1);
  Instructions *to = anyList(plan, dice);
  if (!to)
    to = from;
  const int place = static_cast<int>(dice.below(static_cast<uint64_t>(to->size()) + 1));
  *to->Add() = moved;
  sink(*to, place);
  return true;
}

bool resizeSlice(plan::Plan &plan, Dice &dice) {
  plan::Slice *slice = anySlice(plan, dice);
  if (!slice)
    return false;
  slice->set_bytes(dice.oneIn(4) ? changedNumber(slice->bytes(), dice)
                                 : slice->bytes() + (dice.oneIn(2) ? anyDistance(dice) : -anyDistance(dice)));
  return true;
}

bool shiftSlice(plan::Plan &plan, Dice &dice) {
  plan::Slice *slice = anySlice(plan, dice);
  if (!slice)
    return false;
  slice->set_offset(dice.oneIn(4) ? changedNumber(slice->offset(), dice)
                                  : slice->offset() + (dice.oneIn(2) ? anyDistance(dice) : -anyDistance(dice)));
  return true;
}

bool exchangeSlices(plan::Plan &plan, Dice &dice) {
  plan::Entry &entry = anyEntry(plan, dice);
  std::vector<plan::Slice *> slices = dice.oneIn(4) ? slicesOf(entry) : operandsOf(entry);
  if (slices.size() < 2)
    return false;
  plan::Slice *a = dice.pick(slices);
  std::vector<plan::Slice *> others;
  // Of the same size mostly: others are refused at once.
  for (plan::Slice *slice : slices)
    if (slice != a && slice->bytes() == a->bytes())
      others.push_back(slice);
  plan::Slice *b = dice.pick(others.empty() || dice.oneIn(8) ? slices : others);
  if (dice.oneIn(2))
    a->Swap(b); // both directions
  else
    *a = *b; // one is read, or written, twice
  return a != b;
}

bool changeArenaOfSlice(plan::Plan &plan, Dice &dice) {
  plan::Slice *slice = anySlice(plan, dice);
  if (!slice)
    return false;
  slice->set_arena(static_cast<uint32_t>(dice.below(static_cast<uint64_t>(plan.arenas_size()) + 1)));
  return true;
}

/// All slices of one place lie somewhere else together, as another planner would have it.
bool relocateValue(plan::Plan &plan, Dice &dice) {
  plan::Slice *some = anySlice(plan, dice);
  if (!some)
    return false;
  const plan::Slice from = *some;
  plan::Slice to = from;
  if (plan::Slice *other = anySlice(plan, dice); other && dice.oneIn(2))
    to.set_arena(other->arena()), to.set_offset(other->offset());
  else
    to.set_offset(from.offset() + (dice.oneIn(2) ? anyDistance(dice) : -anyDistance(dice)));
  const bool ofOneValue = dice.oneIn(2);
  for (plan::Entry &entry : *plan.mutable_entries())
    for (plan::Slice *slice : slicesOf(entry))
      if (slice->arena() == from.arena() && slice->offset() == from.offset() && slice->bytes() == from.bytes() &&
          (!ofOneValue || slice->value() == from.value()))
        slice->set_arena(to.arena()), slice->set_offset(to.offset());
  return true;
}

/// A result lies where an operand of its instruction does, in an arena's new bytes, so that nothing else is there.
bool overlayResult(plan::Plan &plan, Dice &dice) {
  std::vector<std::pair<plan::Slice, plan::Slice>> pairs;
  plan::Entry &entry = anyEntry(plan, dice);
  for (Instructions *list : listsOf(entry))
    for (const plan::Instruction &instruction : *list) {
      const bool isLaunch = instruction.has_launch();
      if (!isLaunch && !instruction.has_call())
        continue;
      for (const plan::Slice &read : isLaunch ? instruction.launch().reads() : instruction.call().reads())
        for (const plan::Slice &write : isLaunch ? instruction.launch().writes() : instruction.call().writes())
          if (read.bytes() == write.bytes() && read.value() != write.value())
            pairs.emplace_back(read, write);
    }
  if (pairs.empty())
    return false;
  const auto [read, write] = dice.pick(pairs);
  if (write.arena() >= static_cast<uint32_t>(plan.arenas_size()))
    return false;
  plan::Arena &arena = *plan.mutable_arenas(static_cast<int>(write.arena()));
  const uint64_t place = (arena.bytes() + 63) / 64 * 64;
  arena.set_bytes(place + write.bytes());
  for (plan::Slice *slice : slicesOf(entry))
    if (slice->value() == read.value() || slice->value() == write.value())
      slice->set_arena(write.arena()), slice->set_offset(place);
  // What is alive at once has changed.
  entry.set_peak_live_bytes(0);
  return true;
}

bool changeValue(plan::Plan &plan, Dice &dice) {
  plan::Entry &entry = anyEntry(plan, dice);
  std::vector<plan::Slice *> slices = slicesOf(entry);
  if (slices.empty())
    return false;
  plan::Slice *slice = dice.pick(slices);
  slice->set_value(dice.oneIn(2) ? dice.pick(slices)->value() : changedNumber(slice->value(), dice));
  return true;
}

/// One number becomes another wherever it is used, perhaps one that is used already.
bool renumberValue(plan::Plan &plan, Dice &dice) {
  plan::Entry &entry = anyEntry(plan, dice);
  std::vector<plan::Slice *> slices = slicesOf(entry);
  if (slices.empty())
    return false;
  const uint64_t from = dice.pick(slices)->value();
  const uint64_t to = dice.oneIn(2) ? dice.pick(slices)->value() : changedNumber(from, dice);
  for (plan::Slice *slice : slices)
    if (slice->value() == from)
      slice->set_value(to);
  for (plan::Binding &binding : *entry.mutable_bindings())
    if (binding.final_value() == from)
      binding.set_final_value(to);
  for (Instructions *list : listsOf(entry))
    for (plan::Instruction &instruction : *list)
      if (instruction.has_repeat())
        for (plan::Carry &carry : *instruction.mutable_repeat()->mutable_carries())
          if (carry.next_value() == from)
            carry.set_next_value(to);
  return true;
}

} // namespace lowtide::fuzz
