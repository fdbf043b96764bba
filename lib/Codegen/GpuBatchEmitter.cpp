//===- GpuBatchEmitter.cpp - one code for all kernels of a batch -*- C++ -*-===//
//
// Blocks are dealt out to the items one after the other. Where items have equally many, a block divides; else it looks
// its number up in the table of first blocks.
//
//===----------------------------------------------------------------------===//

#include "GpuBatch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

/// Threads of a block of a ragged batch, and vectors that a thread computes.
static constexpr int64_t kThreads = 256, kVectors = 4;

/// A table of numbers, one per item.
static Value createTable(KernelFunction &function, ArrayRef<int64_t> numbers) {
  auto type = RankedTensorType::get({static_cast<int64_t>(numbers.size())}, function.builder.getI64Type());
  return function.global(DenseElementsAttr::get(type, numbers));
}

static Value look(KernelFunction &function, Value table, Value item) {
  Value number = function.load(table, function.builder.getI64Type(), item);
  return arith::IndexCastOp::create(function.builder, function.loc, function.builder.getIndexType(), number);
}

void codegen::takePointers(const Batch &batch, KernelFunction &function, Value item) {
  SmallVector<Value> pointers;
  auto take = [&](auto get) {
    SmallVector<int64_t> numbers =
        llvm::map_to_vector(batch.items, [&](const Batch::Item &each) { return int64_t(get(each)); });
    // Mostly a straight line: the same pointer for all, or one after the other.
    const int64_t step = numbers.size() > 1 ? numbers[1] - numbers[0] : 0;
    bool isLine = true;
    for (auto [i, number] : llvm::enumerate(numbers))
      isLine &= number == numbers[0] + int64_t(i) * step;
    Value number = isLine ? function.add(function.index(numbers[0]), function.mul(item, function.index(step)))
                          : look(function, createTable(function, numbers), item);
    pointers.push_back(function.loadPointer(number));
  };
  for (unsigned i = 0; i < batch.first.getNumOperands(); ++i)
    take([&](const Batch::Item &each) { return each.operands[i]; });
  // Results come after the operands of all.
  for (unsigned i = 0; i < batch.first.getNumResults(); ++i)
    take([&](const Batch::Item &each) { return batch.numOperands + each.results[i]; });
  function.setPointers(pointers);
}

Value codegen::enterItem(KernelFunction &function, int64_t blocks) {
  auto parts = function.delinearize(function.block, {int64_t(1) << 20, blocks});
  function.block = parts[1];
  function.grid.blocks = blocks;
  return parts[0];
}

Grid codegen::getGpuRaggedGrid(const Batch &batch, SmallVectorImpl<int64_t> &firstBlocks) {
  const int64_t lanes = getFlatLanes(batch.first);
  int64_t blocks = 0;
  for (const Batch::Item &item : batch.items) {
    firstBlocks.push_back(blocks);
    blocks += std::max<int64_t>(1, llvm::divideCeil(item.count / lanes, kThreads * kVectors));
  }
  return {blocks, kThreads};
}

void codegen::emitGpuRagged(const Batch &batch, KernelFunction &function) {
  OpBuilder &b = function.builder;
  Location loc = function.loc;
  ScalarBuilder scalars(b, loc);
  SmallVector<int64_t> firstBlocks;
  (void)getGpuRaggedGrid(batch, firstBlocks);
  Value starts = createTable(function, firstBlocks);
  // The last item that starts at this block or before it.
  const int64_t count = batch.items.size();
  Value item = function.index(0);
  for (int64_t step = llvm::PowerOf2Ceil(count) / 2; step > 0; step /= 2) {
    Value next = function.add(item, function.index(step));
    Value start = look(function, starts, function.min(next, function.index(count - 1)));
    Value takes = scalars.logicalAnd(scalars.compare(Compare::LT, next, function.index(count)),
                                     scalars.compare(Compare::LE, start, function.block));
    item = arith::SelectOp::create(b, loc, takes, next, item);
  }
  const int64_t lanes = getFlatLanes(batch.first);
  SmallVector<int64_t> counts = llvm::map_to_vector(batch.items, [](const Batch::Item &each) { return each.count; });
  Value length = look(function, createTable(function, counts), item);
  Value own = scalars.sub(function.block, look(function, starts, item));
  takePointers(batch, function, item);

  RegionEvaluator evaluator(function);
  for (auto [i, argument] : llvm::enumerate(batch.first.getBlock()->getArguments()))
    evaluator.bindArray(argument, function.getPointer(i));
  evaluator.flat = true;
  KernelContext context{batch.first, function, evaluator};
  hoistScalars(context);
  Value vectors = scalars.div(length, function.index(lanes), /*isUnsigned=*/true);
  Value first = function.mul(own, function.index(kThreads * kVectors));
  Value last = function.min(function.add(first, function.index(kThreads * kVectors)), vectors);
  evaluator.loop(function.add(first, function.thread), last, kThreads, LoopKind::Parallel,
                 [&](Value vector) { emitFlatVector(context, function.mul(vector, function.index(lanes)), lanes); });
  if (llvm::all_of(counts, [&](int64_t each) { return each % lanes == 0; }))
    return;
  // What is left over after whole vectors is the first block's.
  Value isFirst = scalars.compare(Compare::EQ, own, function.index(0));
  Value end = arith::SelectOp::create(b, loc, isFirst, length, function.index(0));
  evaluator.loop(function.add(function.mul(vectors, function.index(lanes)), function.thread), end, kThreads,
                 LoopKind::Parallel, [&](Value position) { emitFlatVector(context, position, 1); });
}
