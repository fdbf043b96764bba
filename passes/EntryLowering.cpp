//===- EntryLowering.cpp - a step on tensors becomes a program --*- C++ -*-===//
//
// Bindings, a buffer per transient storage, launches, library calls and copies in textual order, a new value number per
// write. A loop is a repeat, with the numbers of what it carries before and after a round.
//
// For a GPU, where no budget was promised:
//   - a short loop is written round by round: its slices and rows are used where they are instead of copied;
//   - launches that only add up what others have left are written when somebody needs their results or their bytes, or
//   at
//     the end: those of one code together.
//
//===----------------------------------------------------------------------===//
#include "EntryLowering.h"
#include "LibraryCalls.h"
#include "lowtide/Analysis/BudgetFlips.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Adapters.h"
#include "lowtide/RuntimeQuery/LibraryQuery.h"
#include "lowtide/RuntimeQuery/PlanProof.h"
#include "lowtide/Serialize/PlanProto.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowtide;

/// Instructions that a loop may become when it is written round by round; what the address of a kernel's array must be
/// a multiple of.
static constexpr uint64_t kMaxUnrolled = 256, kArrayAlignment = 16;
/// Pointers of a launch at most: a GPU takes 32,764 bytes of parameters (PTX 8.1).
static constexpr size_t kMaxPointers = 4000;

/// `bytes` bytes of `whole`, from `offset` on.
static plan::SliceAttr getPart(plan::SliceAttr whole, uint64_t offset, uint64_t bytes) {
  return plan::SliceAttr::get(whole.getContext(), whole.getArena(), whole.getOffset() + offset, bytes,
                              whole.getValue());
}

/// Where the part of a round begins that moves by `step` bytes through `parts` of them: back from the last if negative.
static uint64_t getOffset(int64_t step, uint64_t round, uint64_t parts) {
  return step < 0 ? (parts - 1 - round) * uint64_t(-step) : round * uint64_t(step);
}

plan::SliceAttr EntryLowering::getSlice(unsigned index, uint64_t value) {
  const Storage &place = storage.getStorages()[index];
  if (auto part = shown.find(index); part != shown.end())
    return getPart(getSlice(part->second.first, value), part->second.second, place.bytes);
  if (place.kind == Storage::Kind::Argument)
    return layout.getSlice(getArgFacts(place.number), entry.getArgumentTypes()[place.number], value);
  if (place.kind == Storage::Kind::Metric)
    return layout.getSlice(getResultFacts(place.number), entry.getResultTypes()[place.number], value);
  auto own = bufferOf.find(index);
  const std::string name = own == bufferOf.end() ? "b" + std::to_string(index) : own->second;
  return plan::SliceAttr::get(entry.getContext(), FlatSymbolRefAttr::get(entry.getContext(), name), 0, place.bytes,
                              value);
}

plan::SliceAttr EntryLowering::createWorkspace(uint64_t bytes, Location loc) {
  if (!bytes)
    return {};
  std::string name = "w" + std::to_string(workspaces++);
  OpBuilder::InsertionGuard guard(builder);
  if (Operation *repeat = builder.getBlock()->getParentOp(); repeat != program)
    builder.setInsertionPoint(program.getBlock().findAncestorOpInBlock(*repeat));
  plan::BufferOp::create(builder, loc, name, "transient", bytes, false);
  return plan::SliceAttr::get(entry.getContext(), FlatSymbolRefAttr::get(entry.getContext(), name), 0, bytes, 0);
}

MemoryComponent EntryLowering::getComponent(unsigned index, Value tensor) {
  const Storage &place = storage.getStorages()[index];
  switch (place.kind) {
  case Storage::Kind::Argument:
    return getArgFacts(unsigned(place.number)).getComponent();
  case Storage::Kind::Metric:
    return getResultFacts(unsigned(place.number)).getComponent();
  case Storage::Kind::Transient:
    auto found = llvm::find(place.values, tensor);
    return roles.classify(place, found == place.values.end() ? 0 : unsigned(found - place.values.begin()));
  }
}

void EntryLowering::writeBuffers() {
  auto isOfRound = [&](const Storage &place) {
    return llvm::any_of(storage.getLoops(),
                        [&](const StorageLoop &loop) { return isUnrolled(loop) && isLocal(place, loop); });
  };
  for (auto [i, place] : llvm::enumerate(storage.getStorages()))
    if (place.kind == Storage::Kind::Transient && !isOfRound(place)) {
      Location loc = place.values.empty() ? entry.getLoc() : place.values.front().getLoc();
      const StringRef arena = place.space == Space::Device ? "transient" : getSpaceName(place.space);
      plan::BufferOp::create(builder, loc, "b" + std::to_string(i), arena, place.bytes, place.kept);
    }
}

