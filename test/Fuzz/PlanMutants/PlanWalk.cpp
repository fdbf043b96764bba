//===- PlanWalk.cpp - what a plan has, for who wants to change it ----------===//

#include "PlanWalk.h"

#include <functional>

namespace lowtide::fuzz {

/// Calls `visit` for the list of every entry and of every repeat in it.
static void forEachList(Instructions &list, const std::function<void(Instructions &)> &visit) {
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

std::vector<plan::Instruction *> instructionsOf(plan::Plan &plan, plan::Instruction::KindCase kind) {
  std::vector<plan::Instruction *> found;
  for (plan::Entry &entry : *plan.mutable_entries())
    for (Instructions *list : listsOf(entry))
      for (plan::Instruction &instruction : *list)
        if (instruction.kind_case() == kind)
          found.push_back(&instruction);
  return found;
}

static void addAll(Slices &from, std::vector<plan::Slice *> &to) {
  for (plan::Slice &slice : from)
    to.push_back(&slice);
}

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

uint64_t anyDistance(Dice &dice) {
  static constexpr uint64_t distances[] = {1, 2, 4, 8, 16, 64, 128, 256, 1024, 4096};
  return distances[dice.below(std::size(distances))];
}

void sink(Instructions &list, int to) {
  for (int at = list.size() - 1; at > to; --at)
    list.SwapElements(at, at - 1);
}

} // namespace lowtide::fuzz
