//===- PlanLower.cpp - steps on tensors become programs on bytes ----------===//
//
// 1. Lay out what all entries share (PlanLayout).
// 2. Per entry, decide which values share bytes (Analysis/StepStorage), asking
//    code generation which operands a kernel may overwrite.
// 3. Write the program: bindings, a buffer per transient storage, launches,
//    library calls and copies in textual order, a new value number per write.
//    A loop is a repeat, with the numbers of what it carries before and behind a
//    round. For a GPU, where no budget was promised, a short loop is written round by round: its slices and rows are
//    used where they are instead of copied.
//
//===----------------------------------------------------------------------===//
#include "PlanLower.h"
#include "LibraryCalls.h"
#include "Passes.h"
#include "PlanLayout.h"
#include "lowtide/Analysis/MemoryProfile.h"
#include "lowtide/Analysis/StepProblem.h"
#include "lowtide/Analysis/StepStorage.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/Train/Bindings.h"
#include "lowtide/Target/LibraryQuery.h"
#include "lowtide/Target/PlanProof.h"
#include "lowtide/Target/PlanProto.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowtide;

/// Instructions that a loop may become when it is written round by round; what the address of a kernel's array must be
/// a multiple of.
static constexpr uint64_t kMaxUnrolled = 256, kArrayAlignment = 16;

namespace lowtide {
#define GEN_PASS_DEF_PLANLOWER
#include "Passes.h.inc"
} // namespace lowtide

namespace {

/// Writes one entry into a plan.
class EntryLowering {
public:
  EntryLowering(func::FuncOp entry, const PlanLayout &layout, plan::ModuleOp module,
                const llvm::DenseMap<Operation *, codegen::KernelInfo> &kernels, StepStorage storage, bool weights)
      : entry(entry), layout(layout), module(module), kernels(kernels), storage(std::move(storage)), weights(weights),
        builder(entry.getContext()) {}
  LogicalResult run();

private:
  void writeBindings();
  void writeBuffers();
  LogicalResult writeInstruction(Operation *op);
  LogicalResult writeCall(Operation *op, LibraryCallInterface call);
  void writeCopies(unsigned before);
  void enterLoop(const StorageLoop &loop);
  void leaveLoop(const StorageLoop &loop);
  /// Whether `loop` is written round by round.
  bool isUnrolled(const StorageLoop &loop);
  bool isLocal(const Storage &place, const StorageLoop &loop);
  LogicalResult unroll(const StorageLoop &loop);
  bool canShowPart(const StorageCopy &copy, const StorageLoop &loop);
  bool canShowRow(const StorageCopy &copy, const StorageLoop &loop);

  BindingFacts getArgFacts(unsigned i) { return *BindingFacts::get(entry.getArgAttr(i, train::bindingAttrName)); }
  BindingFacts getResultFacts(unsigned i) { return *BindingFacts::get(entry.getResultAttr(i, train::bindingAttrName)); }
  /// The bytes of a storage, holding value `value`.
  plan::SliceAttr getSlice(unsigned index, uint64_t value);
  /// What `tensor` holds now.
  plan::SliceAttr read(Value tensor) {
    unsigned index = storage.getStorage(tensor);
    return getSlice(index, current[index]);
  }
  /// A new value for a storage; one that has its number already keeps it.
  plan::SliceAttr write(unsigned index, Value tensor = {}) {
    auto known = numberOf.find(tensor);
    return getSlice(index, current[index] = known == numberOf.end() ? ++lastValue : known->second);
  }
  ArrayAttr readAll(ValueRange tensors) {
    return builder.getArrayAttr(llvm::map_to_vector(tensors, [&](Value v) -> Attribute { return read(v); }));
  }
  ArrayAttr writeAll(ValueRange tensors) {
    return builder.getArrayAttr(
        llvm::map_to_vector(tensors, [&](Value v) -> Attribute { return write(storage.getStorage(v), v); }));
  }
  /// A buffer that one instruction may use as it likes; null for no bytes.
  plan::SliceAttr createWorkspace(uint64_t bytes, Location loc);

