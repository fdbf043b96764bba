//===- ReductionOrder.cpp - the order in which reductions combine -*- C++ -*-===//
//
// Trailing: segments of about 256 elements, 16 lanes each, a tree. Leading: blocks of 64 rows. Their totals: runs of
// 64, each one after the other, then the runs.
//
//===----------------------------------------------------------------------===//

#include "ReductionOrder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

Type codegen::accumulatorType(Type elementType) {
  Type type = scalarType(elementType);
  if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(type.getContext());
  return type;
}

ReductionShape ReductionShape::get(ArrayRef<int64_t> extents, ArrayRef<int64_t> reduced) {
  ReductionShape shape;
  bool inRun = true, seen = false;
  for (int64_t d = static_cast<int64_t>(extents.size()) - 1; d >= 0; --d) {
    if (extents[d] == 1)
      continue;
    if (!llvm::is_contained(reduced, d)) {
      if (seen)
        inRun = false;
      else
        shape.trailing = false;
      continue;
    }
    seen = true;
    if (inRun) {
      shape.inner.insert(shape.inner.begin(), d);
      shape.innerCount *= extents[d];
    } else {
      shape.outer.insert(shape.outer.begin(), d);
      shape.outerCount *= extents[d];
    }
  }
  if (!seen)
    shape.trailing = true;
  return shape;
}

ReductionSet::ReductionSet(RegionEvaluator &evaluator, ArrayRef<ReductionInterface> ops, int64_t outerCount,
                           int64_t innerCount)
    : evaluator(evaluator), function(evaluator.function), ops(ops), outerCount(outerCount), innerCount(innerCount),
      scalars(function.builder, function.loc) {
  for (ReductionInterface op : ops) {
    resultTypes.push_back(scalarType(cast<RankedTensorType>(op->getResult(0).getType()).getElementType()));
    types.push_back(accumulatorType(resultTypes.back()));
  }
}

SmallVector<Value> ReductionSet::initials() {
  SmallVector<Value> values;
  for (auto [op, type] : llvm::zip_equal(ops, types))
    values.push_back(op.emitInitial(scalars, type));
  return values;
}

SmallVector<Value> ReductionSet::combine(ValueRange accumulators, ValueRange elements) {
  SmallVector<Value> values;
  for (auto [op, type, accumulator, element] : llvm::zip_equal(ops, types, accumulators, elements))
    values.push_back(op.emitCombine(scalars, accumulator, scalars.cast(element, type)));
  return values;
}

SmallVector<Value> ReductionSet::finish(SmallVector<Value> totals) {
  for (auto [total, type] : llvm::zip_equal(totals, resultTypes))
    total = scalars.cast(total, type);
  return totals;
}

SmallVector<Value> ReductionSet::allocate(int64_t count) {
  return llvm::map_to_vector(types, [&](Type type) { return function.local(type, count); });
}

SmallVector<Value> ReductionSet::loadAll(ValueRange arrays, Value offset) {
  SmallVector<Value> values;
  for (auto [array, type] : llvm::zip_equal(arrays, types))
    values.push_back(function.load(array, type, offset));
  return values;
}

void ReductionSet::storeAll(ValueRange arrays, Value offset, ValueRange values) {
  for (auto [array, type, value] : llvm::zip_equal(arrays, types, values))
    function.store(array, type, offset, value);
}

int64_t ReductionSet::countSegments(int64_t outerCount, int64_t innerCount) {
  if (innerCount >= kSegment)
    return outerCount * llvm::divideCeil(innerCount, kSegment);
  return llvm::divideCeil(outerCount, std::max<int64_t>(1, kSegment / innerCount));
}

int64_t ReductionSet::countBlocks(int64_t outerCount, int64_t innerCount) {
  return outerCount * llvm::divideCeil(innerCount, kBlock);
}

/// Parts of one of the runs that more than `base` parts are made of: `base`, or that many runs, or runs of runs, …
static int64_t getSpan(int64_t count, int64_t base) {
  int64_t span = base;
  while (span * kRun < count)
    span *= kRun;
  return span;
}

