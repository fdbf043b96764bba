//===- GpuCrossEmitter.cpp - rows and sums over their columns, in one pass -===//
//
// Emitter "cross", for gradients of normalizations and of biases: what is computed row by row reads, or writes, the
// values that other kernels add up column by column.
//
//   1. A block has 64 rows, which its teams compute a few at a time, as "row" does. Between two such rounds its threads
//      add those rows, which the caches still have, to the sums of their columns, in order.
//   2. The sums are those of one block of the order "leading"; a second kernel adds them up, as after "column".
//
//===----------------------------------------------------------------------===//

#include "CrossKernel.h"
#include "GpuLowering.h"
#include "StagedBody.h"
#include "StagedPlan.h"
#include "lowtide/Codegen/KernelModule.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

/// Threads of a block; sums that one thread keeps at most (24 beside a row's own spill on sm_90a); rows from which on
/// there are blocks enough.
static constexpr int64_t kThreads = 256, kMaxSums = 16, kManyRows = 1024;
/// Operands at most of rows without sums, which are joined: an address in each waits in two registers while a row is
/// written (15 spill).
static constexpr unsigned kMaxOperands = 12;
/// From so many sums on, the loops of a row are written out so many times at most: what is read ahead takes registers
/// too (12 sums beside 16 rounds spill on sm_80).
static constexpr int64_t kManySums = 10, kFewRounds = 4;

namespace {

/// Sums over the columns of a block's rows. A thread has every 256th column.
class ColumnSums : public StagedBody {
public:
  ColumnSums(KernelContext &context, const CrossKernel &cross)
      : StagedBody(context, cross.columnDomain), plan(context.kernel, domain),
        set(evaluator, plan.traversals.front(), 1, cross.numRows), numColumns(cross.numColumns) {
    for (int64_t first = 0; first < numColumns; first += kThreads)
      wanted.push_back(function.add(function.thread, function.index(first)));
  }

  SmallVector<Value> begin() {
    SmallVector<Value> sums;
    for (size_t i = 0; i < wanted.size(); ++i)
      llvm::append_range(sums, set.initials());
    return sums;
  }
  /// `sums` with rows [first, end).
  SmallVector<Value> add(Value first, Value end, ValueRange sums) {
    ArrayRef<ReductionInterface> ops = plan.traversals.front();
    return evaluator.loop(first, end, 1, LoopKind::Sequential, sums, [&](Value row, ValueRange running) {
      SmallVector<Value> next;
      for (auto [i, column] : llvm::enumerate(wanted)) {
        setKept(function.index(0),
                numColumns % kThreads ? function.min(column, function.index(numColumns - 1)) : column);
        llvm::append_range(
            next, set.combine(running.slice(i * ops.size(), ops.size()), getElements(ops, function.index(0), row)));
      }
      return next;
    });
  }
  /// Writes the sums of block `block` to `pointer`.
  void store(Value pointer, Value block, ValueRange sums) {
    const size_t numOps = plan.traversals.front().size();
    const int64_t numBlocks = ReductionSet::countBlocks(1, shape.innerCount);
    SmallVector<Value> arrays = set.getArrays(pointer, numBlocks * numColumns);
    Value start = function.mul(block, function.index(numColumns));
    ScalarBuilder scalars(function.builder, function.loc);
    for (auto [i, column] : llvm::enumerate(wanted)) {
      auto write = [&, i = i, column = column] {
        set.storeAll(arrays, function.add(start, column), sums.slice(i * numOps, numOps));
      };
      if (int64_t(i + 1) * kThreads <= numColumns) {
        write();
        continue;
      }
      Value exists = scalars.compare(Compare::LT, column, function.index(numColumns));
      scf::IfOp::create(function.builder, function.loc, exists, [&](OpBuilder &builder, Location loc) {
        write();
        scf::YieldOp::create(builder, loc);
      });
    }
  }
  uint64_t getBytes() const { return set.getArrayBytes(ReductionSet::countBlocks(1, shape.innerCount) * numColumns); }
  bool hasFailed() const { return failed; }

private:
  StagedPlan plan;
  ReductionSet set;
  int64_t numColumns;
  SmallVector<Value> wanted;
};

} // namespace

