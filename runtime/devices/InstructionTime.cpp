//===- InstructionTime.cpp - what an instruction cost, for profiles --------===//

#include "runtime/devices/InstructionTime.h"

namespace lowtide::rt {
namespace {

/// A library call with its sizes: "gemm 512×96×288 Aᵀ ×4", "conv 16×3×32×32 by 16×3×3×3".
std::string describe(const plan::Call &call) {
  std::string text = call.callee();
  auto find = [&](const char *name) -> const plan::Attribute * {
    for (const plan::Attribute &attribute : call.attributes())
      if (attribute.name() == name)
        return &attribute;
    return nullptr;
  };
  auto append = [&](const char *before, const plan::Int64List &sizes) {
    const char *separator = before;
    for (int64_t size : sizes.values())
      text += separator + std::to_string(size), separator = "×";
  };
  const char *separator = " ";
  for (const char *name : {"m", "n", "k"})
    if (const plan::Attribute *size = find(name))
      text += separator + std::to_string(size->i()), separator = "×";
  if (const plan::Attribute *flag = find("transpose_a"); flag && flag->i())
    text += " Aᵀ";
  if (const plan::Attribute *flag = find("transpose_b"); flag && flag->i())
    text += " Bᵀ";
  if (const plan::Attribute *batch = find("batch"); batch && batch->i() > 1)
    text += " ×" + std::to_string(batch->i());
  else if (const plan::Attribute *dims = find("batch_dims"))
    append(" ×", dims->ints());
  if (const plan::Attribute *input = find("input"))
    append(" ", input->ints());
  if (const plan::Attribute *filter = find("filter"))
    append(" by ", filter->ints());
  return text;
}

uint64_t operandBytes(const plan::Instruction &instruction) {
  uint64_t bytes = 0;
  auto add = [&](const auto &slices) {
    for (const plan::Slice &slice : slices)
      bytes += slice.bytes();
  };
  if (instruction.has_launch())
    add(instruction.launch().reads()), add(instruction.launch().writes());
  else if (instruction.has_call())
    add(instruction.call().reads()), add(instruction.call().writes());
  else if (instruction.has_copy())
    bytes = 2 * instruction.copy().target().bytes();
  else
    bytes = instruction.fill().target().bytes();
  return bytes;
}

} // namespace

InstructionTime describeInstruction(const plan::Plan &plan, const plan::Instruction &instruction) {
  InstructionTime time;
  if (instruction.has_launch()) {
    const plan::Kernel &kernel = plan.kernels(static_cast<int>(instruction.launch().kernel()));
    time.what = kernel.description().empty() ? kernel.symbol() : kernel.description();
    time.symbol = kernel.symbol();
    time.generated = true;
  } else {
    time.what = instruction.has_call() ? describe(instruction.call()) : instruction.has_copy() ? "copy" : "fill";
  }
  time.location = instruction.location();
  time.flops = instruction.flops();
  time.bytes = operandBytes(instruction);
  return time;
}

} // namespace lowtide::rt
