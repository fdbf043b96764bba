//===- GpuSortEmitter.cpp - additions by the row they land in, sorted -*- C++ -*-===//
//
// Where many updates land in many rows, looking through all of them for each row costs more than to sort them once:
//
//   1. A thread per place counts the places that come before it: those of smaller rows, and earlier ones of its own
//   row.
//      That is where it stands. Rows of other places go through shared memory, 128 at a time.
//   2. A warp per row finds its first and last place by halving and adds what is there in ascending order.
//
// No atomics, and the order is the one in which a single thread would add.
//
//===----------------------------------------------------------------------===//

#include "GpuSearch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

/// Threads of a block that sorts; places from which on sorting is worth a kernel, and up to which counting is.
static constexpr int64_t kThreads = 128, kFewPlaces = 256, kManyPlaces = int64_t(1) << 16;

/// Bytes of one sorted array.
static uint64_t getArrayBytes(const SearchShape &shape) { return shape.count * 4; }

uint64_t codegen::getSortedBytes(ScatterInterface op) {
  SearchShape shape(op);
  const bool isWorth = shape.count >= kFewPlaces && shape.count <= kManyPlaces && shape.rows > kSearchWarps &&
                       shape.rows < (int64_t(1) << 30);
  return isWorth ? 2 * getArrayBytes(shape) : 0;
}

Grid codegen::getGpuSortGrid(ScatterInterface op) {
  return {static_cast<int64_t>(llvm::divideCeil(SearchShape(op).count, kThreads)), kThreads};
}

/// The array of places after that of rows.
static Value getPlaces(KernelFunction &function, const SearchShape &shape, Value rows) {
  return LLVM::GEPOp::create(function.builder, function.loc, rows.getType(), function.builder.getI8Type(), rows,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(getArrayBytes(shape))});
}

void SearchEmitter::emitSort() {
  OpBuilder &b = function.builder;
  Location loc = function.loc;
  Type word = b.getI32Type();
  Value end = function.index(shape.count), none = i32(static_cast<int32_t>(shape.rows));
  /// The row of a place: `rows` where nothing lands, one more where there is no place.
  auto getRow = [&](Value place) -> Value {
    Value at = shape.count % kThreads ? function.min(place, function.index(shape.count - 1)) : place;
    auto [targetRow, lands] = target(at);
    Value key = arith::SelectOp::create(b, loc, lands, toWord(targetRow), none);
    if (shape.count % kThreads == 0)
      return key;
    Value exists = scalars.compare(Compare::LT, place, end);
    return arith::SelectOp::create(b, loc, exists, key, i32(static_cast<int32_t>(shape.rows + 1)));
  };
  Value shared = function.shared(word, kThreads);
  Value own = function.add(function.mul(function.block, function.index(kThreads)), function.thread);
  Value key = getRow(own);
  auto count = evaluator.loop(
      function.index(0), end, kThreads, LoopKind::Sequential, ValueRange(i32(0)), [&](Value base, ValueRange before) {
        function.store(shared, word, function.thread, getRow(function.add(base, function.thread)));
        function.barrier();
        auto next = evaluator.loop(function.index(0), function.index(kThreads), 1, LoopKind::Sequential, before,
                                   [&](Value number, ValueRange running) -> SmallVector<Value> {
                                     Value other = function.load(shared, word, number);
                                     Value isEarlier = scalars.compare(Compare::LT, function.add(base, number), own);
                                     Value isSame =
                                         scalars.logicalAnd(scalars.compare(Compare::EQ, other, key), isEarlier);
                                     Value counts = scalars.logicalOr(scalars.compare(Compare::LT, other, key), isSame);
                                     return {scalars.add(running[0], arith::ExtUIOp::create(b, loc, word, counts))};
                                   });
        function.barrier(); // before the rows of the next places come
        return next;
      });
  Value rows = pointer, places = getPlaces(function, shape, rows);
  auto write = [&]() -> SmallVector<Value> {
    function.store(rows, word, toIndex(count[0]), key);
    function.store(places, word, toIndex(count[0]), toWord(own));
    return {};
  };
  if (shape.count % kThreads)
    when(scalars.compare(Compare::LT, own, end), {}, write);
  else
    write();
}

/// How many of the sorted rows are smaller than `key`.
Value SearchEmitter::lowerBound(Value keys, Value key) {
  OpBuilder &b = function.builder;
  Value found = function.index(0);
  for (int64_t step = llvm::PowerOf2Ceil(shape.count + 1) / 2; step > 0; step /= 2) {
    Value next = function.add(found, function.index(step));
    Value last = function.min(next, function.index(shape.count));
    Value before = function.load(keys, b.getI32Type(), scalars.sub(last, function.index(1)));
    Value takes = scalars.logicalAnd(scalars.compare(Compare::LE, next, function.index(shape.count)),
                                     scalars.compare(Compare::LT, before, key));
    found = arith::SelectOp::create(b, function.loc, takes, next, found);
  }
  return found;
}

void SearchEmitter::emitSorted() {
  Value rows = function.getPointer(function.getNumPointers() - 2), places = getPlaces(function, shape, rows);
  SmallVector<Value> sums = enterRow();
  Value key = toWord(row), first = lowerBound(rows, key), last = lowerBound(rows, scalars.add(key, i32(1)));
  sums = evaluator.loop(first, last, 1, LoopKind::Sequential, sums, [&](Value number, ValueRange running) {
    return addUpdate(toIndex(function.load(places, function.builder.getI32Type(), number)), running);
  });
  writeRow(sums);
}

void codegen::emitGpuSort(KernelContext &context, ScatterInterface op) { SearchEmitter(context, op).emitSort(); }
void codegen::emitGpuSorted(KernelContext &context, ScatterInterface op) { SearchEmitter(context, op).emitSorted(); }
