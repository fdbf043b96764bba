//===- GpuTotals.cpp - the second kernels of several sums at once -===//
//
// What adds up the totals of blocks of rows is over before a launch has started. Where nothing waits for it, that of
// several kernels of one code goes into one launch; a block takes the pointers of its kernel from a table, as in a
// batch.
//
//===----------------------------------------------------------------------===//

#include "CrossKernel.h"
#include "GpuBatch.h"
#include "GpuLowering.h"
#include "lowtide/Codegen/KernelModule.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

FailureOr<KernelInfo> KernelModule::addTotals(nn::KernelOp kernel, const KernelInfo &one, unsigned count) {
  if (!one.partial || !one.reads)
    return failure();
  CrossKernel cross;
  nn::KernelOp columns = kernel;
  // Numbers of the operands that are read, as the sums' own.
  SmallVector<unsigned> taken(*one.reads);
  if (kernel.getEmitter() == nn::Emitter::cross) {
    FailureOr<CrossKernel> found = CrossKernel::get(kernel);
    if (failed(found))
      return failure();
    cross = std::move(*found);
    columns = cross.columns;
    for (unsigned &operand : taken)
      operand = llvm::find(cross.columnOperands, operand) - cross.columnOperands.begin();
  }
  FailureOr<StagedDomain> domain = StagedDomain::get(columns);
  if (failed(domain))
    return failure();
  const Grid own = getGpuStagedGrid(*domain, options.processors);
  const Grid grid{own.blocks * count, own.threads};
  const int64_t numReads = taken.size() + 1, numWrites = columns.getNumResults();
  KernelInfo info;
  auto emit = [&](gpu::GPUModuleOp target, StringRef name) -> LogicalResult {
    KernelFunction function(target, name, (numReads + numWrites) * count, grid);
    if (needsWideIndex(columns))
      function.function->setAttr(kWideIndexAttrName, UnitAttr::get(kernel.getContext()));
    Value item = enterItem(function, own.blocks);
    auto load = [&](int64_t first, int64_t step, int64_t number) {
      Value at = function.add(function.mul(item, function.index(step)), function.index(first + number));
      return function.loadPointer(at);
    };
    // Emitters number pointers as if all operands were there: operands, totals of blocks, results.
    SmallVector<Value> pointers(columns.getNumOperands());
    for (auto [i, operand] : llvm::enumerate(taken))
      pointers[operand] = load(0, numReads, i);
    pointers.push_back(load(0, numReads, numReads - 1));
    for (int64_t i = 0; i < numWrites; ++i)
      pointers.push_back(load(numReads * count, numWrites, i));
    function.setPointers(pointers);
    RegionEvaluator evaluator(function);
    for (unsigned operand : taken)
      evaluator.bindArray(columns.getBlock()->getArgument(operand), pointers[operand]);
    KernelContext context{columns, function, evaluator};
    if (failed(emitGpuTotals(context, *domain)))
      return failure();
    info.sharedBytes = function.sharedBytes;
    return success();
  };
  OwningOpRef<ModuleOp> trial = ModuleOp::create(module->getLoc());
  addGpuModule(*trial);
  if (failed(emit(getGpuModule(*trial), "kernel")))
    return failure();
  auto [symbol, isNew] = getSymbol(nn::Emitter::batch, *trial);
  if (isNew)
    (void)emit(getGpuModule(*module), symbol);
  info.symbol = symbol;
  info.extent = info.grain = grid.blocks;
  info.threads = grid.threads;
  info.description = std::to_string(count) + " × " + one.description;
  return info;
}