/// Says of an instruction what budgets decided of `op`: one op may become two launches.
static void noteDecisions(Operation *op, Operation *instruction) {
  for (StringRef name : {StringRef(recomputedAttrName), StringRef(flipsAttrName)})
    if (Attribute decided = op->getAttr(name))
      instruction->setAttr(name, decided);
}

LogicalResult EntryLowering::writeCall(Operation *op, LibraryCallInterface call) {
  FailureOr<uint64_t> workspace = queryWorkspace(call, target);
  if (failed(workspace))
    return failure();
  plan::SliceAttr space = createWorkspace(*workspace, op->getLoc());
  ArrayAttr reads = readAll(op->getOperands());
  uint64_t flops = cast<FactsInterface>(op).getFlops();
  auto written = plan::CallOp::create(builder, op->getLoc(), call.getCallee(), call.getCallAttributes(), reads,
                                      writeAll(op->getResults()), space, 0, getResponsiblePlace(op->getLoc()), flops);
  noteDecisions(op, written);
  return success();
}

bool EntryLowering::mayWait(Operation *op) {
  return mayTakeMore() && op->getBlock() == &entry.getBody().front() && !op->hasAttr(recomputedAttrName);
}

void EntryLowering::writeAwaited(Operation *op) {
  llvm::DenseSet<Value> read;
  for (Value operand : op->getOperands())
    read.insert(StepStorage::getRoot(operand));
  llvm::DenseSet<unsigned> written;
  for (Value result : op->getResults())
    written.insert(storage.getStorage(result));
  llvm::StringSet<> symbols;
  for (const Waiting &each : waiting)
    if (llvm::any_of(take(each.info->writes, each.op->getResults()),
                     [&](Value result) { return read.contains(result); }) ||
        llvm::any_of(take(each.info->reads, each.op->getOperands()),
                     [&](Value operand) { return written.contains(storage.getStorage(operand)); }))
      symbols.insert(each.info->symbol);
  if (!symbols.empty())
    writeWaiting([&](StringRef symbol) { return symbols.contains(symbol); });
}

void EntryLowering::writeWaiting(llvm::function_ref<bool(StringRef)> isDue) {
  llvm::MapVector<StringRef, SmallVector<Waiting>> bySymbol;
  for (Waiting &each : waiting)
    if (isDue(each.info->symbol))
      bySymbol[each.info->symbol].push_back(each);
  llvm::erase_if(waiting, [&](const Waiting &each) { return isDue(each.info->symbol); });
  auto launch = [&](ArrayRef<Waiting> some, const codegen::KernelInfo &info) {
    SmallVector<Attribute> reads, writes;
    SmallVector<Location> places;
    for (const Waiting &each : some) {
      llvm::append_range(reads, each.reads);
      llvm::append_range(writes, writeAll(take(each.info->writes, each.op->getResults())));
      places.push_back(each.op->getLoc());
    }
    Location loc = builder.getFusedLoc(places);
    plan::LaunchOp::create(builder, loc, info.symbol, builder.getArrayAttr(reads), builder.getArrayAttr(writes),
                           info.extent, info.grain, plan::SliceAttr(), 0, getResponsiblePlace(loc), 0);
  };
  for (auto &[symbol, all] : bySymbol) {
    const size_t own = all.front().reads.size() + take(all.front().info->writes, all.front().op->getResults()).size();
    const size_t most = std::max<size_t>(1, kMaxPointers / own);
    for (ArrayRef<Waiting> rest(all); !rest.empty(); rest = rest.drop_front(std::min(most, rest.size()))) {
      ArrayRef<Waiting> some = rest.take_front(most);
      FailureOr<codegen::KernelInfo> batch = failure();
      if (some.size() > 1)
        batch = code.addTotals(cast<nn::KernelOp>(some.front().op), *some.front().info, some.size());
      if (failed(batch)) {
        for (const Waiting &each : some)
          launch(each, *each.info);
        continue;
      }
      launch(some, *batch);
      LaunchTypes types;
      for (const Waiting &each : some) {
        types.append(LaunchTypes(cast<nn::KernelOp>(each.op), *each.info));
        types.reads.push_back(getSumsType(*each.info, builder));
      }
      OpBuilder before(program);
      declared.add(*batch, types, before, program.getLoc());
    }
  }
}

