//===- Mutations.cpp - what may be wrong in a plan -------------------------===//

#include "Mutations.h"

#include <algorithm>
#include <functional>
#include <vector>

using google::protobuf::RepeatedPtrField;

namespace lowtide::fuzz {
namespace {

using Instructions = RepeatedPtrField<plan::Instruction>;
using Slices = RepeatedPtrField<plan::Slice>;

//--- What there is

/// Calls `visit` for the list of every entry and of every repeat in it.
void forEachList(Instructions &list, const std::function<void(Instructions &)> &visit) {
  visit(list);
  for (plan::Instruction &instruction : list)
    if (instruction.has_repeat())
      forEachList(*instruction.mutable_repeat()->mutable_body(), visit);
}

std::vector<Instructions *> listsOf(plan::Entry &entry) {
  std::vector<Instructions *> lists;
  forEachList(*entry.mutable_instructions(), [&](Instructions &list) { lists.push_back(&list); });
  return lists;
}

plan::Entry &anyEntry(plan::Plan &plan, Dice &dice) {
  return *plan.mutable_entries(static_cast<int>(dice.below(static_cast<uint64_t>(plan.entries_size()))));
}

/// A list with instructions, longer ones more often; null where there is none.
Instructions *anyList(plan::Plan &plan, Dice &dice) {
  std::vector<Instructions *> lists = listsOf(anyEntry(plan, dice));
  uint64_t total = 0;
  for (Instructions *list : lists)
    total += static_cast<uint64_t>(list->size());
  uint64_t chosen = dice.below(total);
  for (Instructions *list : lists) {
    if (chosen < static_cast<uint64_t>(list->size()))
      return list;
    chosen -= static_cast<uint64_t>(list->size());
  }
  return nullptr;
}

int anyIndex(const Instructions &list, Dice &dice) {
  return static_cast<int>(dice.below(static_cast<uint64_t>(list.size())));
}

/// All instructions of a kind, in all entries.
std::vector<plan::Instruction *> instructionsOf(plan::Plan &plan, plan::Instruction::KindCase kind) {
  std::vector<plan::Instruction *> found;
  for (plan::Entry &entry : *plan.mutable_entries())
    for (Instructions *list : listsOf(entry))
      for (plan::Instruction &instruction : *list)
        if (instruction.kind_case() == kind)
          found.push_back(&instruction);
  return found;
}

void addAll(Slices &from, std::vector<plan::Slice *> &to) {
  for (plan::Slice &slice : from)
    to.push_back(&slice);
}

/// Every slice of an entry but those of its bindings.
std::vector<plan::Slice *> operandsOf(plan::Entry &entry) {
  std::vector<plan::Slice *> found;
  for (Instructions *list : listsOf(entry))
    for (plan::Instruction &instruction : *list)
      switch (instruction.kind_case()) {
      case plan::Instruction::kLaunch:
        addAll(*instruction.mutable_launch()->mutable_reads(), found);
        addAll(*instruction.mutable_launch()->mutable_writes(), found);
        if (instruction.launch().has_scratch())
          found.push_back(instruction.mutable_launch()->mutable_scratch());
        break;
      case plan::Instruction::kCall:
        addAll(*instruction.mutable_call()->mutable_reads(), found);
        addAll(*instruction.mutable_call()->mutable_writes(), found);
        if (instruction.call().has_workspace())
          found.push_back(instruction.mutable_call()->mutable_workspace());
        break;
      case plan::Instruction::kCopy:
        found.push_back(instruction.mutable_copy()->mutable_source());
        found.push_back(instruction.mutable_copy()->mutable_target());
        break;
      case plan::Instruction::kFill:
        found.push_back(instruction.mutable_fill()->mutable_target());
        break;
      case plan::Instruction::kRepeat:
        for (plan::Carry &carry : *instruction.mutable_repeat()->mutable_carries())
          found.push_back(carry.mutable_slice());
        break;
      default:
        break;
      }
  return found;
}

std::vector<plan::Slice *> slicesOf(plan::Entry &entry) {
  std::vector<plan::Slice *> found = operandsOf(entry);
  for (plan::Binding &binding : *entry.mutable_bindings())
    found.push_back(binding.mutable_slice());
  return found;
}

plan::Slice *anySlice(plan::Plan &plan, Dice &dice) {
  std::vector<plan::Slice *> slices = slicesOf(anyEntry(plan, dice));
  return slices.empty() ? nullptr : dice.pick(slices);
}

/// Elements, cache lines, or any number of bytes.
uint64_t anyDistance(Dice &dice) {
  static constexpr uint64_t distances[] = {1, 2, 4, 8, 16, 64, 128, 256, 1024, 4096};
  return distances[dice.below(std::size(distances))];
}

//--- Instructions

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

/// Moves the last instruction to `to`.
void sink(Instructions &list, int to) {
  for (int at = list.size() - 1; at > to; --at)
    list.SwapElements(at, at - 1);
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

//--- Slices

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

//--- Value numbers

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

//--- Kernels and their launches

bool exchangeKernels(plan::Plan &plan, Dice &dice) {
  std::vector<plan::Instruction *> launches = instructionsOf(plan, plan::Instruction::kLaunch);
  if (launches.empty())
    return false;
  plan::Launch &launch = *dice.pick(launches)->mutable_launch();
  const plan::Launch &other = dice.pick(launches)->launch();
  const uint32_t kernel = other.kernel();
  if (dice.oneIn(3))
    launch.set_extent(other.extent()), launch.set_grain(other.grain());
  launch.set_kernel(kernel);
  return true;
}

bool exchangeSymbols(plan::Plan &plan, Dice &dice) {
  if (plan.kernels_size() < 2)
    return false;
  const auto count = static_cast<uint64_t>(plan.kernels_size());
  plan::Kernel &a = *plan.mutable_kernels(static_cast<int>(dice.below(count)));
  plan::Kernel &b = *plan.mutable_kernels(static_cast<int>(dice.below(count)));
  if (dice.oneIn(2))
    std::swap(*a.mutable_symbol(), *b.mutable_symbol());
  else
    a.set_symbol(b.symbol());
  return &a != &b;
}

plan::Kernel *anyKernel(plan::Plan &plan, Dice &dice) {
  return plan.kernels_size()
             ? plan.mutable_kernels(static_cast<int>(dice.below(static_cast<uint64_t>(plan.kernels_size()))))
             : nullptr;
}

bool changeExtents(plan::Plan &plan, Dice &dice) {
  std::vector<plan::Instruction *> launches = instructionsOf(plan, plan::Instruction::kLaunch);
  if (launches.empty())
    return false;
  plan::Launch &launch = *dice.pick(launches)->mutable_launch();
  if (dice.oneIn(2))
    launch.set_extent(static_cast<int64_t>(changedNumber(static_cast<uint64_t>(launch.extent()), dice)));
  else
    launch.set_grain(static_cast<int64_t>(changedNumber(static_cast<uint64_t>(launch.grain()), dice)));
  return true;
}

bool changeFootprint(plan::Plan &plan, Dice &dice) {
  plan::Kernel *kernel = anyKernel(plan, dice);
  if (!kernel || kernel->footprints().empty())
    return false;
  if (plan::Kernel *other = anyKernel(plan, dice); dice.oneIn(4) && other->footprints_size()) {
    *kernel->add_footprints() = plan::Footprint(other->footprints(0));
    return true;
  }
  return changeAnyField(*kernel->mutable_footprints(0), dice);
}

/// A kernel states other sizes, and its launches are of those: a footprint that its code does not have.
bool changeStatement(plan::Plan &plan, Dice &dice) {
  plan::Kernel *kernel = anyKernel(plan, dice);
  if (!kernel || kernel->footprints().empty())
    return false;
  plan::Footprint &stated = *kernel->mutable_footprints(0);
  const int64_t extent = stated.extent(), grain = stated.grain();
  auto changed = [&](int64_t old) {
    static constexpr int64_t few[] = {0, 1, 2, 3, 4};
    return dice.oneIn(2) ? old * 2 : dice.oneIn(2) ? old / 2 : few[dice.below(5)];
  };
  std::vector<plan::Instruction *> launches;
  for (plan::Instruction *instruction : instructionsOf(plan, plan::Instruction::kLaunch))
    if (const uint32_t used = instruction->launch().kernel();
        used < static_cast<uint32_t>(plan.kernels_size()) && plan.mutable_kernels(static_cast<int>(used)) == kernel)
      launches.push_back(instruction);
  switch (dice.below(4)) {
  case 0:
    stated.set_extent(changed(extent));
    break;
  case 1:
    stated.set_grain(std::max<int64_t>(changed(grain), 1));
    break;
  case 2: {
    const uint64_t bytes = dice.oneIn(2) ? kernel->scratch_bytes() / 2 : kernel->scratch_bytes() * 2;
    for (plan::Instruction *launch : launches)
      if (kernel->scratch_bytes())
        launch->mutable_launch()->mutable_scratch()->set_bytes(launch->launch().scratch().bytes() /
                                                               kernel->scratch_bytes() * bytes);
    kernel->set_scratch_bytes(bytes);
    return true;
  }
  default: {
    // Fewer elements of one operand or result.
    const bool ofReads = stated.reads_size() && dice.oneIn(2);
    auto &tensors = ofReads ? *stated.mutable_reads() : *stated.mutable_writes();
    if (tensors.empty())
      return false;
    const int which = static_cast<int>(dice.below(static_cast<uint64_t>(tensors.size())));
    plan::Footprint::Tensor &tensor = tensors[which];
    const uint64_t before = tensor.elements();
    if (!before)
      return false;
    tensor.set_elements(dice.oneIn(2) ? before / 2 : before - 1);
    for (plan::Instruction *instruction : launches) {
      plan::Launch &launch = *instruction->mutable_launch();
      Slices &slices = ofReads ? *launch.mutable_reads() : *launch.mutable_writes();
      if (which < slices.size())
        slices[which].set_bytes(slices[which].bytes() / before * tensor.elements());
    }
    return true;
  }
  }
  for (plan::Instruction *instruction : launches)
    if (instruction->launch().extent() == extent && instruction->launch().grain() == grain)
      instruction->mutable_launch()->set_extent(stated.extent()),
          instruction->mutable_launch()->set_grain(stated.grain());
  return true;
}

bool changeKernelField(plan::Plan &plan, Dice &dice) {
  plan::Kernel *kernel = anyKernel(plan, dice);
  if (!kernel)
    return false;
  switch (dice.below(4)) {
  case 0:
    kernel->set_scratch_bytes(changedNumber(kernel->scratch_bytes(), dice));
    break;
  case 1:
    kernel->set_reads(static_cast<uint32_t>(changedNumber(kernel->reads(), dice)));
    break;
  case 2:
    kernel->set_shared_bytes(static_cast<uint32_t>(changedNumber(kernel->shared_bytes(), dice)));
    break;
  default: {
    static constexpr uint32_t threads[] = {0, 1, 32, 64, 128, 256, 512, 1024, 1056};
    kernel->set_threads_per_block(threads[dice.below(std::size(threads))]);
  }
  }
  return true;
}

//--- Calls, copies, fills

bool changeAttribute(plan::Plan &plan, Dice &dice) {
  std::vector<plan::Instruction *> calls = instructionsOf(plan, plan::Instruction::kCall);
  if (calls.empty())
    return false;
  plan::Call &call = *dice.pick(calls)->mutable_call();
  if (dice.oneIn(8) || call.attributes().empty()) {
    const plan::Call other = dice.pick(calls)->call();
    if (dice.oneIn(2))
      call.set_callee(other.callee());
    else
      *call.mutable_attributes() = other.attributes();
    return true;
  }
  auto &attributes = *call.mutable_attributes();
  plan::Attribute &attribute = attributes[static_cast<int>(dice.below(static_cast<uint64_t>(attributes.size())))];
  auto &other = attributes[static_cast<int>(dice.below(static_cast<uint64_t>(attributes.size())))];
  switch (dice.below(6)) {
  case 0: { // as another has it: m and n, a dimension and a stride
    const std::string name = attribute.name();
    attribute = plan::Attribute(other);
    attribute.set_name(name);
    return true;
  }
  case 1:
    std::swap(*attribute.mutable_name(), *other.mutable_name());
    return true;
  case 2:
    attribute.Swap(&attributes[attributes.size() - 1]);
    attributes.RemoveLast();
    return true;
  default:
    return changeAnyField(attribute, dice);
  }
}

bool changeCopy(plan::Plan &plan, Dice &dice) {
  std::vector<plan::Instruction *> copies = instructionsOf(plan, plan::Instruction::kCopy);
  for (plan::Instruction *fill : instructionsOf(plan, plan::Instruction::kFill))
    copies.push_back(fill);
  if (copies.empty())
    return false;
  plan::Instruction &instruction = *dice.pick(copies);
  if (instruction.has_fill()) {
    plan::Fill &fill = *instruction.mutable_fill();
    if (dice.oneIn(2))
      fill.set_pattern(changedNumber(fill.pattern(), dice));
    else
      fill.set_pattern_bytes(static_cast<uint32_t>(dice.oneIn(4) ? dice.next() : dice.below(17)));
    return true;
  }
  plan::Copy &copy = *instruction.mutable_copy();
  switch (dice.below(4)) {
  case 0:
    copy.set_source_step(dice.oneIn(2) ? anyDistance(dice) : changedNumber(copy.source_step(), dice));
    break;
  case 1:
    copy.set_target_step(dice.oneIn(2) ? anyDistance(dice) : changedNumber(copy.target_step(), dice));
    break;
  case 2:
    copy.mutable_source()->Swap(copy.mutable_target());
    break;
  default: {
    const uint64_t bytes = changedNumber(copy.source().bytes(), dice);
    copy.mutable_source()->set_bytes(bytes);
    copy.mutable_target()->set_bytes(bytes);
  }
  }
  return true;
}

//--- Repeats

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

//--- Bindings, entries, arenas, streams

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
    // What one entry does comes behind what another does.
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
  switch (dice.below(4)) {
  case 0:
    arena.set_bytes(changedNumber(arena.bytes(), dice));
    return true;
  case 1:
    arena.set_kind(static_cast<plan::Arena::Kind>(dice.below(6)));
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

bool changeField(plan::Plan &plan, Dice &dice) { return changeAnyField(plan, dice); }

constexpr Mutation all[] = {
    {"swap instructions", swapInstructions},
    {"delete an instruction", deleteInstruction},
    {"duplicate an instruction", duplicateInstruction},
    {"move an instruction", moveInstruction},
    {"resize a slice", resizeSlice},
    {"shift a slice", shiftSlice},
    {"exchange slices", exchangeSlices},
    {"change a slice's arena", changeArenaOfSlice},
    {"relocate a value", relocateValue},
    {"change a value number", changeValue},
    {"renumber a value", renumberValue},
    {"exchange kernels", exchangeKernels},
    {"exchange symbols", exchangeSymbols},
    {"change an extent", changeExtents},
    {"change a footprint", changeFootprint},
    {"change a statement", changeStatement},
    {"change a kernel", changeKernelField},
    {"change an attribute", changeAttribute},
    {"change a copy or fill", changeCopy},
    {"change a carry", changeCarry},
    {"change a repeat", changeRepeat},
    {"change a binding", changeBinding},
    {"change an entry", changeEntry},
    {"change an arena", changeArena},
    {"change streams", changeStreams},
    {"spread over streams", spreadOverStreams},
    {"change any field", changeField},
};

} // namespace

std::span<const Mutation> mutations() { return all; }

} // namespace lowtide::fuzz
