//===- ReductionOrder.cpp - the order in which reductions combine -*- C++ -*-===//
//
// Trailing: segments of about 256 elements, 16 lanes each, a tree, then one after the other. Leading: blocks of 64
// rows.
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

SmallVector<Value> ReductionSet::emitTrailing(Elements elements) {
  int64_t group = std::max<int64_t>(1, kSegment / innerCount), segment = std::min(innerCount, kSegment);
  SmallVector<Value> lanes = allocate(kLanes);
  Value zero = function.index(0), outerEnd = function.index(outerCount), innerEnd = function.index(innerCount);
  auto totals =
      evaluator.loop(zero, outerEnd, group, LoopKind::Sequential, initials(), [&](Value outer, ValueRange totals) {
        return evaluator.loop(zero, innerEnd, segment, LoopKind::Sequential, totals,
                              [&](Value inner, ValueRange totals) {
                                Value last = function.min(function.add(outer, function.index(group)), outerEnd);
                                return combine(totals, emitSegment(outer, last, inner, lanes, elements));
                              });
      });
  return finish(std::move(totals));
}

/// Lane l holds elements l, l + 16, … of the segment's lines; then lanes l and l + 8, l + 4, … are combined.
SmallVector<Value> ReductionSet::emitSegment(Value outer, Value outerEnd, Value inner, ValueRange lanes,
                                             Elements elements) {
  Value zero = function.index(0), count = function.index(kLanes);
  evaluator.loop(zero, count, 1, LoopKind::Lanes, [&](Value lane) { storeAll(lanes, lane, initials()); });
  Value innerEnd =
      function.min(function.add(inner, function.index(std::min(innerCount, kSegment))), function.index(innerCount));
  evaluator.loop(outer, outerEnd, 1, LoopKind::Sequential, [&](Value line) {
    auto accumulate = [&](Value lane, Value position) {
      SmallVector<Value> added = elements(line, position);
      storeAll(lanes, lane, combine(loadAll(lanes, lane), added));
    };
    Value length = scalars.sub(innerEnd, inner);
    Value whole = function.mul(scalars.div(length, count, /*isUnsigned=*/true), count);
    evaluator.loop(zero, whole, kLanes, LoopKind::Sequential, [&](Value offset) {
      Value start = function.add(inner, offset);
      evaluator.loop(zero, count, 1, LoopKind::Lanes, [&](Value lane) { accumulate(lane, function.add(start, lane)); });
    });
    evaluator.loop(whole, length, 1, LoopKind::Parallel,
                   [&](Value offset) { accumulate(scalars.sub(offset, whole), function.add(inner, offset)); });
  });
  SmallVector<SmallVector<Value>> values;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    values.push_back(loadAll(lanes, function.index(lane)));
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane)
      values[lane] = combine(values[lane], values[lane + half]);
  return values[0];
}

SmallVector<Value> ReductionSet::emitLeading(Elements elements) {
  Value zero = function.index(0), innerEnd = function.index(innerCount);
  auto totals = evaluator.loop(
      zero, function.index(outerCount), 1, LoopKind::Sequential, initials(), [&](Value outer, ValueRange totals) {
        return evaluator.loop(zero, innerEnd, kBlock, LoopKind::Sequential, totals,
                              [&](Value first, ValueRange totals) {
                                Value last = function.min(function.add(first, function.index(kBlock)), innerEnd);
                                auto block = evaluator.loop(first, last, 1, LoopKind::Sequential, initials(),
                                                            [&](Value inner, ValueRange accumulators) {
                                                              return combine(accumulators, elements(outer, inner));
                                                            });
                                return combine(totals, block);
                              });
      });
  return finish(std::move(totals));
}

SmallVector<Value> ReductionSet::emitLeadingTile(Value width, int64_t maxWidth, TileElements elements) {
  // Rows per pass over the block's accumulators: fewer loads and stores of them, the same order.
  constexpr int64_t kRows = 4;
  Value zero = function.index(0), innerEnd = function.index(innerCount);
  SmallVector<Value> totals = allocate(maxWidth), block = allocate(maxWidth);
  auto columns = [&](function_ref<void(Value)> body) { evaluator.loop(zero, width, 1, LoopKind::Parallel, body); };
  columns([&](Value column) { storeAll(totals, column, initials()); });
  evaluator.loop(zero, function.index(outerCount), 1, LoopKind::Sequential, [&](Value outer) {
    evaluator.loop(zero, innerEnd, kBlock, LoopKind::Sequential, [&](Value first) {
      columns([&](Value column) { storeAll(block, column, initials()); });
      Value last = function.min(function.add(first, function.index(kBlock)), innerEnd);
      Value length = scalars.sub(last, first), rows = function.index(kRows);
      Value whole = function.add(first, function.mul(scalars.div(length, rows, /*isUnsigned=*/true), rows));
      auto pass = [&](Value start, int64_t count) {
        columns([&](Value column) {
          SmallVector<Value> accumulators = loadAll(block, column);
          for (int64_t r = 0; r < count; ++r)
            accumulators = combine(accumulators, elements(outer, function.add(start, function.index(r)), column));
          storeAll(block, column, accumulators);
        });
      };
      evaluator.loop(first, whole, kRows, LoopKind::Sequential, [&](Value start) { pass(start, kRows); });
      evaluator.loop(whole, last, 1, LoopKind::Sequential, [&](Value start) { pass(start, 1); });
      columns(
          [&](Value column) { storeAll(totals, column, combine(loadAll(totals, column), loadAll(block, column))); });
    });
  });
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