SmallVector<Value> ReductionSet::combineRuns(int64_t count, int64_t width, AddRound add) {
  // Rounds of several runs make up a run of runs.
  const int64_t base = width > kRun ? kRun * kRun : kRun;
  auto emit = [&](auto &&self, Value start, int64_t most) -> SmallVector<Value> {
    Value length = function.index(most);
    if (count % most)
      length = function.min(length, scalars.sub(function.index(count), start));
    const int64_t step = most <= base ? width : getSpan(most, base);
    return evaluator.loop(function.index(0), length, step, LoopKind::Sequential, initials(),
                          [&](Value at, ValueRange running) -> SmallVector<Value> {
                            Value first = function.add(start, at);
                            return most <= base ? add(first, running) : combine(running, self(self, first, step));
                          });
  };
  return emit(emit, function.index(0), count);
}

ReductionSet::Segment ReductionSet::getSegment(Value segment) {
  Value length = function.index(std::min(innerCount, kSegment));
  if (!isOfOneLine()) {
    Value lines = function.index(std::max<int64_t>(1, kSegment / innerCount)), line = function.mul(segment, lines);
    return {line, function.min(function.add(line, lines), function.index(outerCount)), function.index(0), length};
  }
  auto parts =
      function.delinearize(segment, {outerCount, static_cast<int64_t>(llvm::divideCeil(innerCount, kSegment))});
  Value inner = function.mul(parts[1], length);
  if (innerCount % kSegment)
    length = function.min(length, scalars.sub(function.index(innerCount), inner));
  return {parts[0], function.add(parts[0], function.index(1)), inner, length};
}

SmallVector<Value> ReductionSet::emitTrailing(Elements elements) {
  SmallVector<Value> lanes = allocate(kLanes);
  return finish(combineRuns(countSegments(outerCount, innerCount), 1, [&](Value segment, ValueRange running) {
    return combine(running, emitSegment(getSegment(segment), lanes, elements));
  }));
}

/// Lane l holds elements l, l + 16, … of the segment's lines; then lanes l and l + 8, l + 4, … are combined.
SmallVector<Value> ReductionSet::emitSegment(const Segment &segment, ValueRange lanes, Elements elements) {
  Value zero = function.index(0), count = function.index(kLanes);
  evaluator.loop(zero, count, 1, LoopKind::Lanes, [&](Value lane) { storeAll(lanes, lane, initials()); });
  Value whole = function.mul(scalars.div(segment.length, count, /*isUnsigned=*/true), count);
  auto accumulateLine = [&](Value line) {
    auto accumulate = [&](Value lane, Value position) {
      SmallVector<Value> added = elements(line, position);
      storeAll(lanes, lane, combine(loadAll(lanes, lane), added));
    };
    evaluator.loop(zero, whole, kLanes, LoopKind::Sequential, [&](Value offset) {
      Value start = function.add(segment.inner, offset);
      evaluator.loop(zero, count, 1, LoopKind::Lanes, [&](Value lane) { accumulate(lane, function.add(start, lane)); });
    });
    evaluator.loop(whole, segment.length, 1, LoopKind::Parallel,
                   [&](Value offset) { accumulate(scalars.sub(offset, whole), function.add(segment.inner, offset)); });
  };
  if (isOfOneLine())
    accumulateLine(segment.line);
  else
    evaluator.loop(segment.line, segment.lineEnd, 1, LoopKind::Sequential, accumulateLine);
  SmallVector<SmallVector<Value>> values;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    values.push_back(loadAll(lanes, function.index(lane)));
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane)
      values[lane] = combine(values[lane], values[lane + half]);
  return values[0];
}

ReductionSet::Rows ReductionSet::getRows(Value block) {
  auto parts = function.delinearize(block, {outerCount, static_cast<int64_t>(llvm::divideCeil(innerCount, kBlock))});
  Value first = function.mul(parts[1], function.index(kBlock)), length = function.index(std::min(kBlock, innerCount));
  if (innerCount % kBlock)
    length = function.min(length, scalars.sub(function.index(innerCount), first));
  return {parts[0], first, length};
}

SmallVector<Value> ReductionSet::emitBlock(Value block, bool mayBeNone, Elements elements) {
  auto [outer, first, length] = getRows(block);
  if (mayBeNone) {
    Value exists = scalars.compare(Compare::LT, block, function.index(countBlocks(outerCount, innerCount)));
    length = arith::SelectOp::create(function.builder, function.loc, exists, length, function.index(0));
  }
  return evaluator.loop(function.index(0), length, 1, LoopKind::Sequential, initials(),
                        [&](Value row, ValueRange accumulators) {
                          return combine(accumulators, elements(outer, function.add(first, row)));
                        });
}

