//===- ReportModel.cpp - what the bytes of a plan are ---------------------===//
//
// 1. A value is a write into a transient arena; it lives until its last read.
// 2. The moment of the loss parts forward from backward: what crosses it is saved.
// 3. Sum by component and instruction.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Target/Report.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace lowtide;
using namespace lowtide::report;

llvm::StringRef report::getName(Component component) {
  switch (component) {
  case Component::Saved:
    return "saved activations";
  case Component::Gradient:
    return "gradients";
  case Component::Temporary:
    return "temporaries";
  case Component::Output:
    return "outputs";
  case Component::Workspace:
    return "workspace";
  }
  return "";
}

namespace {

/// Walks one entry; a `repeat` is shown as its body once, and what all its rounds need lives through it.
class EntryReader {
public:
  EntryReader(const plan::Plan &plan, const plan::Entry &from) : plan(plan), from(from) {}
  Entry run();

private:
  using Slices = google::protobuf::RepeatedPtrField<plan::Slice>;
  void read(const plan::Instruction &instruction);
  void readLoop(const plan::Repeat &repeat);
  void touch(const Slices &reads, const Slices &writes, const plan::Slice *workspace, const std::string &maker,
             const std::string &place);
  bool isKind(const plan::Slice &slice, plan::Arena::Kind kind) const {
    return plan.arenas(int(slice.arena())).kind() == kind;
  }
  void sumUp();

  const plan::Plan &plan;
  const plan::Entry &from;
  Entry entry;
  /// Tensor of a value number.
  llvm::DenseMap<uint64_t, size_t> tensorOf;
  std::vector<bool> isGradient;
  /// Instruction that writes the first metric.
  unsigned lossAt = 0;
  /// Of the innermost repeat.
  int64_t rounds = 1;
  unsigned loopBegin = 0;
};

} // namespace

void EntryReader::touch(const Slices &reads, const Slices &writes, const plan::Slice *workspace,
                        const std::string &maker, const std::string &place) {
  unsigned now = entry.instructions.size();
  bool updates = llvm::any_of(writes, [&](const plan::Slice &slice) { return isKind(slice, plan::Arena::PARAMS); });
  for (const plan::Slice &slice : reads)
    if (auto it = tensorOf.find(slice.value()); it != tensorOf.end()) {
      entry.tensors[it->second].end = now + 1;
      if (updates)
        isGradient[it->second] = true;
    }
  auto add = [&](const plan::Slice &slice, Component component) {
    Tensor tensor{slice.value(), slice.offset(), slice.bytes(), now, now + 1, component, place, maker};
    entry.tensors.push_back(tensor);
    isGradient.push_back(false);
  };
  for (const plan::Slice &slice : writes) {
    if (!isKind(slice, plan::Arena::TRANSIENT))
      continue;
    // Several writes may share a number when they fill parts of one tensor.
    tensorOf[slice.value()] = entry.tensors.size();
    add(slice, Component::Temporary);
  }
  if (workspace && workspace->bytes())
    add(*workspace, Component::Workspace);
}

void EntryReader::read(const plan::Instruction &instruction) {
  const std::string &place = instruction.location();
  Slices reads, writes;
  std::string label;
  entry.flops += instruction.flops();
  switch (instruction.kind_case()) {
  case plan::Instruction::kLaunch: {
    const plan::Launch &launch = instruction.launch();
    const plan::Kernel &kernel = plan.kernels(int(launch.kernel()));
    label = kernel.description().empty() ? kernel.symbol() : kernel.description();
    touch(launch.reads(), launch.writes(), &launch.scratch(), label, place);
    break;
  }
  case plan::Instruction::kCall:
    label = instruction.call().callee();
    touch(instruction.call().reads(), instruction.call().writes(), &instruction.call().workspace(), label, place);
    break;
  case plan::Instruction::kCopy:
    label = "copy";
    *reads.Add() = instruction.copy().source();
    *writes.Add() = instruction.copy().target();
    if (uint64_t step = instruction.copy().target_step())
      writes[0].set_bytes(step * uint64_t(rounds));
    touch(reads, writes, nullptr, label, place);
    if (instruction.copy().target_step() && !entry.tensors.empty() &&
        entry.tensors.back().value == instruction.copy().target().value())
      entry.tensors.back().begin = loopBegin;
    break;
  case plan::Instruction::kFill:
    label = "fill";
    *writes.Add() = instruction.fill().target();
    touch(reads, writes, nullptr, label, place);
    break;
  case plan::Instruction::kRepeat:
    readLoop(instruction.repeat());
    return;
  default:
    return;
  }
  entry.instructions.push_back(place.empty() ? label : label + " · " + place);
}