LogicalResult EntryLowering::writeInstruction(Operation *op) {
  writeAwaited(op);
  if (auto found = kernels.find(op); found != kernels.end()) {
    const codegen::KernelInfo &info = found->second;
    uint64_t scratchBytes;
    uint64_t parts = countScratchParts(info.extent, info.grain, module.getThreadsMax());
    if (__builtin_mul_overflow(info.scratchBytes, parts, &scratchBytes))
      return op->emitError("scratch of ") << info.scratchBytes << " bytes per thread is too large";
    plan::SliceAttr scratch = createWorkspace(scratchBytes, op->getLoc());
    ArrayAttr reads = readAll(take(info.reads, op->getOperands()));
    uint64_t flops = cast<FactsInterface>(op).getFlops();
    if (const codegen::KernelInfo *partial = info.partial.get()) {
      plan::SliceAttr space = createWorkspace(info.partialBytes, op->getLoc());
      Attribute sums = plan::SliceAttr::get(entry.getContext(), space.getArena(), 0, info.partialBytes,
                                            createValue(MemoryComponent::Workspace));
      ArrayAttr firstReads = readAll(take(partial->reads, op->getOperands()));
      SmallVector<Attribute> writes(writeAll(take(partial->writes, op->getResults())).getValue());
      writes.push_back(sums);
      auto first = plan::LaunchOp::create(builder, op->getLoc(), partial->symbol, firstReads,
                                          builder.getArrayAttr(writes), partial->extent, partial->grain,
                                          plan::SliceAttr(), 0, getResponsiblePlace(op->getLoc()), flops);
      noteDecisions(op, first);
      SmallVector<Attribute> all(reads.getValue());
      all.push_back(sums);
      reads = builder.getArrayAttr(all);
      flops = 0;
      if (mayWait(op)) {
        waiting.push_back({op, &info, all});
        return success();
      }
      first->setAttr(continuedAttrName, builder.getUnitAttr());
    }
    auto launch =
        plan::LaunchOp::create(builder, op->getLoc(), info.symbol, reads, writeAll(take(info.writes, op->getResults())),
                               info.extent, info.grain, scratch, 0, getResponsiblePlace(op->getLoc()), flops);
    noteDecisions(op, launch);
    return success();
  }
  if (isLibraryCall(op))
    return writeCall(op, cast<LibraryCallInterface>(op));
  if (StepStorage::isMove(op)) {
    plan::SliceAttr source = read(op->getOperand(0));
    plan::CopyOp::create(builder, op->getLoc(), source, write(storage.getStorage(op->getResult(0)), op->getResult(0)),
                         0, 0, 0, getResponsiblePlace(op->getLoc()), 0);
    return success();
  }
  if (auto kernel = dyn_cast<nn::KernelOp>(op); kernel && kernel.isEmpty()) {
    writeAll(op->getResults()); // values without bytes
    return success();
  }
  return op->emitError("is neither in a kernel nor a library call: run nn-cluster first");
}

void EntryLowering::writeCopies(unsigned before) {
  for (const StorageCopy &copy : storage.getCopies(before))
    if (!(copy.sourceStep && shown.contains(copy.target)) && !(copy.targetStep && shown.contains(copy.source))) {
      plan::SliceAttr source = getSlice(copy.source, current[copy.source]);
      plan::SliceAttr target =
          round && copy.targetStep ? getSlice(copy.target, wholes.lookup(copy.target)) : write(copy.target);
      // The first round's part of the range that moves on, or this round's.
      auto getMoving = [&](plan::SliceAttr whole, int64_t step) {
        const uint64_t bytes = std::abs(step), parts = whole.getBytes() / bytes;
        return getPart(whole, getOffset(step, round.value_or(0), parts), bytes);
      };
      if (copy.sourceStep)
        source = getMoving(source, copy.sourceStep);
      if (copy.targetStep)
        target = getMoving(target, copy.targetStep);
      plan::CopyOp::create(builder, copy.value.getLoc(), source, target, round ? 0 : copy.sourceStep,
                           round ? 0 : copy.targetStep, 0, getResponsiblePlace(copy.value.getLoc()), 0);
    }
}