  func::FuncOp entry;
  const PlanLayout &layout;
  plan::ModuleOp module;
  const llvm::DenseMap<Operation *, codegen::KernelInfo> &kernels;
  StepStorage storage;
  bool weights;
  OpBuilder builder;
  plan::ProgramOp program;
  /// Value number that each storage holds now.
  SmallVector<uint64_t> current;
  uint64_t lastValue = 0;
  unsigned workspaces = 0;
  /// Of each loop around the instruction: its carried storages' values when a round starts.
  SmallVector<SmallVector<uint64_t>> handed;
  /// Of an unrolled loop: its round; storages whose bytes are a part of another's, from an offset on; buffers of the
  /// others; what number rows have as parts of the whole, and the wholes.
  std::optional<int64_t> round;
  llvm::DenseMap<unsigned, std::pair<unsigned, uint64_t>> shown;
  llvm::DenseMap<unsigned, std::string> bufferOf;
  llvm::DenseMap<Value, uint64_t> numberOf;
  llvm::DenseMap<unsigned, uint64_t> wholes;
};

} // namespace

/// `bytes` bytes of `whole`, from `offset` on.
static plan::SliceAttr getPart(plan::SliceAttr whole, uint64_t offset, uint64_t bytes) {
  return plan::SliceAttr::get(whole.getContext(), whole.getArena(), whole.getOffset() + offset, bytes,
                              whole.getValue());
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

void EntryLowering::writeBuffers() {
  auto isOfRound = [&](const Storage &place) {
    return llvm::any_of(storage.getLoops(),
                        [&](const StorageLoop &loop) { return isUnrolled(loop) && isLocal(place, loop); });
  };
  for (auto [i, place] : llvm::enumerate(storage.getStorages()))
    if (place.kind == Storage::Kind::Transient && !isOfRound(place)) {
      Location loc = place.values.empty() ? entry.getLoc() : place.values.front().getLoc();
      plan::BufferOp::create(builder, loc, "b" + std::to_string(i), "transient", place.bytes, place.kept);
    }
}

/// Says of an instruction that it computes again, as `op` does: one op may become two launches.
static void noteRecomputed(Operation *op, Operation *instruction) {
  if (op->hasAttr(recomputedAttrName))
    instruction->setAttr(recomputedAttrName, UnitAttr::get(op->getContext()));
}

LogicalResult EntryLowering::writeCall(Operation *op, LibraryCallInterface call) {
  FailureOr<uint64_t> workspace = queryWorkspace(call, module.getTarget());
  if (failed(workspace))
    return failure();
  plan::SliceAttr space = createWorkspace(*workspace, op->getLoc());
  ArrayAttr reads = readAll(op->getOperands());
  uint64_t flops = cast<FactsInterface>(op).getFlops();
  auto written = plan::CallOp::create(builder, op->getLoc(), call.getCallee(), call.getCallAttributes(), reads,
                                      writeAll(op->getResults()), space, 0, getResponsiblePlace(op->getLoc()), flops);
  noteRecomputed(op, written);
  return success();
}

LogicalResult EntryLowering::writeInstruction(Operation *op) {
  if (auto found = kernels.find(op); found != kernels.end()) {
    const codegen::KernelInfo &info = found->second;
    uint64_t scratchBytes;
    uint64_t parts = countScratchParts(info.extent, info.grain, module.getThreadsMax());
    if (__builtin_mul_overflow(info.scratchBytes, parts, &scratchBytes))
      return op->emitError("scratch of ") << info.scratchBytes << " bytes per thread is too large";
    plan::SliceAttr scratch = createWorkspace(scratchBytes, op->getLoc());
    auto take = [](const std::optional<SmallVector<unsigned>> &some, ValueRange all) -> SmallVector<Value> {
      if (!some)
        return all;
      return llvm::map_to_vector(*some, [&](unsigned number) { return all[number]; });
    };
    ArrayAttr reads = readAll(take(info.reads, op->getOperands()));
    uint64_t flops = cast<FactsInterface>(op).getFlops();
    if (const codegen::KernelInfo *partial = info.partial.get()) {
      plan::SliceAttr space = createWorkspace(info.partialBytes, op->getLoc());
      Attribute sums = plan::SliceAttr::get(entry.getContext(), space.getArena(), 0, info.partialBytes, ++lastValue);
      ArrayAttr firstReads = readAll(take(partial->reads, op->getOperands()));
      SmallVector<Attribute> writes(writeAll(take(partial->writes, op->getResults())).getValue());
      writes.push_back(sums);
      auto first = plan::LaunchOp::create(builder, op->getLoc(), partial->symbol, firstReads,
                                          builder.getArrayAttr(writes), partial->extent, partial->grain,
                                          plan::SliceAttr(), 0, getResponsiblePlace(op->getLoc()), flops);
      noteRecomputed(op, first);
      SmallVector<Attribute> all(reads.getValue());
      all.push_back(sums);
      reads = builder.getArrayAttr(all);
      flops = 0;
    }
    auto launch =
        plan::LaunchOp::create(builder, op->getLoc(), info.symbol, reads, writeAll(take(info.writes, op->getResults())),
                               info.extent, info.grain, scratch, 0, getResponsiblePlace(op->getLoc()), flops);
    noteRecomputed(op, launch);
    return success();
  }
  if (isLibraryCall(op))
    return writeCall(op, cast<LibraryCallInterface>(op));
  return op->emitError("is neither in a kernel nor a library call: run nn-cluster first");
}

void EntryLowering::writeCopies(unsigned before) {
  for (const StorageCopy &copy : storage.getCopies())
    if (copy.before == before && !(copy.sourceStep && shown.contains(copy.target)) &&
        !(copy.targetStep && shown.contains(copy.source))) {
      plan::SliceAttr source = getSlice(copy.source, current[copy.source]);
      plan::SliceAttr target =
          round && copy.targetStep ? getSlice(copy.target, wholes.lookup(copy.target)) : write(copy.target);
      // The first round's part of the range that moves on, or this round's.
      const uint64_t passed = round.value_or(0);
      if (copy.sourceStep)
        source = getPart(source, passed * copy.sourceStep, copy.sourceStep);
      if (copy.targetStep)
        target = getPart(target, passed * copy.targetStep, copy.targetStep);
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

/// A loop of few instructions that no other one contains.
bool EntryLowering::isUnrolled(const StorageLoop &loop) {
  const uint64_t rounds = cast<RepeatInterface>(loop.op).getRounds();
  const bool isAlone = llvm::none_of(storage.getLoops(), [&](const StorageLoop &other) {
    return (other.head > loop.head && other.end < loop.end) || (other.head < loop.head && other.end > loop.end);
  });
  // A budget's promise is about the bytes of the loop as it is.
  return module.getTarget().starts_with("cuda") && !entry->getParentOp()->hasAttr(deviceBudgetAttrName) && isAlone &&
         rounds <= kMaxUnrolled / (loop.end - loop.head);
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
  // Every row of a whole gets the number that the whole has behind the loop.
  for (const StorageCopy &copy : storage.getCopies())
    if (copy.before == loop.end && copy.targetStep)
      wholes[copy.target] = ++lastValue;
  const int64_t rounds = cast<RepeatInterface>(loop.op).getRounds();
  for (round = 0; *round < rounds; ++*round) {
    for (const StorageCopy &copy : storage.getCopies())
      if (copy.before == loop.head + 1 && copy.sourceStep && canShowPart(copy, loop)) {
        shown[copy.target] = {copy.source, *round * copy.sourceStep};
        current[copy.target] = current[copy.source];
      } else if (copy.before == loop.end && copy.targetStep && canShowRow(copy, loop)) {
        shown[copy.source] = {copy.target, *round * copy.targetStep};
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
  auto create = [&](const BindingFacts &facts, Type type, plan::SliceAttr slice, uint64_t last, StringRef group) {
    bool image = facts.fromFile && facts.isPersistent() && weights;
    plan::BindingOp::create(builder, entry.getLoc(), facts.kind, facts.name.getValue(), cast<RankedTensorType>(type),
                            slice, last, APFloat(image ? 0.0 : facts.initial), image, facts.batchDim, group);
  };
  for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
    auto group = entry.getArgAttrOfType<StringAttr>(i, train::groupAttrName);
    create(getArgFacts(i), entry.getArgumentTypes()[i], getSlice(i, i + 1), current[i],
           group ? group.getValue() : StringRef());
  }
  for (unsigned i = 0; i < entry.getNumResults(); ++i) {
    BindingFacts facts = getResultFacts(i);
    unsigned index = storage.getResultStorage(i);
    if (!facts.isPersistent())
      create(facts, entry.getResultTypes()[i], getSlice(index, 0), current[index], "");
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

  // Arguments have the first storages and start with values 1, 2, ….
  current.assign(storage.getStorages().size(), 0);
  for (lastValue = 0; lastValue < entry.getNumArguments(); ++lastValue)
    current[lastValue] = lastValue + 1;
  writeBuffers();
  ArrayRef<StorageLoop> heads = storage.getLoops();
  SmallVector<const StorageLoop *> inside;
  unsigned behind = 0;
  for (auto [i, op] : llvm::enumerate(storage.getInstructions())) {
    if (i < behind)
      continue;
    writeCopies(i);
    if (!heads.empty() && heads.front().head == i && isUnrolled(heads.front())) {
      if (failed(unroll(heads.front())))
        return failure();
      behind = heads.front().end + 1;
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
  writeCopies(storage.getInstructions().size());
  builder.setInsertionPointToStart(&program.getBlock());
  writeBindings();
  return success();
}

/// The fields of `plan.source` for argument `i`, from what the importer noted; null if it comes from no initializer.
static DictionaryAttr getSourceFields(func::FuncOp entry, unsigned i, StringRef name) {
  auto initializer = entry.getArgAttrOfType<StringAttr>(i, "onnx.initializer");
  if (!initializer)
    return {};
  Builder b(entry.getContext());
  NamedAttrList fields;
  fields.set("initializer", initializer);
  ArrayRef<int64_t> stored = cast<RankedTensorType>(entry.getArgumentTypes()[i]).getShape();
  SmallVector<int64_t> original(stored);
  if (auto permutation = entry.getArgAttrOfType<DenseI64ArrayAttr>(i, "onnx.transposed")) {
    fields.set("permutation", permutation);
    for (auto [to, from] : llvm::enumerate(permutation.asArrayRef()))
      if (from >= 0 && from < int64_t(original.size()) && to < stored.size())
        original[from] = stored[to];
  }
  if (auto shape = entry.getArgAttrOfType<DenseI64ArrayAttr>(i, "onnx.source_shape"))
    original = llvm::to_vector(shape.asArrayRef());
  fields.set("original_dims", b.getDenseI64ArrayAttr(original));
  if (auto rows = entry.getArgAttrOfType<DenseI64ArrayAttr>(i, "onnx.source_rows"); rows && rows.size() == 2) {
    fields.set("slice_axis", b.getI64IntegerAttr(0));
    fields.set("slice_start", b.getI64IntegerAttr(rows[0]));
    fields.set("slice_size", b.getI64IntegerAttr(rows[1] - rows[0]));
  }
  for (StringRef field : {"use_nodes", "use_operands", "view_initializers", "view_permutations", "folded_into",
                          "folded_runs", "folded_functions", "image_initializers"})
    if (Attribute value = entry.getArgAttr(i, ("onnx." + field).str()))
      fields.set(field, value);
  if (auto tied = entry.getArgAttrOfType<ArrayAttr>(i, "onnx.tied")) {
    SmallVector<Attribute> others;
    for (auto other : tied.getAsRange<StringAttr>())
      if (other.getValue() != name)
        others.push_back(other);
    if (!others.empty())
      fields.set("tied_names", b.getArrayAttr(others));
  }
  return fields.getDictionary(entry.getContext());
}

/// A `plan.source` for every argument that comes from an initializer, once per name.
static void writeSources(ArrayRef<func::FuncOp> entries, OpBuilder &builder) {
  llvm::StringSet<> seen;
  for (func::FuncOp entry : entries)
    for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
      BindingFacts facts = *BindingFacts::get(entry.getArgAttr(i, train::bindingAttrName));
      DictionaryAttr fields = getSourceFields(entry, i, facts.name);
      if (fields && seen.insert(facts.name.getValue()).second)
        plan::SourceOp::create(builder, entry.getLoc(), facts.name.getValue(), fields);
    }
}

namespace {

class PlanLower : public lowtide::impl::PlanLowerBase<PlanLower> {
public:
  using PlanLowerBase::PlanLowerBase;
  PlanLower(codegen::KernelModule &kernels, PlanLowerSettings settings)
      : given(&kernels), settings(std::move(settings)) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<plan::PlanDialect>();
    codegen::KernelModule::registerDialects(registry);
  }

  void runOnOperation() override {
    if (!given)
      settings = {target, "lowtide", "", threadsMax, /*weights=*/true};
    std::unique_ptr<codegen::KernelModule> own;
    if (!given)
      own = std::make_unique<codegen::KernelModule>(&getContext(), codegen::CodegenOptions{});
    if (failed(lower(given ? *given : *own)))
      signalPassFailure();
  }

private:
  LogicalResult lower(codegen::KernelModule &kernels);
  LogicalResult addKernels(func::FuncOp entry, codegen::KernelModule &kernels, OpBuilder &builder,
                           llvm::DenseMap<Operation *, codegen::KernelInfo> &infos);

  codegen::KernelModule *given = nullptr;
  PlanLowerSettings settings;
};

} // namespace

LogicalResult PlanLower::addKernels(func::FuncOp entry, codegen::KernelModule &kernels, OpBuilder &builder,
                                    llvm::DenseMap<Operation *, codegen::KernelInfo> &infos) {
  auto result = entry.walk([&](nn::KernelOp kernel) {
    if (isLibraryCall(kernel))
      return WalkResult::advance();
    FailureOr<codegen::KernelInfo> info = kernels.add(kernel);
    if (failed(info))
      return WalkResult::interrupt();
    auto declare = [&](const codegen::KernelInfo &code, uint64_t sumsRead, uint64_t sumsWritten) {
      const uint64_t reads = (code.reads ? code.reads->size() : kernel.getNumOperands()) + sumsRead;
      const uint64_t writes = (code.writes ? code.writes->size() : kernel.getNumResults()) + sumsWritten;
      if (!SymbolTable::lookupSymbolIn(builder.getBlock()->getParentOp(), code.symbol))
        plan::KernelOp::create(builder, kernel.getLoc(), code.symbol, reads, writes, code.scratchBytes,
                               code.description, code.threads, code.sharedBytes);
    };
    if (info->partial)
      declare(*info->partial, /*sumsRead=*/0, /*sumsWritten=*/1);
    declare(*info, /*sumsRead=*/info->partial ? 1 : 0, /*sumsWritten=*/0);
    infos[kernel] = *info;
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult PlanLower::lower(codegen::KernelModule &kernels) {
  auto entries = llvm::to_vector(getOperation().getOps<func::FuncOp>());
  if (entries.empty())
    return getOperation().emitError("has no step: expected a function @train, @eval or @gradient");
  FailureOr<PlanLayout> layout = PlanLayout::compute(entries);
  if (failed(layout))
    return failure();

  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(getOperation().getBody());
  auto module = plan::ModuleOp::create(builder, getOperation().getLoc(), 1, settings.producer, settings.target,
                                       settings.threadsMax, settings.modelDigest,
                                       getOperation()->getAttrOfType<DictionaryAttr>(train::scheduleAttrName),
                                       getOperation()->getAttrOfType<DictionaryAttr>(train::optimizerAttrName));
  builder.createBlock(&module.getBody());
  for (const PlanLayout::Arena &arena : layout->getArenas())
    plan::ArenaOp::create(builder, module.getLoc(), arena.name, arena.kind, arena.bytes, planAlignment,
                          settings.weights ? arena.imageBytes : 0);
  plan::ArenaOp::create(builder, module.getLoc(), "transient", plan::ArenaKind::Transient, 0, planAlignment, 0);

  llvm::DenseMap<Operation *, codegen::KernelInfo> infos;
  for (func::FuncOp entry : entries)
    if (failed(addKernels(entry, kernels, builder, infos)))
      return failure();
  writeSources(entries, builder);

  auto mayOverwrite = [&](Operation *op, unsigned result, unsigned operand) {
    auto info = infos.find(op);
    if (info == infos.end())
      return result == 0 && isLibraryCall(op) && getOverwritableOperand(cast<LibraryCallInterface>(op)) == int(operand);
    return llvm::is_contained(info->second.inPlace[result], int(operand));
  };
  for (func::FuncOp entry : entries) {
    FailureOr<StepStorage> storage = StepStorage::compute(entry, mayOverwrite);
    if (failed(storage) ||
        failed(EntryLowering(entry, *layout, module, infos, std::move(*storage), settings.weights).run()))
      return failure();
  }
  for (func::FuncOp entry : entries)
    entry.erase();
  return success();
}

std::unique_ptr<Pass> lowtide::createPlanLower(codegen::KernelModule &kernels, PlanLowerSettings settings) {
  return std::make_unique<PlanLower>(kernels, std::move(settings));
}
