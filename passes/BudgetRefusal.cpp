//===- BudgetRefusal.cpp - why a step does not fit ------------------------===//
//
// The instruction that needs the most whatever is recomputed, what is alive at the peak of the smallest plan, and what
// would help this model: only what it does not do yet.
//
//===----------------------------------------------------------------------===//
#include "BudgetRefusal.h"
#include "LastingTensors.h"
#include "Offload.h"
#include "PlanLayout.h"
#include "StepBytes.h"
#include "lowtide/Analysis/RefusedBudget.h"
#include "lowtide/Analysis/StoredBytes.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Dialect/Train/Layouts.h"
#include "lowtide/Dialect/Train/Target.h"
#include "lowtide/Support/StableSort.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowtide;

/// Tensors that a note names.
static constexpr unsigned maxNamed = 4;

void PosedEntry::apply(const solve::FittedSchedule &plan, FactsTable &facts) {
  auto anchor = [](OpBuilder &builder, Location loc, Value value, Value cotangent) -> Value {
    return train::RematOp::create(builder, loc, value.getType(), value, cotangent);
  };
  auto move = [&](OpBuilder &builder, Location loc, Value value, uint32_t memory) -> Operation * {
    auto type = cast<RankedTensorType>(value.getType());
    Attribute space;
    if (getSpace(type) == Space::Device)
      space = train::SpaceAttr::get(builder.getContext(), spaces[memory]);
    auto moved = RankedTensorType::get(type.getShape(), type.getElementType(), space);
    return train::MoveOp::create(builder, loc, moved, value);
  };
  problem.apply(plan, facts, anchor, move);
}

std::optional<solve::PackedPlan> PosedEntry::findSmallestElsewhere() const {
  std::optional<solve::PackedPlan> smallest;
  for (solve::SolvedStep *offload : offloads)
    if (const solve::PackedPlan &plan = offload->plans.getSmallest();
        !smallest || plan.arenaBytes < smallest->arenaBytes)
      if (std::optional<solve::PackedPlan> fitting = solve::fitIntoRooms(offload->graph, plan, waitingBytes))
        smallest = std::move(fitting);
  return smallest;
}

std::pair<solve::PackedPlan, uint64_t> PosedEntry::findSmallest() const {
  const solve::PackedPlan &smallest = solved->plans.getSmallest();
  uint64_t bytes = smallestStagingBytes + smallest.arenaBytes;
  if (stagingBytes > smallestStagingBytes)
    return {smallest, bytes};
  std::optional<solve::PackedPlan> elsewhere = findSmallestElsewhere();
  if (elsewhere && smallestStagingBytes + elsewhere->arenaBytes < bytes)
    return {std::move(*elsewhere), smallestStagingBytes + elsewhere->arenaBytes};
  return {smallest, bytes};
}

bool PosedEntry::packsInto(uint64_t bytes) const {
  return solved->plans.packsInto(bytes) ||
         llvm::any_of(offloads, [&](solve::SolvedStep *offload) { return offload->plans.packsInto(bytes); });
}

EntryStaging EntryStaging::of(ArrayRef<PosedEntry> entries) {
  EntryStaging staging;
  for (const PosedEntry &entry : entries) {
    staging.least = std::max(staging.least, entry.leastStagingBytes);
    staging.most = std::max(staging.most, entry.stagingBytes);
  }
  return staging;
}

bool EntryStaging::isWorthIt(ArrayRef<PosedEntry> entries) const {
  uint64_t without = 0, with = 0;
  for (const PosedEntry &entry : entries) {
    uint64_t arena = entry.solved->plans.getSmallest().arenaBytes;
    without = std::max(without, arena);
    const std::optional<solve::PackedPlan> elsewhere = entry.findSmallestElsewhere();
    with = std::max(with, elsewhere ? std::min(arena, elsewhere->arenaBytes) : arena);
  }
  return most + with < least + without;
}