void EntryLowering::enterLoop(const StorageLoop &loop) {
  Location loc = loop.op->getLoc();
  auto repeat = plan::RepeatOp::create(builder, loc, cast<RepeatInterface>(loop.op).getRounds(), ArrayAttr(), 0,
                                       getResponsiblePlace(loc), 0);
  builder.createBlock(&repeat.getBody());
  handed.push_back(llvm::map_to_vector(loop.carried, [&](unsigned index) { return current[index]; }));
}

void EntryLowering::leaveLoop(const StorageLoop &loop) {
  auto repeat = cast<plan::RepeatOp>(builder.getBlock()->getParentOp());
  SmallVector<Attribute> carries;
  for (auto [index, value] : llvm::zip_equal(loop.carried, handed.pop_back_val()))
    if (current[index] != value)
      carries.push_back(plan::CarryAttr::get(entry.getContext(), getSlice(index, value), current[index]));
  if (!carries.empty())
    repeat.setCarriesAttr(builder.getArrayAttr(carries));
  builder.setInsertionPointAfter(repeat);
}

/// Whether the plan is for a GPU and may be packed otherwise than the step was when it was fitted.
bool EntryLowering::mayTakeMore() { return target.isGpu() && !entry->getParentOp()->hasAttr(deviceBudgetAttrName); }

/// A loop of few instructions that no other one contains.
bool EntryLowering::isUnrolled(const StorageLoop &loop) {
  const uint64_t rounds = cast<RepeatInterface>(loop.op).getRounds();
  const bool isAlone = llvm::none_of(storage.getLoops(), [&](const StorageLoop &other) {
    return (other.head > loop.head && other.end < loop.end) || (other.head < loop.head && other.end > loop.end);
  });
  return mayTakeMore() && isAlone && rounds <= kMaxUnrolled / (loop.end - loop.head);
}

/// Whether each round has its own bytes there.
bool EntryLowering::isLocal(const Storage &place, const StorageLoop &loop) {
  const Block *body = &loop.op->getRegion(0).front();
  auto number = static_cast<unsigned>(&place - storage.getStorages().data());
  return place.kind == Storage::Kind::Transient && !place.kept && !place.values.empty() &&
         !llvm::is_contained(loop.carried, number) &&
         llvm::all_of(place.values, [&](Value value) { return value.getParentBlock() == body; });
}

/// Whether a round can read its slice where the whole is: nothing is written over it.
bool EntryLowering::canShowPart(const StorageCopy &copy, const StorageLoop &loop) {
  const Storage &place = storage.getStorages()[copy.target];
  return place.values.size() == 1 && isLocal(place, loop) && copy.sourceStep % kArrayAlignment == 0;
}

/// Whether a round can write its row where the whole is: nothing else is made of these bytes or copied there.
bool EntryLowering::canShowRow(const StorageCopy &copy, const StorageLoop &loop) {
  const bool isOther = llvm::any_of(storage.getCopies(), [&](const StorageCopy &other) {
    return &other != &copy && (other.source == copy.source || other.target == copy.source);
  });
  return !isOther && isa<OpResult>(copy.value) && isLocal(storage.getStorages()[copy.source], loop) &&
         copy.targetStep % kArrayAlignment == 0;
}

LogicalResult EntryLowering::unroll(const StorageLoop &loop) {
  // Every row of a whole gets the number that the whole has after the loop.
  for (const StorageCopy &copy : storage.getCopies(loop.end))
    if (copy.targetStep)
      wholes[copy.target] = createValue(getComponent(copy.target, nullptr));
  const int64_t rounds = cast<RepeatInterface>(loop.op).getRounds();
  for (round = 0; *round < rounds; ++*round) {
    for (const StorageCopy &copy : storage.getCopies(loop.head + 1))
      if (copy.sourceStep && canShowPart(copy, loop)) {
        shown[copy.target] = {copy.source, getOffset(copy.sourceStep, *round, rounds)};
        current[copy.target] = current[copy.source];
      }
    for (const StorageCopy &copy : storage.getCopies(loop.end))
      if (copy.targetStep && canShowRow(copy, loop)) {
        shown[copy.source] = {copy.target, getOffset(copy.targetStep, *round, rounds)};
        numberOf[copy.value] = wholes[copy.target];
      }
    for (auto [i, place] : llvm::enumerate(storage.getStorages()))
      if (isLocal(place, loop) && !shown.contains(i)) {
        bufferOf[i] = llvm::formatv("b{0}_{1}", i, *round).str();
        plan::BufferOp::create(builder, place.values.front().getLoc(), bufferOf[i], "transient", place.bytes, false);
      }
    for (unsigned i = loop.head + 1; i <= loop.end; ++i) {
      writeCopies(i);
      if (i < loop.end && failed(writeInstruction(storage.getInstructions()[i])))
        return failure();
    }
    shown.clear();
    bufferOf.clear();
    numberOf.clear();
  }
  for (auto [target, value] : wholes)
    current[target] = value;
  wholes.clear();
  round.reset();
  return success();
}

