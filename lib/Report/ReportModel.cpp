//===- ReportModel.cpp - what the bytes of a plan are ---------------------===//
//
// 1. A value is a write into a transient arena; it lives until its last read.
// 2. What it is, its notes say: the compiler's profile of the step.
// 3. Sum by component and instruction.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Analysis/CostModel.h"
#include "lowtide/Interfaces/ExportNames.h"
#include "lowtide/Report/Report.h"
#include "lowtide/Support/StableSort.h"
#include "runtime/Machines.h"
#include "runtime/MemorySpaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace lowtide;
using namespace lowtide::report;

double Entry::getSeconds() const {
  double seconds = 0;
  for (const Instruction &instruction : instructions)
    seconds = std::max(seconds, instruction.start + instruction.seconds);
  return seconds;
}

double Entry::getExposedSeconds() const {
  double computing = 0;
  for (const Instruction &instruction : instructions)
    if (instruction.stream == 0)
      computing += instruction.seconds;
  return std::max(0.0, getSeconds() - computing);
}

double Entry::getRecomputedSeconds() const {
  double seconds = 0;
  for (const Instruction &instruction : instructions)
    if (instruction.recomputed)
      seconds += instruction.seconds;
  return seconds;
}

const Entry *report::findEntry(const Report &report, llvm::StringRef name) {
  for (const Entry &entry : report.entries)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

const Entry *report::findMainEntry(const Report &report) {
  if (const Entry *train = findEntry(report, "train"))
    return train;
  return report.entries.empty() ? nullptr : &report.entries.front();
}

namespace {

/// Walks one entry; a `repeat` is shown as its body once, and what all its rounds need lives through it.
class EntryReader {
public:
  EntryReader(const plan::Plan &plan, const plan::Entry &from, const CostModel &costs, const EntryNotes *notes)
      : plan(plan), from(from), costs(costs) {
    if (notes) {
      recomputed.insert(notes->recomputed.begin(), notes->recomputed.end());
      components = notes->components;
      entry.before = notes->before;
      entry.plannedBudgets = notes->plannedBudgets;
      flips = notes->flips;
    }
  }
  Entry run();

private:
  using Slices = google::protobuf::RepeatedPtrField<plan::Slice>;
  void read(const plan::Instruction &instruction);
  void readLoop(const plan::Repeat &repeat);
  void touch(const Slices &reads, const Slices &writes, const plan::Slice *workspace, const std::string &maker,
             const std::string &place);
  /// Tells the tensors that launch or call `number` has made, the last, where other budgets decide otherwise.
  void noteFlips(unsigned number);
  /// Seconds of a copy to another memory or from it, which is noted; nothing: it stays on the device.
  std::optional<double> readMove(const plan::Copy &copy, std::string &label);
  /// A value waits in another memory from its store, or is there still when it is loaded.
  void wait(const plan::Copy &copy, const Move &move);
  bool isTransient(const plan::Slice &slice) const { return rt::isDeviceTransient(plan.arenas(int(slice.arena()))); }
  /// Temporary, where nothing is known.
  MemoryComponent getComponent(uint64_t value) const {
    return value < components.size() && components[value] < numTransientComponents ? MemoryComponent(components[value])
                                                                                   : MemoryComponent::Temporary;
  }
  void sumUp();
  void sumUpMemories();

  /// A value in another memory, from its store to its last load.
  struct Waiting {
    uint64_t bytes;
    unsigned begin, end;
  };

  const plan::Plan &plan;
  const plan::Entry &from;
  const CostModel costs;
  Entry entry;
  /// Launches and calls that compute again, and how many of either have been read.
  llvm::DenseSet<unsigned> recomputed;
  unsigned numComputing = 0;
  /// Of those, where other budgets decide otherwise.
  std::map<unsigned, std::vector<BudgetFlip>> flips;
  /// By value number.
  llvm::ArrayRef<uint8_t> components;
  /// Tensor of a value number.
  llvm::DenseMap<uint64_t, size_t> tensorOf;
  /// Of the innermost repeat.
  int64_t rounds = 1;
  unsigned loopBegin = 0;
  /// How often the instruction runs in a step.
  int64_t times = 1;
  /// When each lane is free, and when each event was recorded.
  std::map<uint32_t, double> freeAt, recordedAt;
  /// By space and value number there.
  std::map<std::pair<std::string, uint64_t>, Waiting> waiting;
};

} // namespace

void EntryReader::touch(const Slices &reads, const Slices &writes, const plan::Slice *workspace,
                        const std::string &maker, const std::string &place) {
  unsigned now = entry.instructions.size();
  for (const plan::Slice &slice : reads)
    if (auto it = tensorOf.find(slice.value()); it != tensorOf.end()) {
      entry.tensors[it->second].end = now + 1;
      entry.tensors[it->second].readers.push_back(now);
    }
  auto add = [&](const plan::Slice &slice, MemoryComponent component) {
    Tensor tensor{slice.value(), slice.offset(), slice.bytes(), now, now + 1, component, place, maker, {}};
    entry.tensors.push_back(tensor);
  };
  for (const plan::Slice &slice : writes) {
    if (!isTransient(slice))
      continue;
    // Several writes may share a number when they fill parts of one tensor.
    tensorOf[slice.value()] = entry.tensors.size();
    add(slice, getComponent(slice.value()));
  }
  if (workspace && workspace->bytes())
    add(*workspace, MemoryComponent::Workspace);
}

void EntryReader::noteFlips(unsigned number) {
  const auto found = flips.find(number);
  if (found == flips.end())
    return;
  for (Tensor &tensor : llvm::reverse(entry.tensors)) {
    if (tensor.begin != entry.instructions.size())
      break;
    tensor.flips = found->second;
  }
}

/// Bytes that an instruction reads and writes.
template <typename Slices> static uint64_t sumBytes(const Slices &reads, const Slices &writes) {
  uint64_t bytes = 0;
  for (const Slices *slices : {&reads, &writes})
    for (const plan::Slice &slice : *slices)
      bytes += slice.bytes();
  return bytes;
}

/// How a plan's values go from one memory to the other.
static solve::Lane findLane(const plan::Plan &plan, plan::Arena::Space from, plan::Arena::Space to) {
  auto getName = [](plan::Arena::Space space) {
    return space == plan::Arena::DEVICE ? "device" : space == plan::Arena::FILE ? "file" : "host";
  };
  return getLane(findTarget(plan.target()).value_or(getDefaultTarget()), getName(from), getName(to));
}

std::optional<double> EntryReader::readMove(const plan::Copy &copy, std::string &label) {
  const plan::Arena &source = plan.arenas(int(copy.source().arena())),
                    &target = plan.arenas(int(copy.target().arena()));
  const std::optional<rt::CopyDirection> direction = rt::findDirection(source.space(), target.space());
  if (!direction || *direction == rt::CopyDirection::Within)
    return std::nullopt;
  Move move;
  move.instruction = unsigned(entry.instructions.size());
  move.isStore = *direction == rt::CopyDirection::FromDevice;
  const plan::Arena &other = move.isStore ? target : source;
  const plan::Slice &there = move.isStore ? copy.target() : copy.source();
  move.space = rt::showSpace(other.space());
  move.otherValue = there.value();
  if (other.role() != plan::Arena::TRANSIENT)
    for (const plan::Binding &binding : from.bindings())
      if (binding.slice().arena() == there.arena() && binding.slice().offset() == there.offset())
        move.binding = binding.name();
  // A load makes the next tensor.
  const auto stored = tensorOf.find(copy.source().value());
  move.tensor = move.isStore && stored != tensorOf.end() ? stored->second : entry.tensors.size();
  move.bytes = there.bytes() * uint64_t(times);
  if (move.binding.empty())
    wait(copy, move);
  entry.moves.push_back(std::move(move));
  label = entry.moves.back().isStore ? "store" : "load";
  return findLane(plan, source.space(), target.space()).getSeconds(copy.source().bytes());
}

void EntryReader::wait(const plan::Copy &copy, const Move &move) {
  // Each round of a loop fills a part of its own.
  const uint64_t rows = move.isStore && copy.target_step() ? uint64_t(rounds) : 1;
  const uint64_t bytes = (move.isStore ? copy.target() : copy.source()).bytes() * rows;
  const Waiting fresh{bytes, move.instruction, move.instruction};
  Waiting &each = waiting.try_emplace({move.space, move.otherValue}, fresh).first->second;
  each.end = std::max(each.end, move.instruction + 1);
}

void EntryReader::read(const plan::Instruction &instruction) {
  const std::string &place = instruction.location();
  Slices reads, writes;
  std::string label;
  bool again = false;
  double seconds = 0;
  switch (instruction.kind_case()) {
  case plan::Instruction::kLaunch: {
    const plan::Launch &launch = instruction.launch();
    const plan::Kernel &kernel = plan.kernels(int(launch.kernel()));
    label = kernel.description().empty() ? kernel.symbol() : kernel.description();
    again = recomputed.contains(numComputing);
    seconds = costs.getSeconds(/*isLibrary=*/false, instruction.flops(), sumBytes(launch.reads(), launch.writes()));
    touch(launch.reads(), launch.writes(), &launch.scratch(), label, place);
    noteFlips(numComputing++);
    break;
  }
  case plan::Instruction::kCall:
    label = instruction.call().callee();
    again = recomputed.contains(numComputing);
    seconds = costs.getSeconds(/*isLibrary=*/true, instruction.flops(),
                               sumBytes(instruction.call().reads(), instruction.call().writes()));
    touch(instruction.call().reads(), instruction.call().writes(), &instruction.call().workspace(), label, place);
    noteFlips(numComputing++);
    break;
  case plan::Instruction::kCopy:
    label = "copy";
    *reads.Add() = instruction.copy().source();
    *writes.Add() = instruction.copy().target();
    if (int64_t step = instruction.copy().target_step()) {
      const uint64_t whole = uint64_t(std::abs(step)) * uint64_t(rounds);
      if (step < 0) // from the end
        writes[0].set_offset(writes[0].offset() + writes[0].bytes() - whole);
      writes[0].set_bytes(whole);
    }
    if (std::optional<double> moving = readMove(instruction.copy(), label))
      seconds = *moving;
    else
      seconds = costs.getSeconds(/*isLibrary=*/false, 0, sumBytes(reads, writes));
    touch(reads, writes, nullptr, label, place);
    if (instruction.copy().target_step() && !entry.tensors.empty() &&
        entry.tensors.back().value == instruction.copy().target().value())
      entry.tensors.back().begin = loopBegin;
    break;
  case plan::Instruction::kFill:
    label = "fill";
    *writes.Add() = instruction.fill().target();
    seconds = costs.getSeconds(/*isLibrary=*/false, 0, sumBytes(reads, writes));
    touch(reads, writes, nullptr, label, place);
    break;
  case plan::Instruction::kRepeat:
    readLoop(instruction.repeat());
    return;
  case plan::Instruction::kRecord:
    recordedAt[instruction.record().event()] = freeAt[instruction.stream()];
    return;
  case plan::Instruction::kWait: {
    double &free = freeAt[instruction.stream()];
    free = std::max(free, recordedAt[instruction.wait().event()]);
    return;
  }
  default:
    return;
  }
  const uint64_t flops = instruction.flops() * uint64_t(times);
  entry.flops += flops;
  seconds *= double(times);
  double &free = freeAt[instruction.stream()];
  entry.instructions.push_back(
      {place.empty() ? label : label + " · " + place, seconds, flops, again, instruction.stream(), free});
  free += seconds;
}

void EntryReader::readLoop(const plan::Repeat &repeat) {
  auto outer = std::tuple(rounds, loopBegin, times);
  rounds = repeat.count();
  times *= rounds;
  unsigned begin = loopBegin = entry.instructions.size();
  for (const plan::Instruction &inner : repeat.body())
    read(inner);
  unsigned end = entry.instructions.size();
  for (Tensor &tensor : entry.tensors)
    if (tensor.begin < begin && tensor.end > begin)
      tensor.end = std::max(tensor.end, end);
  for (auto &[place, each] : waiting)
    if (each.begin < begin && each.end > begin)
      each.end = std::max(each.end, end);
  // What a round takes over in place is there again under its next number.
  for (const plan::Carry &carry : repeat.carries())
    if (auto it = tensorOf.find(carry.slice().value()); it != tensorOf.end())
      for (size_t i = it->second + 1; i < entry.tensors.size(); ++i)
        if (entry.tensors[i].value == carry.next_value() && entry.tensors[i].offset == entry.tensors[it->second].offset)
          entry.tensors[it->second].end = std::min(entry.tensors[it->second].end, entry.tensors[i].begin + 1);
  std::tie(rounds, loopBegin, times) = outer;
}

void EntryReader::sumUp() {
  entry.live.assign(entry.instructions.size(), {});
  for (const Tensor &tensor : entry.tensors)
    for (unsigned i = tensor.begin; i < tensor.end && i < entry.live.size(); ++i)
      entry.live[i][size_t(tensor.component)] += tensor.bytes;
  for (auto [i, live] : llvm::enumerate(entry.live)) {
    if (uint64_t sum = sumBytes(live); sum > entry.peakBytes) {
      entry.peakBytes = sum;
      entry.peakAt = i;
    }
  }
}

void EntryReader::sumUpMemories() {
  for (const Move &move : entry.moves) {
    auto isThere = [&](const SpaceBytes &memory) { return memory.space == move.space; };
    if (llvm::any_of(entry.memories, isThere))
      continue;
    SpaceBytes memory{move.space, 0, 0, std::vector<uint64_t>(entry.instructions.size())};
    for (const plan::Arena &arena : plan.arenas()) {
      if (rt::showSpace(arena.space()) != move.space || rt::isOfRuntime(arena.role()))
        continue;
      memory.bytes += arena.bytes();
      if (arena.role() != plan::Arena::TRANSIENT)
        memory.lastingBytes += arena.bytes();
    }
    for (const auto &[place, each] : waiting)
      if (place.first == move.space)
        for (unsigned i = each.begin; i < each.end; ++i)
          memory.waiting[i] += each.bytes;
    entry.memories.push_back(std::move(memory));
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
      entry.lossAt = entry.instructions.size();
    read(instruction);
  }
  for (const plan::Binding &binding : from.bindings())
    if (binding.kind() == plan::Binding::OUTPUT || binding.kind() == plan::Binding::GRADIENT)
      if (auto it = tensorOf.find(binding.final_value()); it != tensorOf.end())
        entry.tensors[it->second].end = entry.instructions.size();
  // A value that is overwritten in place hands its bytes on: they count once, for the new value.
  llvm::DenseMap<std::pair<unsigned, uint64_t>, size_t> born;
  for (auto [i, tensor] : llvm::enumerate(entry.tensors))
    if (tensor.component != MemoryComponent::Workspace)
      born[{tensor.begin, tensor.offset}] = i;
  for (Tensor &tensor : entry.tensors)
    if (tensor.end > tensor.begin + 1)
      if (auto it = born.find({tensor.end - 1, tensor.offset});
          it != born.end() && entry.tensors[it->second].value != tensor.value)
        --tensor.end;
  sumUp();
  sumUpMemories();
  return std::move(entry);
}

/// What the plan stores for parameters, and gradients as many as are alive at once.
static StoredBytes countStored(const plan::Plan &plan, const Report &report) {
  StoredBytes stored;
  const Entry *main = findMainEntry(report);
  for (plan::Binding::Kind kind : {plan::Binding::PARAM, plan::Binding::STATE})
    for (const plan::Entry &entry : plan.entries())
      for (const plan::Binding &binding : entry.bindings()) {
        if (!main || entry.name() != main->name || binding.kind() != kind)
          continue;
        uint64_t elements = 1;
        for (int64_t dim : binding.dims())
          elements *= uint64_t(dim);
        if (kind == plan::Binding::PARAM)
          stored.addParameter(binding.name(), binding.group(), elements, binding.slice().bytes());
        else
          stored.addState(binding.name(), binding.slice().bytes());
      }
  uint64_t gradients = 0;
  if (main)
    for (const LiveBytes &live : main->live)
      gradients = std::max(gradients, live[size_t(MemoryComponent::Gradient)]);
  stored.setGradients(gradients);
  return stored;
}

Report report::buildReport(const plan::Plan &plan, std::string_view meta, llvm::StringRef title) {
  Report report;
  Notes notes = readNotes(meta);
  report.deviceBudget = notes.deviceBudget;
  report.title = title.str();
  report.target = plan.target();
  report.machines = rt::describeMachines(plan.target());
  report.producer = plan.producer();
  for (const plan::Arena &arena : plan.arenas()) {
    uint64_t &bytes = arena.space() == plan::Arena::FILE     ? report.fileBytes
                      : arena.space() != plan::Arena::DEVICE ? report.hostBytes
                      : rt::isOfRuntime(arena.role())        ? report.statics.exchange
                      : arena.role() == plan::Arena::PARAMS  ? report.statics.parameters
                      : arena.role() == plan::Arena::STATE   ? report.statics.state
                      : arena.role() == plan::Arena::IO      ? report.statics.batch
                                                             : report.transientBytes;
    bytes += arena.bytes();
  }
  const CostModel costs = notes.plannedFor ? notes.plannedFor->costs
                                           : CostModel::get(findTarget(plan.target()).value_or(getDefaultTarget()));
  if (notes.plannedFor)
    report.plannedFor = notes.plannedFor->name;
  for (const plan::Entry &entry : plan.entries())
    report.entries.push_back(EntryReader(plan, entry, costs, notes.find(entry.name())).run());
  // What trains comes first: it is what the memory is for.
  sortStably(report.entries, [](const Entry &a, const Entry &b) {
    auto rank = [](const Entry &entry) {
      return isExportEntry(entry.name) ? 2 : llvm::StringRef(entry.name).starts_with("eval") ? 1 : 0;
    };
    return rank(a) < rank(b);
  });
  report.stored = countStored(plan, report);
  return report;
}