void EntryStaging::setSmallest(MutableArrayRef<PosedEntry> entries) {
  const EntryStaging staging = of(entries);
  const uint64_t bytes = staging.isWorthIt(entries) ? staging.most : staging.least;
  for (PosedEntry &entry : entries)
    entry.smallestStagingBytes = bytes;
}

/// The lower bound in words; `leastBytes` holds what outlives the instructions, too.
static std::string formatLeast(uint64_t leastBytes) {
  return "at least " + formatExact(leastBytes) + " are needed whatever is recomputed";
}

namespace {

/// The instruction of a bound, and the block that it stands in.
struct ForcedInstruction {
  const StepProblem *problem;
  uint32_t number;

  Operation *getOperation() const { return problem->getOperations()[number]; }
};

} // namespace

/// The instruction of a bound, in a loop if need be; nothing where the outputs decide.
static std::optional<ForcedInstruction> findForced(const StepProblem &problem, const solve::LowerBound &bound) {
  if (bound.operation >= problem.getOperations().size())
    return std::nullopt;
  for (auto [loop, body] : llvm::zip_equal(problem.getGraph().loops, problem.getBodies()))
    if (loop.operation == bound.operation)
      if (std::optional<ForcedInstruction> inside = findForced(body, solve::findLowerBound(loop.body)))
        return inside;
  // The beginning of a round is no instruction.
  if (!problem.getOperations()[bound.operation])
    return std::nullopt;
  return ForcedInstruction{&problem, bound.operation};
}

/// The tensors that one instruction reads and makes, the largest by name. Those outside the transient arena are not
/// among them, nor is what a result is written over: the same bytes.
static void noteForced(InFlightDiagnostic &error, const ForcedInstruction &forced, uint64_t bytes) {
  const Location loc = forced.getOperation()->getLoc();
  Diagnostic &note = error.attachNote(loc);
  note << "one instruction needs " << formatBytes(bytes) << " at once";
  if (std::string place = getResponsiblePlace(loc); !place.empty())
    note << " (" << place << ")";
  const solve::StepGraph &graph = forced.problem->getGraph();
  const solve::StepOperation &operation = graph.operations[forced.number];
  const std::vector<uint32_t> overwritten = solve::listOverwritten(graph, forced.number);
  SmallVector<uint32_t> numbers;
  for (uint32_t number : llvm::concat<const uint32_t>(operation.reads, operation.writes))
    if (!graph.values[number].placed && graph.values[number].bytes && !llvm::is_contained(overwritten, number))
      numbers.push_back(number);
  sortStably(numbers, [&](uint32_t a, uint32_t b) { return graph.values[a].bytes > graph.values[b].bytes; });
  for (auto [i, number] : llvm::enumerate(ArrayRef(numbers).take_front(maxNamed)))
    note << (i ? ", " : ": ") << describeTensor(forced.problem->getValues()[number]);
}

/// Samples that `value` counts, an array of the batch or a view of one; nothing if it is neither.
static std::optional<int64_t> getSamples(func::FuncOp step, Value value) {
  auto arg = dyn_cast<BlockArgument>(StepStorage::getRoot(value));
  if (!arg || arg.getOwner() != &step.getBody().front())
    return std::nullopt;
  auto facts = BindingFacts::get(step.getArgAttr(arg.getArgNumber(), train::bindingAttrName));
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  if (!facts || !type || facts->batchDim < 0 || facts->batchDim >= type.getRank())
    return std::nullopt;
  return type.getDimSize(facts->batchDim);
}

/// Parts in which a step computes its batch, as train-accumulate writes them: rounds of a loop over arrays of the batch
/// alone. Pieces of a loss head are cut from what the step computes, and a recurrent layer walks over another
/// dimension.
static int64_t countParts(func::FuncOp step) {
  for (auto loop : step.getOps<RepeatInterface>()) {
    auto sliced = loop->getOperands().take_front(loop.getNumSliced());
    auto isBatch = [&](Value value) {
      return getSamples(step, value) == cast<RankedTensorType>(value.getType()).getDimSize(0);
    };
    if (!sliced.empty() && llvm::all_of(sliced, isBatch))
      return loop.getRounds();
  }
  return 1;
}