static Grid getGrid(const CrossKernel &cross) {
  return {static_cast<int64_t>(llvm::divideCeil(cross.numRows, kBlock)), kThreads};
}

/// Writes the first kernel into `function`, whose pointers are the operands, the results of the rows, then the sums.
static LogicalResult emitCross(const CrossKernel &cross, KernelFunction &function, unsigned numOperands,
                               uint64_t &bytes) {
  SmallVector<Value> all;
  for (unsigned i = 0; i < function.getNumPointers(); ++i)
    all.push_back(function.getPointer(i));
  SmallVector<Value> rowPointers, columnPointers;
  for (unsigned operand : cross.rowOperands)
    rowPointers.push_back(all[operand]);
  for (unsigned operand : cross.columnOperands)
    columnPointers.push_back(all[operand]);
  for (auto [i, result] : llvm::enumerate(cross.rowResults)) {
    rowPointers.push_back(all[numOperands + i]);
    (void)result;
  }
  for (unsigned result : cross.handedOn)
    columnPointers.push_back(all[numOperands + (llvm::find(cross.rowResults, result) - cross.rowResults.begin())]);

  RegionEvaluator evaluator(function);
  auto bind = [&](nn::KernelOp part, ArrayRef<Value> pointers) {
    for (auto [i, argument] : llvm::enumerate(part.getBlock()->getArguments()))
      if (pointers[i])
        evaluator.bindArray(argument, pointers[i]);
  };
  bind(cross.rows, rowPointers);
  bind(cross.columns, columnPointers);
  KernelContext rowContext{cross.rows, function, evaluator}, columnContext{cross.columns, function, evaluator};
  ColumnSums columns(columnContext, cross);
  bytes = columns.getBytes();
  const int64_t wanted = getGpuTeamSize(cross.rowDomain), team = wanted > 32 ? kThreads : wanted;
  TeamPlace place = enterTeams(function, team);
  const int64_t round = kThreads / team;
  const bool mayBeNone = cross.numRows % kBlock != 0;
  Value firstRow = function.mul(function.block, function.index(kBlock));
  if (cross.countSums(kThreads) >= kManySums)
    function.maxRounds = kFewRounds;
  LogicalResult rowsDone = success();
  SmallVector<Value> sums =
      evaluator.loop(function.index(0), function.index(kBlock), round, LoopKind::Sequential, columns.begin(),
                     [&](Value offset, ValueRange running) {
                       Value base = function.add(firstRow, offset), end = function.add(base, function.index(round));
                       if (mayBeNone)
                         end = function.min(end, function.index(cross.numRows));
                       auto computeRows = [&] {
                         function.setPointers(rowPointers);
                         rowsDone = emitGpuRowsAt(rowContext, cross.rowDomain, place, base, mayBeNone);
                         function.setPointers(all);
                       };
                       SmallVector<Value> next;
                       if (cross.handedOn.empty()) {
                         // Rows may overwrite what the columns read.
                         next = columns.add(base, end, running);
                         function.barrier();
                         computeRows();
                       } else {
                         computeRows();
                         function.barrier();
                         next = columns.add(base, end, running);
                       }
                       return next;
                     });
  columns.store(all.back(), function.block, sums);
  return success(succeeded(rowsDone) && !columns.hasFailed());
}