void EntryLowering::writeBindings() {
  auto create = [&](const BindingFacts &facts, Type type, plan::SliceAttr slice, uint64_t last, StringRef group,
                    bool isDrawn) {
    bool image = facts.fromFile && facts.isPersistent() && weights && !isDrawn;
    // Where it lies is said by its arena.
    auto tensor = cast<RankedTensorType>(type);
    plan::BindingOp::create(builder, entry.getLoc(), facts.kind, facts.name.getValue(),
                            RankedTensorType::get(tensor.getShape(), tensor.getElementType()), slice, last,
                            APFloat(image ? 0.0 : facts.initial), image, facts.batchDim, group, facts.pending);
  };
  for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
    auto group = entry.getArgAttrOfType<StringAttr>(i, train::groupAttrName);
    create(getArgFacts(i), entry.getArgumentTypes()[i], getSlice(i, i + 1), current[i],
           group ? group.getValue() : StringRef(), entry.getArgAttr(i, train::initAttrName) != nullptr);
  }
  for (unsigned i = 0; i < entry.getNumResults(); ++i) {
    BindingFacts facts = getResultFacts(i);
    unsigned index = storage.getResultStorage(i);
    if (!facts.isPersistent())
      create(facts, entry.getResultTypes()[i], getSlice(index, 0), current[index], "", /*isDrawn=*/false);
  }
}

LogicalResult EntryLowering::run() {
  int64_t batch = 0;
  for (unsigned i = 0; i < entry.getNumArguments() && !batch; ++i) {
    BindingFacts facts = getArgFacts(i);
    auto type = cast<RankedTensorType>(entry.getArgumentTypes()[i]);
    if (facts.kind == plan::BindingKind::Batch && facts.batchDim >= 0 && facts.batchDim < type.getRank())
      batch = type.getDimSize(facts.batchDim);
  }
  builder.setInsertionPointToEnd(&module.getBlock());
  program = plan::ProgramOp::create(builder, entry.getLoc(), entry.getSymName(), batch, 0, 1, 0);
  builder.createBlock(&program.getBody());
  for (StringRef name : {StringRef(beforeBudgetAttrName), StringRef(plannedBudgetsAttrName)})
    if (Attribute figures = entry->getAttr(name))
      program->setAttr(name, figures);

  // Arguments have the first storages and start with values 1, 2, ….
  current.assign(storage.getStorages().size(), 0);
  components = {int8_t(numMemoryComponents)};
  for (unsigned i = 0; i < entry.getNumArguments(); ++i)
    current[i] = createValue(getArgFacts(i).getComponent());
  writeBuffers();
  ArrayRef<StorageLoop> heads = storage.getLoops();
  SmallVector<const StorageLoop *> inside;
  unsigned after = 0;
  for (auto [i, op] : llvm::enumerate(storage.getInstructions())) {
    if (i < after)
      continue;
    if (isa<RepeatInterface>(op) || !storage.getCopies(i).empty())
      writeWaiting([](StringRef) { return true; });
    writeCopies(i);
    if (!heads.empty() && heads.front().head == i && isUnrolled(heads.front())) {
      if (failed(unroll(heads.front())))
        return failure();
      after = heads.front().end + 1;
      heads = heads.drop_front();
    } else if (!heads.empty() && heads.front().head == i) {
      enterLoop(heads.front());
      inside.push_back(&heads.front());
      heads = heads.drop_front();
    } else if (!inside.empty() && inside.back()->end == i) {
      leaveLoop(*inside.pop_back_val());
    } else if (failed(writeInstruction(op))) {
      return failure();
    }
  }
  writeWaiting([](StringRef) { return true; });
  writeCopies(storage.getInstructions().size());
  program->setAttr(componentsAttrName, builder.getDenseI8ArrayAttr(components));
  builder.setInsertionPointToStart(&program.getBlock());
  writeBindings();
  return success();
}