/// Names the smallest number of parts that divides the batch and is more than it has now, if there is one.
static void suggestParts(Diagnostic &note, int64_t samples, int64_t parts, std::vector<std::string> &advice) {
  int64_t more = parts + 1;
  while (more < samples && samples % more)
    ++more;
  if (more > samples)
    return;
  advice.push_back("--micro-batches=" + std::to_string(more));
  note << "the batch of " << samples << " in " << (parts > 1 ? "more " : "") << "parts (" << advice.back()
       << (more < samples ? " or more" : "") << "), ";
}

/// Whether a step can be left out, for another one of the module trains.
static bool trainsWithout(func::FuncOp step) {
  auto trains = step->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>("train");
  return trains && trains != step;
}

/// Whether it computes outputs of the file besides the loss.
static bool hasOutputs(func::FuncOp step) {
  return llvm::any_of(llvm::seq(step.getNumResults()), [&](unsigned result) {
    return isa_and_nonnull<train::OutputAttr>(train::getResultBinding(step, result));
  });
}

/// A type of 16 bits in which something in a step is held; null: none is.
static Type findHalf(func::FuncOp step) {
  Type half;
  step.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (Type element = getElementTypeOrSelf(type); element.isF16() || element.isBF16()) {
        half = element;
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return half;
}

/// Whether most bytes of a step's parameters are f32.
static bool hasWideParameters(func::FuncOp step) {
  uint64_t wideBytes = 0, bytes = 0;
  for (BlockArgument arg : step.getArguments())
    if (auto facts = BindingFacts::get(step.getArgAttr(arg.getArgNumber(), train::bindingAttrName));
        facts && facts->kind == plan::BindingKind::Param) {
      const uint64_t size = getTensorBytes(arg.getType()).value_or(0);
      bytes += size;
      wideBytes += getElementTypeOrSelf(arg.getType()).isF32() ? size : 0;
    }
  return 2 * wideBytes > bytes;
}

/// Bytes that the moments of a step would save in a codec, which leaves in f32 what it does not take; less than none
/// where they are in fewer bits now. Groups that have a codec of their own keep it.
static int64_t countSavings(func::FuncOp step, const train::CodecInfo *codec) {
  int64_t saved = 0;
  const train::BindingIndex index(step);
  auto findParameter = [&](StringRef name) { return index.findArg<train::ParamAttr>(name); };
  for (BlockArgument arg : step.getArguments()) {
    auto state = dyn_cast_or_null<train::StateAttr>(train::getArgBinding(step, arg.getArgNumber()));
    auto type = cast<RankedTensorType>(arg.getType());
    if (!codec || !state || getSpace(type) != Space::Device || type.getElementType().isF64() ||
        step.getArgAttr(arg.getArgNumber(), storedAsIsAttrName))
      continue;
    const StringRef name = state.getName().getValue(), owner = name.rsplit('.').first;
    if (StoredBytes::getPart(name.drop_front(owner.size())) != StoredBytes::Part::Moments)
      continue;
    std::optional<unsigned> parameter = findParameter(owner);
    // What a codec stores of a tensor besides is named after that: `w.exp_avg.scale`.
    const bool isPart = !parameter;
    if (isPart)
      parameter = findParameter(owner.rsplit('.').first);
    if (!parameter)
      continue;
    auto group = step.getArgAttrOfType<StringAttr>(*parameter, train::groupAttrName);
    const bool hasShape = cast<RankedTensorType>(step.getArgument(*parameter).getType()).getShape() == type.getShape();
    if ((group && group.getValue().contains("moments=")) || (!isPart && !hasShape))
      continue;
    const int64_t elements = type.getNumElements();
    saved += int64_t(getTensorBytes(type).value_or(0));
    if (!isPart)
      saved -= codec->takes(elements) ? int64_t(codec->countBytes(elements)) : 4 * elements;
  }
  return saved;
}

/// Flags of an optimizer without state, which win over those that the step was made with; empty: it has none.
static std::string findStateless(func::FuncOp step) {
  std::string flags;
  const train::BindingIndex index(step);
  for (BlockArgument arg : step.getArguments()) {
    auto state = dyn_cast_or_null<train::StateAttr>(train::getArgBinding(step, arg.getArgNumber()));
    if (!state)
      continue;
    const auto [owner, slot] = state.getName().getValue().rsplit('.');
    // An option of several optimizers, also of the one without state.
    if (slot == "momentum_buffer")
      return "--optimizer=sgd --momentum=0";
    if (index.findArg<train::ParamAttr>(owner) && StoredBytes::getPart(slot) == StoredBytes::Part::Moments)
      flags = "--optimizer=sgd";
  }
  return flags;
}

/// Whether the step leaves gradients for updates of the next one.
static bool defersUpdates(func::FuncOp step) {
  return llvm::any_of(step.getArguments(), [&](BlockArgument arg) {
    auto state = dyn_cast_or_null<train::StateAttr>(train::getArgBinding(step, arg.getArgNumber()));
    return state && state.getPending() && getSpace(arg.getType()) == Space::Device;
  });
}

/// Whether a memory that the plan may use has place for all that may wait there, besides what lies there already.
static bool holdsRest(ModuleOp module, Space space, uint64_t bytes) {
  uint64_t lying = 0;
  for (auto step : module.getOps<func::FuncOp>()) {
    uint64_t ofStep = 0;
    for (BlockArgument arg : step.getArguments())
      if (getSpace(arg.getType()) == space)
        ofStep += getTensorBytes(arg.getType()).value_or(0);
    lying = std::max(lying, ofStep);
  }
  return lying <= bytes && OffloadRoom{{space, {}}, bytes - lying}.holdsEverything(module);
}

/// Whether a parameter, or optimizer state, lies in another memory.
static bool hasArgumentElsewhere(ModuleOp module) {
  return llvm::any_of(module.getOps<func::FuncOp>(), [](func::FuncOp step) {
    return llvm::any_of(step.getArgumentTypes(), [](Type type) { return getSpace(type) != Space::Device; });
  });
}

/// Says in which other memories values may wait, if more of one would do: those that are not used, and those that have
/// no place for everything. `isTransient`: activations are in the way.
static void noteRooms(InFlightDiagnostic &error, ModuleOp module, bool isTransient) {
  struct Memory {
    Space space;
    StringRef place, flag, example;
    std::optional<uint64_t> bytes;
  };
  SmallVector<Memory, 2> memories;
  if (train::getTarget(module).isGpu())
    memories.push_back({Space::HostPinned, "in memory of the host", "--host-budget", "32GiB", std::nullopt});
  memories.push_back({Space::File, "in a file", "--disk-budget", "100GiB", std::nullopt});
  for (Memory &memory : memories)
    if (auto budget = module->getAttrOfType<IntegerAttr>(OffloadRoom::getBudgetAttrName(memory.space)))
      memory.bytes = uint64_t(budget.getInt());
  const bool usesOther = llvm::any_of(memories, [](const Memory &memory) { return memory.bytes.has_value(); });
  const bool canLastElsewhere = !listLastingTensors(module).empty() || hasArgumentElsewhere(module);
  if (usesOther && !canLastElsewhere)
    error.attachNote() << "parameters and optimizer state stay on the device: none that may wait in another memory has "
                       << formatBytes(leastMovedBytes) << " or more";
  if (!canLastElsewhere && !isTransient)
    return;
  if (llvm::any_of(memories, [&](const Memory &memory) {
        return memory.bytes && holdsRest(module, memory.space, *memory.bytes);
      }))
    return;
  Diagnostic &note = error.attachNote();
  note << (canLastElsewhere ? "parameters, activations and optimizer state" : "activations") << " may also wait ";
  for (auto [number, memory] : llvm::enumerate(memories)) {
    note << (number ? ", or " : "") << memory.place << ": ";
    if (memory.bytes)
      note << "more than " << memory.flag << "=" << *memory.bytes;
    else
      note << memory.flag << "=" << memory.example;
  }
}

/// Says which budget would do, and what would let a smaller one do. `isTransient`: activations stand in the way, not
/// what is there all the time. `isPart`: of a budget that was a part of the step, which is another one with other
/// state. Leaves the same as figures on the module.
static void noteRemedies(InFlightDiagnostic &error, func::FuncOp step, const StaticBytes &statics, bool isTransient,
                         RefusedBudget refused, bool isPart) {
  if (const uint64_t unplanned = getUnplannedBytes(step->getParentOfType<ModuleOp>()))
    refused.largestBytes = unplanned;
  // Bytes alive; with addresses they may be more.
  refused.largestBytes = std::max(refused.largestBytes, refused.smallestBytes);
  error.attachNote() << "the smallest plan found needs " << formatExact(refused.smallestBytes)
                     << "; without recomputation it is " << formatBytes(refused.largestBytes);
  std::vector<std::string> &advice = refused.advice;
  const int64_t samples = train::countSamples(step);
  const Type half = findHalf(step);
  Diagnostic &note = error.attachNote();
  note << "what helps: ";
  if (trainsWithout(step)) {
    if (isTransient && hasOutputs(step)) {
      advice.push_back("--outputs=none");
      note << "no outputs of the file in it (" << advice.back() << "), ";
    }
    advice.push_back("--entries=train");
    note << "no @" << step.getSymName() << " in the artifact (" << advice.back() << "), ";
  } else if (isTransient)
    suggestParts(note, samples, countParts(step), advice);
  if (isTransient && !half) {
    advice.push_back("--precision=mixed-bf16");
    note << "activations in 16 bits (" << advice.back() << "), ";
  } else if (hasWideParameters(step)) {
    advice.push_back(half && half.isF16() ? "--precision=f16" : "--precision=bf16");
    note << "parameters in 16 bits (" << advice.back() << "), ";
  }
  if (samples > 1)
    note << "a smaller batch, ";
  if (defersUpdates(step)) {
    advice.push_back("--updates=now");
    note << "no gradients that wait for the next step (" << advice.back() << "), ";
  }
  if (const std::string flags = findStateless(step); !flags.empty()) {
    advice.push_back(flags);
    note << "an optimizer with less than " << formatBytes(statics.state) << " of state (" << advice.back()
         << " has none), ";
  }
  advice.push_back("--device-budget=" + std::to_string(refused.smallestBytes));
  note << "a larger budget; 'lowtide fit' with these flags tries what fits";
  auto module = step->getParentOfType<ModuleOp>();
  noteRooms(error, module, isTransient);
  // The first that may do: what loses least.
  for (StringRef name : {"bf16", "int8"}) {
    const train::CodecInfo *codec = train::findCodec(step.getContext(), name, train::CodecUse::Moments);
    const int64_t saved = countSavings(step, codec);
    if (saved <= 0 || refused.smallestBytes - uint64_t(saved) > refused.budgetBytes)
      continue;
    advice.push_back("--moments=" + name.str());
    Diagnostic &fitting = error.attachNote();
    fitting << "with " << advice.back();
    if (isPart)
      fitting << " and --device-budget=" << refused.budgetBytes;
    fitting << " it may fit: optimizer state takes " << formatBytes(uint64_t(saved)) << " less, which leaves about "
            << formatBytes(refused.smallestBytes - uint64_t(saved)) << " (" << train::describe(codec->exactness) << ")";
    break;
  }
  setRefusedBudget(step->getParentOfType<ModuleOp>(), refused);
}

LogicalResult lowtide::refuseStatics(ModuleOp module, ArrayRef<PosedEntry> entries, uint64_t budgetBytes,
                                     const StaticBytes &statics, uint64_t reserveBytes, bool isPart) {
  // Entries share tensors by their names.
  llvm::MapVector<StringAttr, uint64_t> tensors;
  uint64_t least = 0, largest = 0;
  for (const PosedEntry &entry : entries) {
    func::FuncOp step = entry.step;
    for (BlockArgument arg : step.getArguments())
      if (auto facts = BindingFacts::get(step.getArgAttr(arg.getArgNumber(), train::bindingAttrName));
          facts && getSpace(arg.getType()) == Space::Device)
        tensors[facts->name] = getTensorBytes(arg.getType()).value_or(0);
    least = std::max(least, solve::findLowerBound(entry.problem.getGraph()).bytes);
    largest = std::max(largest, entry.solved->front.getLargest().timeline.peakBytes + entry.leastStagingBytes);
  }
  InFlightDiagnostic error = module.emitError("cannot fit ")
                             << formatBytes(budgetBytes) << ": parameters, optimizer state and batch alone are "
                             << formatBytes(statics.sum())
                             << (statics.exchange ? ", " + formatBytes(statics.exchange) + " of it exchange blocks"
                                                  : "")
                             << "; " << formatLeast(statics.sum() + least);
  auto sorted = tensors.takeVector();
  sortStably(sorted, [](const auto &a, const auto &b) { return a.second > b.second; });
  Diagnostic &note = error.attachNote();
  note << "the largest of them:";
  for (auto [number, tensor] : llvm::enumerate(ArrayRef(sorted).take_front(maxNamed)))
    note << (number ? ", " : " ") << tensor.first << " of " << formatBytes(tensor.second);
  const PosedEntry &most = *llvm::max_element(
      entries, [](const PosedEntry &a, const PosedEntry &b) { return a.getSmallestBytes() < b.getSmallestBytes(); });
  noteRemedies(error, most.step, statics, /*isTransient=*/false,
               {budgetBytes, statics.sum() + most.getSmallestBytes() + reserveBytes, statics.sum() + least,
                statics.sum() + largest + reserveBytes},
               isPart);
  return failure();
}

LogicalResult lowtide::refuseBudget(PosedEntry &entry, const BudgetRoom &room, StringRef strategy, FactsTable &facts) {
  const uint64_t staticBytes = room.statics.sum();
  const solve::LowerBound bound = solve::findLowerBound(entry.problem.getGraph());
  // What its buffers take when they are packed.
  const auto [smallest, arenaBytes] = entry.findSmallest();
  const uint64_t smallestBytes = staticBytes + arenaBytes + room.reserveBytes,
                 // Where parameters and state lie elsewhere, copies of them pass through memory of the device.
      largestBytes = staticBytes + entry.solved->front.getLargest().timeline.peakBytes + entry.leastStagingBytes +
                     room.reserveBytes,
                 least = staticBytes + bound.bytes;
  InFlightDiagnostic error = entry.step.emitError();
  error << "@" << entry.step.getSymName() << " cannot fit " << formatExact(room.sum()) << ": ";
  if (bound.bytes > room.transientBytes)
    error << formatLeast(least);
  else
    error << (strategy == "fit" ? "" : "strategy '" + strategy.str() + "' found no plan; by --remat-strategy=fit ")
          << "the smallest plan found needs " << formatExact(smallestBytes) << ", and none is below "
          << formatExact(least);
  if (std::optional<ForcedInstruction> forced = findForced(entry.problem, bound))
    noteForced(error, *forced, bound.bytes);
  entry.apply(smallest.plan, facts);
  if (FailureOr<MemoryProfile> profile = MemoryProfile::compute(entry.step, facts, room.statics); succeeded(profile)) {
    Diagnostic &note = error.attachNote();
    note << "the smallest plan found has at its peak " << describePeak(*profile);
    if (entry.smallestStagingBytes)
      note << "; copies pass through " << formatBytes(entry.smallestStagingBytes) << " more";
  }
  noteRemedies(error, entry.step, room.statics, /*isTransient=*/true, {room.sum(), smallestBytes, least, largestBytes},
               room.isPart);
  return failure();
}
