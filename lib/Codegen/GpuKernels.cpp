//===- GpuKernels.cpp - kernel ops become kernels of a GPU ------*- C++ -*-===//
//
// Chooses the emitter and the grid; the host's form of the same functions.
//
//===----------------------------------------------------------------------===//

#include "GpuBatch.h"
#include "GpuLowering.h"
#include "GpuMovement.h"
#include "MachineCode.h"
#include "TrialTable.h"
#include "lowtide/Codegen/KernelModule.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

bool codegen::needsWideIndex(nn::KernelOp kernel) {
  constexpr int64_t limit = (int64_t(1) << 31) - (int64_t(1) << 24);
  auto isLarge = [&](Type type) { return cast<RankedTensorType>(type).getNumElements() > limit; };
  return llvm::any_of(kernel.getBlock()->getArgumentTypes(), isLarge) ||
         llvm::any_of(kernel.getBlock()->without_terminator(),
                      [&](Operation &op) { return llvm::any_of(op.getResultTypes(), isLarge); });
}

/// Loops or branches inside the loop over the grid: such an element is not computed several at once.
static bool hasInnerControl(Operation *function) {
  return function
      ->walk([](Operation *op) {
        bool inner = isa<scf::ForOp, scf::IfOp>(op) && isa<scf::ForOp, scf::IfOp>(op->getParentOp());
        return inner ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// What a kernel of a GPU is made by, and how much of the kernel op it does.
struct codegen::GpuForm {
  enum class Part { Whole, Partials, Totals };
  Part part = Part::Whole;
  FailureOr<StagedDomain> domain = failure();
  ScatterInterface scatter;
  nn::TransposeOp transpose;
  /// Whose lines threads go along.
  nn::CumSumOp runningSum;
  bool search = false, narrow = false;
  /// Of the GPU that the grid is sized for.
  unsigned processors;

  bool isOfOneOp() { return scatter || transpose || runningSum; }
  bool isStaged() { return !isOfOneOp() && succeeded(domain); }
  bool isLoop() { return !isOfOneOp() && failed(domain); }
  Grid getGrid(nn::KernelOp kernel);
  LogicalResult emit(KernelContext &context);
};

Grid GpuForm::getGrid(nn::KernelOp kernel) {
  if (scatter && part == Part::Partials)
    return getGpuSortGrid(scatter);
  if (scatter)
    return search ? getGpuSearchGrid(scatter) : getGpuScatterGrid(scatter, processors);
  if (transpose)
    return getGpuTransposeGrid(transpose);
  if (runningSum)
    return getGpuRunningSumGrid(runningSum, processors);
  if (succeeded(domain))
    return part == Part::Partials ? getGpuPartialGrid(kernel, *domain)
           : part == Part::Totals ? getGpuStagedGrid(*domain, processors)
                                  : getGpuStagedGrid(kernel, *domain, processors);
  return getGpuLoopGrid(kernel, narrow, processors);
}

LogicalResult GpuForm::emit(KernelContext &context) {
  if (scatter && part == Part::Partials) {
    emitGpuSort(context, scatter);
  } else if (scatter && part == Part::Totals) {
    emitGpuSorted(context, scatter);
  } else if (search) {
    emitGpuSearch(context, scatter);
  } else if (scatter) {
    emitScatter(context, scatter);
  } else if (transpose) {
    emitGpuTranspose(context, transpose);
  } else if (runningSum) {
    emitGpuRunningSum(context, runningSum);
  } else if (failed(domain)) {
    emitGpuLoop(context, narrow);
  } else {
    switch (part) {
    case Part::Partials:
      return emitGpuPartials(context, *domain);
    case Part::Totals:
      return emitGpuTotals(context, *domain);
    case Part::Whole:
      return domain->getShape().trailing ? emitGpuRow(context, *domain) : emitGpuColumn(context, *domain);
    }
  }
  return success();
}

SmallVector<unsigned> codegen::findReads(KernelFunction &function, unsigned numOperands) {
  SmallVector<unsigned> reads;
  for (unsigned i = 0; i < numOperands; ++i)
    if (!function.getPointer(i).use_empty())
      reads.push_back(i);
  return reads;
}

/// Writes the function of a form at the end of `target`; fills what `info` says of the launch. One of two functions
/// takes what `info.reads` names, and is looked through for that where nothing is named yet.
static FailureOr<Operation *> emitFunction(gpu::GPUModuleOp target, StringRef name, nn::KernelOp kernel, GpuForm &form,
                                           KernelInfo &info) {
  const unsigned numReads = kernel.getNumOperands() + (form.part == GpuForm::Part::Totals ? 1 : 0);
  const unsigned numWrites = form.part == GpuForm::Part::Partials ? 1 : kernel.getNumResults();
  SmallVector<bool> mayAlias(numReads + numWrites, false), isTaken(numReads + numWrites, true);
  if (form.part != GpuForm::Part::Partials) {
    info.inPlace = findInPlace(kernel, succeeded(form.domain));
    for (auto [result, operands] : llvm::enumerate(info.inPlace))
      for (int operand : operands)
        mayAlias[operand] = mayAlias[numReads + result] = true;
  }
  if (info.reads)
    for (unsigned i = 0; i < kernel.getNumOperands(); ++i)
      isTaken[i] = llvm::is_contained(*info.reads, i);
  SmallVector<bool> taken;
  for (auto [alias, isOne] : llvm::zip_equal(mayAlias, isTaken))
    if (isOne)
      taken.push_back(alias);
  Grid grid = form.getGrid(kernel);
  KernelFunction function(target, name, taken, /*hasScratch=*/false, grid);
  // Emitters number pointers as if all were there.
  SmallVector<Value> pointers;
  unsigned next = 0;
  for (bool isOne : isTaken)
    pointers.push_back(isOne ? function.getPointer(next++) : Value());
  function.setPointers(pointers);
  if (needsWideIndex(kernel))
    function.function->setAttr(kWideIndexAttrName, UnitAttr::get(kernel.getContext()));
  RegionEvaluator evaluator(function);
  for (auto [i, argument] : llvm::enumerate(kernel.getBlock()->getArguments()))
    if (isTaken[i])
      evaluator.bindArray(argument, function.getPointer(i));
  KernelContext context{kernel, function, evaluator};
  if (failed(form.emit(context)))
    return failure();
  if (form.part != GpuForm::Part::Whole && !info.reads)
    info.reads = findReads(function, kernel.getNumOperands());
  if (form.part == GpuForm::Part::Partials)
    info.writes.emplace();
  info.extent = info.grain = grid.blocks;
  info.threads = grid.threads;
  info.sharedBytes = function.sharedBytes;
  return function.function.getOperation();
}

/// Writes the function of a batch at the end of `target`; fills what `info` says of the launch.
static LogicalResult emitBatch(gpu::GPUModuleOp target, StringRef name, nn::KernelOp kernel, const Batch &batch,
                               GpuForm &form, KernelInfo &info) {
  SmallVector<int64_t> firstBlocks;
  Grid own = batch.isRagged ? getGpuRaggedGrid(batch, firstBlocks) : form.getGrid(batch.first);
  Grid grid{batch.isRagged ? own.blocks : own.blocks * static_cast<int64_t>(batch.items.size()), own.threads};
  KernelFunction function(target, name, kernel.getNumOperands() + kernel.getNumResults(), grid);
  if (needsWideIndex(kernel))
    function.function->setAttr(kWideIndexAttrName, UnitAttr::get(kernel.getContext()));
  if (batch.isRagged) {
    emitGpuRagged(batch, function);
  } else {
    takePointers(batch, function, enterItem(function, own.blocks));
    RegionEvaluator evaluator(function);
    for (auto [i, argument] : llvm::enumerate(batch.first.getBlock()->getArguments()))
      evaluator.bindArray(argument, function.getPointer(i));
    KernelContext context{batch.first, function, evaluator};
    if (failed(form.emit(context)))
      return failure();
  }
  info.extent = info.grain = grid.blocks;
  info.threads = grid.threads;
  info.sharedBytes = function.sharedBytes;
  return success();
}

FailureOr<KernelInfo> KernelModule::addGpuBatch(nn::KernelOp kernel) {
  FailureOr<Batch> batch = Batch::get(kernel);
  if (failed(batch))
    return kernel.emitError("cannot generate code: the kernels of a batch have different forms");
  GpuForm form{.processors = options.processors};
  form.transpose = getTileTranspose(batch->first);
  if (batch->first.getEmitter() != nn::Emitter::loop)
    form.domain = StagedDomain::get(batch->first);
  KernelInfo info;
  OwningOpRef<ModuleOp> trial;
  auto attempt = [&]() -> LogicalResult {
    trial = ModuleOp::create(module->getLoc());
    addGpuModule(*trial);
    return emitBatch(getGpuModule(*trial), "kernel", kernel, *batch, form, info);
  };
  if (failed(attempt())) {
    form.domain = failure();
    (void)attempt();
  }
  if (!batch->isRagged && form.isLoop() && hasInnerControl(getGpuModule(*trial).lookupSymbol("kernel"))) {
    form.narrow = true;
    (void)attempt();
  }
  auto [symbol, isNew] = getSymbol(nn::Emitter::batch, *trial);
  if (isNew)
    (void)emitBatch(getGpuModule(*module), symbol, kernel, *batch, form, info);
  info.inPlace = batch->findInPlace(kernel, succeeded(form.domain));
  info.symbol = symbol;
  info.description = std::to_string(batch->items.size()) + " × " + describe(batch->first);
  return info;
}

/// Writes the function of a form into a module of its own.
static GpuTrial tryGpuForm(nn::KernelOp kernel, GpuForm form) {
  GpuTrial trial;
  OwningOpRef<ModuleOp> own;
  auto attempt = [&] {
    own = ModuleOp::create(UnknownLoc::get(kernel.getContext()));
    addGpuModule(*own);
    return emitFunction(getGpuModule(*own), "kernel", kernel, form, trial.info);
  };
  FailureOr<Operation *> function = attempt();
  if (failed(function)) {
    trial.isFailed = form.part != GpuForm::Part::Whole;
    if (trial.isFailed)
      return trial;
    form.domain = failure();
    function = attempt();
  }
  if (form.isLoop() && hasInnerControl(*function)) {
    form.narrow = true;
    (void)attempt();
  }
  if (trial.info.reads)
    (void)attempt();
  trial.info.description = describe(kernel);
  trial.hasDomain = succeeded(form.domain);
  trial.isNarrow = form.narrow;
  trial.text = numberText([&](llvm::raw_ostream &os) { os << *own; });
  return trial;
}

FailureOr<KernelInfo> KernelModule::addGpuForm(nn::KernelOp kernel, GpuForm form) {
  std::mutex &mutex = trials->table->mutex;
  auto &known = trials->table->knownOfGpu;
  const TextNumber key = numberText([&](llvm::raw_ostream &os) {
    os << options.chip << " " << options.cpu << " " << options.processors << " " << unsigned(form.part) << "\n";
    printBody(os, kernel);
  });
  std::optional<GpuTrial> found;
  {
    std::lock_guard lock(mutex);
    if (auto it = known.find(key); it != known.end())
      found = it->second;
  }
  if (!found) {
    found = tryGpuForm(kernel, form);
    std::lock_guard lock(mutex);
    known.emplace(key, *found);
  }
  if (found->isFailed)
    return failure();
  KernelInfo &info = found->info;
  auto [symbol, isNew] = getSymbol(kernel.getEmitter(), found->text);
  if (isNew) {
    if (!found->hasDomain)
      form.domain = failure();
    form.narrow = found->isNarrow;
    (void)emitFunction(getGpuModule(*module), symbol, kernel, form, info);
  }
  info.symbol = symbol;
  return info;
}

FailureOr<KernelInfo> KernelModule::addGpuTotals(nn::KernelOp kernel) {
  GpuForm form{.processors = options.processors};
  form.domain = StagedDomain::get(kernel);
  form.part = GpuForm::Part::Totals;
  if (failed(form.domain))
    return failure();
  return addGpuForm(kernel, form);
}

FailureOr<KernelInfo> KernelModule::addGpu(nn::KernelOp kernel) {
  if (kernel.getEmitter() == nn::Emitter::batch)
    return addGpuBatch(kernel);
  if (kernel.getEmitter() == nn::Emitter::cross)
    return addGpuCross(kernel);
  GpuForm form{.processors = options.processors};
  if (kernel.getEmitter() == nn::Emitter::row || kernel.getEmitter() == nn::Emitter::column)
    form.domain = StagedDomain::get(kernel);
  form.scatter = findScatter(kernel);
  form.search = form.scatter && canSearch(kernel, form.scatter);
  form.transpose = getTileTranspose(kernel);
  if (nn::CumSumOp sum = getRunningSum(kernel); sum && isGpuRunningSumByLines(sum))
    form.runningSum = sum;

  uint64_t bytes = form.search       ? getSortedBytes(form.scatter)
                   : form.isStaged() ? getPartialBytes(kernel, *form.domain)
                                     : 0;
  if (bytes) {
    GpuForm first = form, second = form;
    first.part = GpuForm::Part::Partials;
    second.part = GpuForm::Part::Totals;
    FailureOr<KernelInfo> partial = addGpuForm(kernel, first), whole = addGpuForm(kernel, second);
    if (succeeded(partial) && succeeded(whole)) {
      whole->partial = std::make_shared<KernelInfo>(std::move(*partial));
      whole->partialBytes = bytes;
      return whole;
    }
  }
  return addGpuForm(kernel, form);
}

FailureOr<std::vector<char>> codegen::compileEmulated(gpu::GPUModuleOp kernels, const CodegenOptions &options,
                                                      StringRef statements) {
  llvm::LLVMContext context;
  auto code = std::make_unique<llvm::Module>("kernels", context);
  ModuleOp errors = kernels->getParentOfType<ModuleOp>();
  for (bool wideIndex : {false, true}) {
    FailureOr<OwningOpRef<ModuleOp>> functions = toHostFunctions(kernels, wideIndex);
    if (failed(functions))
      return failure();
    expandMath(**functions, /*useLibm=*/false);
    expandNarrowFloats(**functions);
    std::unique_ptr<llvm::Module> part = translate(**functions, context, wideIndex ? 64 : 32);
    if (!part || llvm::Linker::linkModules(*code, std::move(part)))
      return failure();
  }
  return emitSharedObject(errors, *code, options, statements);
}