void EntryReader::readLoop(const plan::Repeat &repeat) {
  auto outer = std::pair(rounds, loopBegin);
  rounds = repeat.count();
  unsigned begin = loopBegin = entry.instructions.size();
  for (const plan::Instruction &inner : repeat.body())
    read(inner);
  unsigned end = entry.instructions.size();
  for (Tensor &tensor : entry.tensors)
    if (tensor.begin < begin && tensor.end > begin)
      tensor.end = std::max(tensor.end, end);
  // What a round takes over in place is there again under its next number.
  for (const plan::Carry &carry : repeat.carries())
    if (auto it = tensorOf.find(carry.slice().value()); it != tensorOf.end())
      for (size_t i = it->second + 1; i < entry.tensors.size(); ++i)
        if (entry.tensors[i].value == carry.next_value() && entry.tensors[i].offset == entry.tensors[it->second].offset)
          entry.tensors[it->second].end = std::min(entry.tensors[it->second].end, entry.tensors[i].begin + 1);
  std::tie(rounds, loopBegin) = outer;
}

void EntryReader::sumUp() {
  entry.live.assign(entry.instructions.size(), {});
  for (const Tensor &tensor : entry.tensors)
    for (unsigned i = tensor.begin; i < tensor.end && i < entry.live.size(); ++i)
      entry.live[i][size_t(tensor.component)] += tensor.bytes;
  for (auto [i, live] : llvm::enumerate(entry.live)) {
    uint64_t sum = 0;
    for (uint64_t bytes : live)
      sum += bytes;
    if (sum > entry.peakBytes) {
      entry.peakBytes = sum;
      entry.peakAt = i;
    }
  }
}

Entry EntryReader::run() {
  entry.name = from.name();
  entry.batch = from.batch();
  uint64_t lossValue = 0;
  for (const plan::Binding &binding : from.bindings())
    if (binding.kind() == plan::Binding::METRIC && !lossValue)
      lossValue = binding.final_value();
  for (const plan::Instruction &instruction : from.instructions()) {
    auto writesLoss = [&](const Slices &writes) {
      return llvm::any_of(writes, [&](const plan::Slice &slice) { return slice.value() == lossValue; });
    };
    if (lossValue && (writesLoss(instruction.launch().writes()) || writesLoss(instruction.call().writes()) ||
                      instruction.copy().target().value() == lossValue))
      lossAt = entry.instructions.size();
    read(instruction);
  }
  std::vector<bool> isOutput(entry.tensors.size());
  for (const plan::Binding &binding : from.bindings())
    if (binding.kind() == plan::Binding::OUTPUT)
      if (auto it = tensorOf.find(binding.final_value()); it != tensorOf.end()) {
        entry.tensors[it->second].end = entry.instructions.size();
        isOutput[it->second] = true;
      }
  for (auto [i, tensor] : llvm::enumerate(entry.tensors)) {
    if (tensor.component == Component::Workspace)
      continue;
    if (isOutput[i])
      tensor.component = Component::Output;
    else if (isGradient[i])
      tensor.component = Component::Gradient;
    else if (lossAt && tensor.begin <= lossAt && tensor.end > lossAt + 1)
      tensor.component = Component::Saved;
  }
  // A value that is overwritten in place hands its bytes on: they count once, for the new value.
  llvm::DenseMap<std::pair<unsigned, uint64_t>, size_t> born;
  for (auto [i, tensor] : llvm::enumerate(entry.tensors))
    if (tensor.component != Component::Workspace)
      born[{tensor.begin, tensor.offset}] = i;
  for (Tensor &tensor : entry.tensors)
    if (tensor.end > tensor.begin + 1)
      if (auto it = born.find({tensor.end - 1, tensor.offset});
          it != born.end() && entry.tensors[it->second].value != tensor.value)
        --tensor.end;
  sumUp();
  return std::move(entry);
}

Report report::buildReport(const plan::Plan &plan, llvm::StringRef title) {
  Report report;
  report.title = title.str();
  report.target = plan.target();
  report.producer = plan.producer();
  for (const plan::Arena &arena : plan.arenas()) {
    uint64_t &bytes = arena.kind() == plan::Arena::PARAMS  ? report.paramsBytes
                      : arena.kind() == plan::Arena::STATE ? report.stateBytes
                      : arena.kind() == plan::Arena::IO    ? report.ioBytes
                                                           : report.transientBytes;
    bytes += arena.bytes();
  }
  for (const plan::Entry &entry : plan.entries())
    report.entries.push_back(EntryReader(plan, entry).run());
  return report;
}
