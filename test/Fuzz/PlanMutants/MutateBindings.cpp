//===- MutateBindings.cpp - repeats, bindings, arenas, streams -------------===//

#include "PlanWalk.h"

#include <algorithm>

namespace lowtide::fuzz {

bool changeCarry(plan::Plan &plan, Dice &dice) {
  std::vector<plan::Instruction *> repeats = instructionsOf(plan, plan::Instruction::kRepeat);
  if (repeats.empty())
    return false;
  plan::Repeat &repeat = *dice.pick(repeats)->mutable_repeat();
  if (repeat.body().empty())
    return false;
  auto &carries = *repeat.mutable_carries();
  if (carries.empty() || dice.oneIn(5)) {
    // A value of its own makes another one the next round's.
    plan::Instruction &inner =
        *repeat.mutable_body(static_cast<int>(dice.below(static_cast<uint64_t>(repeat.body_size()))));
    plan::Entry one;
    *one.add_instructions() = inner;
    std::vector<plan::Slice *> slices = operandsOf(one);
    if (slices.empty())
      return false;
    plan::Carry &carry = *carries.Add();
    *carry.mutable_slice() = *dice.pick(slices);
    carry.set_next_value(dice.pick(slices)->value());
    return true;
  }
  const int at = static_cast<int>(dice.below(static_cast<uint64_t>(carries.size())));
  plan::Carry &carry = carries[at];
  switch (dice.below(6)) {
  case 0:
    carries.DeleteSubrange(at, 1);
    return true;
  case 1: {
    const plan::Carry copy = carry;
    *carries.Add() = copy;
    return true;
  }
  case 2:
    carry.set_next_value(dice.oneIn(2) ? carry.slice().value() : changedNumber(carry.next_value(), dice));
    return true;
  case 3:
    carry.mutable_slice()->set_value(dice.oneIn(2) ? carry.next_value() : changedNumber(carry.slice().value(), dice));
    return true;
  case 4: {
    plan::Carry &other = carries[static_cast<int>(dice.below(static_cast<uint64_t>(carries.size())))];
    const uint64_t value = other.next_value();
    other.set_next_value(carry.next_value());
    carry.set_next_value(value);
    return true;
  }
  default:
    return changeAnyField(carry, dice);
  }
}

bool changeRepeat(plan::Plan &plan, Dice &dice) {
  std::vector<plan::Instruction *> repeats = instructionsOf(plan, plan::Instruction::kRepeat);
  if (repeats.empty() || dice.oneIn(3)) {
    // Some instructions are put into a repeat.
    Instructions *list = anyList(plan, dice);
    if (!list)
      return false;
    const int from = anyIndex(*list, dice);
    const int count = std::min(list->size() - from, 1 + static_cast<int>(dice.below(4)));
    plan::Instruction repeat;
    repeat.mutable_repeat()->set_count(1 + static_cast<int64_t>(dice.below(3)));
    for (int i = 0; i < count; ++i)
      *repeat.mutable_repeat()->add_body() = list->Get(from + i);
    list->DeleteSubrange(from, count);
    *list->Add() = repeat;
    sink(*list, from);
    return true;
  }
  plan::Repeat &repeat = *dice.pick(repeats)->mutable_repeat();
  repeat.set_count(dice.oneIn(4) ? static_cast<int64_t>(changedNumber(static_cast<uint64_t>(repeat.count()), dice))
                                 : static_cast<int64_t>(dice.below(8)));
  return true;
}

bool changeBinding(plan::Plan &plan, Dice &dice) {
  plan::Entry &entry = anyEntry(plan, dice);
  auto &bindings = *entry.mutable_bindings();
  if (bindings.empty())
    return false;
  const auto count = static_cast<uint64_t>(bindings.size());
  const int at = static_cast<int>(dice.below(count));
  plan::Binding &binding = bindings[at], &other = bindings[static_cast<int>(dice.below(count))];
  switch (dice.below(9)) {
  case 0:
    bindings.DeleteSubrange(at, 1);
    return true;
  case 1: {
    const plan::Binding copy = binding;
    *bindings.Add() = copy;
    if (dice.oneIn(2))
      bindings[bindings.size() - 1].set_name(copy.name() + ".2");
    return true;
  }
  case 2: // two tensors of the same shape change places
    if (&binding == &other)
      return false;
    binding.mutable_slice()->Swap(other.mutable_slice());
    if (dice.oneIn(2)) {
      const uint64_t value = binding.final_value();
      binding.set_final_value(other.final_value());
      other.set_final_value(value);
    }
    return true;
  case 3:
    std::swap(*binding.mutable_name(), *other.mutable_name());
    return true;
  case 4:
    binding.set_kind(static_cast<plan::Binding::Kind>(dice.below(9)));
    return true;
  case 5:
    binding.set_dtype(static_cast<plan::DType>(dice.below(15)));
    return true;
  case 6:
    binding.set_from_image(!binding.from_image());
    return true;
  case 7:
    binding.set_final_value(dice.oneIn(2) ? binding.slice().value() : other.final_value());
    return true;
  default:
    return changeAnyField(binding, dice);
  }
}

bool changeEntry(plan::Plan &plan, Dice &dice) {
  auto &entries = *plan.mutable_entries();
  if (entries.empty())
    return false;
  const auto count = static_cast<uint64_t>(entries.size());
  const int at = static_cast<int>(dice.below(count));
  plan::Entry &entry = entries[at], &other = entries[static_cast<int>(dice.below(count))];
  switch (dice.below(5)) {
  case 0:
    entries.DeleteSubrange(at, 1);
    return true;
  case 1:
    entry.mutable_instructions()->Swap(other.mutable_instructions());
    return &entry != &other;
  case 2:
    entry.mutable_bindings()->Swap(other.mutable_bindings());
    return &entry != &other;
  case 3: {
    // What one entry does comes after what another does.
    const plan::Entry copy = other;
    entry.mutable_instructions()->MergeFrom(copy.instructions());
    return true;
  }
  default:
    entry.set_peak_live_bytes(dice.oneIn(2) ? 0 : changedNumber(entry.peak_live_bytes(), dice));
    return true;
  }
}

bool changeArena(plan::Plan &plan, Dice &dice) {
  if (plan.arenas().empty())
    return false;
  plan::Arena &arena = *plan.mutable_arenas(static_cast<int>(dice.below(static_cast<uint64_t>(plan.arenas_size()))));
  switch (dice.below(5)) {
  case 0:
    arena.set_bytes(changedNumber(arena.bytes(), dice));
    return true;
  case 1:
    arena.set_role(static_cast<plan::Arena::Role>(dice.below(9)));
    return true;
  case 3:
    arena.set_space(static_cast<plan::Arena::Space>(dice.below(6)));
    return true;
  case 2:
    arena.set_alignment(uint64_t(1) << dice.below(24));
    return true;
  default:
    return changeAnyField(arena, dice);
  }
}

bool changeStreams(plan::Plan &plan, Dice &dice) {
  plan::Entry &entry = anyEntry(plan, dice);
  Instructions *list = anyList(plan, dice);
  if (!list)
    return false;
  plan::Instruction &instruction = *list->Mutable(anyIndex(*list, dice));
  switch (dice.below(5)) {
  case 0:
    instruction.set_stream(static_cast<uint32_t>(dice.oneIn(4) ? dice.next() : dice.below(4)));
    break;
  case 1:
    entry.set_streams(static_cast<uint32_t>(dice.oneIn(4) ? changedNumber(entry.streams(), dice) : dice.below(5)));
    break;
  case 2:
    entry.set_events(static_cast<uint32_t>(dice.oneIn(4) ? changedNumber(entry.events(), dice) : dice.below(5)));
    break;
  default: {
    plan::Instruction added;
    const auto event = static_cast<uint32_t>(dice.below(3));
    if (dice.oneIn(2))
      added.mutable_record()->set_event(event);
    else
      added.mutable_wait()->set_event(event);
    added.set_stream(static_cast<uint32_t>(dice.below(3)));
    *list->Add() = added;
    sink(*list, anyIndex(*list, dice));
  }
  }
  return true;
}

/// Two streams, with an event from each instruction of one to the next of the other; perhaps one is lost.
bool spreadOverStreams(plan::Plan &plan, Dice &dice) {
  plan::Entry &entry = anyEntry(plan, dice);
  Instructions old;
  old.Swap(entry.mutable_instructions());
  const int lost = dice.oneIn(2) ? static_cast<int>(dice.below(static_cast<uint64_t>(old.size()) + 1)) : -1;
  uint32_t event = 0;
  for (int i = 0; i < old.size(); ++i) {
    const auto stream = static_cast<uint32_t>(i % 2);
    if (i && i != lost) {
      plan::Instruction *record = entry.add_instructions();
      record->mutable_record()->set_event(event);
      record->set_stream(1 - stream);
      plan::Instruction *wait = entry.add_instructions();
      wait->mutable_wait()->set_event(event++);
      wait->set_stream(stream);
    }
    plan::Instruction *instruction = entry.add_instructions();
    instruction->Swap(&old[i]);
    instruction->set_stream(stream);
    if (instruction->has_repeat())
      for (plan::Instruction &inner : *instruction->mutable_repeat()->mutable_body())
        inner.set_stream(stream);
  }
  entry.set_streams(2);
  entry.set_events(event);
  return true;
}

} // namespace lowtide::fuzz