SmallVector<Value> ReductionSet::emitLeading(Elements elements) {
  return finish(combineRuns(countBlocks(outerCount, innerCount), 1, [&](Value block, ValueRange running) {
    return combine(running, emitBlock(block, /*mayBeNone=*/false, elements));
  }));
}

SmallVector<Value> ReductionSet::emitLeadingTile(Value width, int64_t maxWidth, TileElements elements) {
  // Rows per pass over the block's accumulators: fewer loads and stores of them, the same order.
  constexpr int64_t kRows = 4;
  const int64_t numBlocks = countBlocks(outerCount, innerCount);
  Value zero = function.index(0);
  SmallVector<Value> totals = allocate(maxWidth), block = allocate(maxWidth);
  auto columns = [&](function_ref<void(Value)> body) { evaluator.loop(zero, width, 1, LoopKind::Parallel, body); };
  auto start = [&](ValueRange arrays) { columns([&](Value column) { storeAll(arrays, column, initials()); }); };
  auto add = [&](ValueRange to, ValueRange from) {
    columns([&](Value column) { storeAll(to, column, combine(loadAll(to, column), loadAll(from, column))); });
  };
  auto addBlock = [&](ValueRange to, Value number) {
    start(block);
    Rows of = getRows(number);
    Value rows = function.index(kRows);
    Value whole = function.mul(scalars.div(of.length, rows, /*isUnsigned=*/true), rows);
    auto pass = [&](Value at, int64_t count) {
      Value row = function.add(of.first, at);
      columns([&](Value column) {
        SmallVector<Value> accumulators = loadAll(block, column);
        for (int64_t r = 0; r < count; ++r)
          accumulators = combine(accumulators, elements(of.outer, function.add(row, function.index(r)), column));
        storeAll(block, column, accumulators);
      });
    };
    evaluator.loop(zero, whole, kRows, LoopKind::Sequential, [&](Value at) { pass(at, kRows); });
    evaluator.loop(whole, of.length, 1, LoopKind::Sequential, [&](Value at) { pass(at, 1); });
    add(to, block);
  };
  auto addRun = [&](auto &&self, ValueRange to, Value first, int64_t most) -> void {
    Value end = function.add(first, function.index(most));
    if (numBlocks % most)
      end = function.min(end, function.index(numBlocks));
    if (most <= kRun)
      return evaluator.loop(first, end, 1, LoopKind::Sequential, [&](Value number) { addBlock(to, number); });
    SmallVector<Value> run = allocate(maxWidth);
    const int64_t span = getSpan(most, kRun);
    evaluator.loop(first, end, span, LoopKind::Sequential, [&](Value at) {
      start(run);
      self(self, run, at, span);
      add(to, run);
    });
  };
  start(totals);
  addRun(addRun, totals, zero, numBlocks);
  return totals;
}

Value ReductionSet::loadTile(unsigned op, Value array, Value column) {
  return scalars.cast(function.load(array, types[op], column), resultTypes[op]);
}

Value codegen::emitReduction(RegionEvaluator &evaluator, ReductionInterface op, ValueRange index) {
  KernelFunction &function = evaluator.function;
  ArrayRef<int64_t> extents = cast<RankedTensorType>(op->getOperand(0).getType()).getShape();
  ReductionShape shape = ReductionShape::get(extents, op.getReducedDims());
  SmallVector<Value> base;
  for (unsigned d = 0, next = 0; d < extents.size(); ++d)
    base.push_back(llvm::is_contained(op.getReducedDims(), d) ? function.index(0) : index[next++]);
  auto element = [&](Value outer, Value inner) {
    SmallVector<Value> full(base);
    auto place = [&](Value linear, ArrayRef<int64_t> dims) {
      auto at = function.delinearize(linear, llvm::map_to_vector(dims, [&](int64_t d) { return extents[d]; }));
      for (auto [d, i] : llvm::zip_equal(dims, at))
        full[d] = i;
    };
    place(outer, shape.outer);
    place(inner, shape.inner);
    return SmallVector<Value>{evaluator.element(op->getOperand(0), full)};
  };
  ReductionSet set(evaluator, op, shape.outerCount, shape.innerCount);
  if (!shape.trailing)
    return set.emitLeading(element)[0];
  return (function.isGpu() ? set.emitTrailingAlone(element) : set.emitTrailing(element))[0];
}