FailureOr<KernelInfo> KernelModule::addGpuCross(nn::KernelOp kernel) {
  FailureOr<CrossKernel> cross = CrossKernel::get(kernel);
  if (failed(cross) || cross->numRows < kManyRows || getGpuTeamSize(cross->rowDomain) > kThreads)
    return failure();
  const unsigned numOperands = kernel.getNumOperands(), numRowResults = cross->rowResults.size();
  const bool isPlain = cross->rows.getEmitter() == nn::Emitter::loop;
  if (cross->countSums(kThreads) > kMaxSums || (isPlain && cross->rowOperands.size() > kMaxOperands))
    return failure();

  // The second kernel, whose operands get the numbers that they have in the whole.
  FailureOr<KernelInfo> totals = addGpuTotals(cross->columns);
  if (failed(totals))
    return failure();
  for (unsigned &operand : *totals->reads) {
    if (operand >= cross->columnOperands.size())
      return failure();
    operand = cross->columnOperands[operand];
  }
  KernelInfo info = *totals, first;
  info.description = describe(kernel);
  info.writes = cross->columnResults;
  info.inPlace.assign(kernel.getNumResults(), {});
  for (auto [i, operands] : llvm::enumerate(totals->inPlace))
    for (int operand : operands)
      if (unsigned(operand) < cross->columnOperands.size())
        info.inPlace[cross->columnResults[i]].push_back(int(cross->columnOperands[operand]));

  // A row may overwrite what only it reads, and what columns have read before.
  for (auto [i, operands] : llvm::enumerate(findInPlace(cross->rows, cross->rows.getEmitter() == nn::Emitter::row)))
    for (int operand : operands) {
      const unsigned number = cross->rowOperands[operand];
      const bool isReadLater = llvm::is_contained(*info.reads, number) ||
                               (!cross->handedOn.empty() && llvm::is_contained(cross->columnOperands, number));
      if (!isReadLater)
        info.inPlace[cross->rowResults[i]].push_back(int(number));
    }

  Grid grid = getGrid(*cross);
  auto emit = [&](gpu::GPUModuleOp target, StringRef name) -> LogicalResult {
    SmallVector<bool> mayAlias, isTaken;
    for (unsigned i = 0; i < numOperands; ++i) {
      isTaken.push_back(!first.reads || llvm::is_contained(*first.reads, i));
      if (isTaken.back())
        mayAlias.push_back(llvm::any_of(
            cross->rowResults, [&](unsigned result) { return llvm::is_contained(info.inPlace[result], int(i)); }));
    }
    for (unsigned result : cross->rowResults)
      mayAlias.push_back(!info.inPlace[result].empty());
    mayAlias.push_back(false);
    KernelFunction function(target, name, mayAlias, /*hasScratch=*/false, grid);
    SmallVector<Value> pointers;
    unsigned next = 0;
    for (bool isOne : isTaken)
      pointers.push_back(isOne ? function.getPointer(next++) : Value());
    for (unsigned i = 0; i <= numRowResults; ++i)
      pointers.push_back(function.getPointer(next++));
    function.setPointers(pointers);
    if (needsWideIndex(kernel))
      function.function->setAttr(kWideIndexAttrName, UnitAttr::get(kernel.getContext()));
    if (failed(emitCross(*cross, function, numOperands, info.partialBytes)))
      return failure();
    if (!first.reads)
      first.reads = findReads(function, numOperands);
    first.sharedBytes = function.sharedBytes;
    return success();
  };
  OwningOpRef<ModuleOp> trial;
  for (int i = 0; i < 2; ++i) {
    trial = ModuleOp::create(module->getLoc());
    addGpuModule(*trial);
    if (failed(emit(getGpuModule(*trial), "kernel")))
      return failure();
  }
  auto [symbol, isNew] = getSymbol(kernel.getEmitter(), *trial);
  if (isNew)
    (void)emit(getGpuModule(*module), symbol);
  first.symbol = symbol;
  first.description = info.description;
  first.writes = cross->rowResults;
  first.extent = first.grain = grid.blocks;
  first.threads = grid.threads;
  info.partial = std::make_shared<KernelInfo>(std::move(first));
  return info;
}
