//===- MutateKernels.cpp - kernels, launches, calls, copies ----------------===//

#include "PlanWalk.h"

#include <algorithm>

namespace lowtide::fuzz {

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

static plan::Kernel *anyKernel(plan::Plan &plan, Dice &dice) {
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

} // namespace lowtide::fuzz
