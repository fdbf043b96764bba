//===- ReductionOrder.cpp - the order in which reductions combine -*- C++
//-*-===//
//
// Trailing: segments of about 256 elements, 16 lanes each, a tree, then one
// after the other. Leading: blocks of 64 rows.
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

ReductionShape ReductionShape::get(ReductionInterface op) {
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  ReductionShape shape;
  ArrayRef<int64_t> reduced = op.getReducedDims();
  bool inRun = true, seen = false;
  for (int64_t d = type.getRank() - 1; d >= 0; --d) {
    int64_t extent = type.getDimSize(d);
    if (extent == 1)
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
      shape.innerCount *= extent;
    } else {
      shape.outer.insert(shape.outer.begin(), d);
      shape.outerCount *= extent;
    }
  }
  if (!seen)
    shape.trailing = true;
  return shape;
}

namespace {
/// Emits one reduction at one index.
class Reducer {
public:
  Reducer(RegionEvaluator &evaluator, ReductionInterface op, ValueRange index)
      : evaluator(evaluator), function(evaluator.function), op(op),
        shape(ReductionShape::get(op)), scalars(function.builder, function.loc),
        operandType(cast<RankedTensorType>(op->getOperand(0).getType())),
        resultType(scalarType(cast<RankedTensorType>(op->getResult(0).getType())
                                  .getElementType())),
        type(accumulatorType(resultType)) {
    unsigned next = 0;
    for (int64_t d = 0; d < operandType.getRank(); ++d)
      base.push_back(llvm::is_contained(op.getReducedDims(), d)
                         ? function.index(0)
                         : index[next++]);
  }

  Value emit() {
    Value total = scalars.cast(shape.trailing ? emitTrailing() : emitLeading(),
                               resultType);
    return total;
  }

private:
  Value initial() { return op.emitInitial(scalars, type); }
  Value combine(Value accumulator, Value element) {
    return op.emitCombine(scalars, accumulator, scalars.cast(element, type));
  }
  /// Operand element at linear positions in the outer and inner reduced
  /// dimensions.
  Value element(Value outer, Value inner) {
    SmallVector<Value> index(base);
    auto place = [&](Value linear, ArrayRef<int64_t> dims) {
      SmallVector<int64_t> extents;
      for (int64_t d : dims)
        extents.push_back(operandType.getDimSize(d));
      for (auto [d, i] :
           llvm::zip_equal(dims, function.delinearize(linear, extents)))
        index[d] = i;
    };
    place(outer, shape.outer);
    place(inner, shape.inner);
    return evaluator.element(op->getOperand(0), index);
  }
  Value sequence(Value lower, Value upper, int64_t step, Value start,
                 function_ref<Value(Value, Value)> body) {
    return evaluator.loop(lower, upper, step, LoopKind::Sequential, start,
                          [&](Value i, ValueRange accumulators) {
                            return SmallVector<Value>{body(i, accumulators[0])};
                          })[0];
  }

  Value emitTrailing() {
    int64_t group =
        std::max<int64_t>(1, kSegment / std::max<int64_t>(shape.innerCount, 1));
    int64_t segment = std::min(shape.innerCount, kSegment);
    lanes = function.local(type, kLanes);
    Value zero = function.index(0),
          outerCount = function.index(shape.outerCount);
    return sequence(
        zero, outerCount, group, initial(), [&](Value outer, Value total) {
          return sequence(
              zero, function.index(shape.innerCount), segment, total,
              [&](Value inner, Value total) {
                Value last = function.min(
                    function.add(outer, function.index(group)), outerCount);
                return op.emitCombine(scalars, total,
                                      emitSegment(outer, last, inner));
              });
        });
  }

  /// Lane l holds elements l, l + 16, … of the segment's lines; then lanes l
  /// and l + 8, l + 4, … are combined.
  Value emitSegment(Value outer, Value outerEnd, Value inner) {
    Value zero = function.index(0), count = function.index(kLanes);
    evaluator.loop(zero, count, 1, LoopKind::Lanes, [&](Value lane) {
      function.store(lanes, type, lane, initial());
    });
    Value innerEnd = function.min(
        function.add(inner,
                     function.index(std::min(shape.innerCount, kSegment))),
        function.index(shape.innerCount));
    evaluator.loop(outer, outerEnd, 1, LoopKind::Sequential, [&](Value line) {
      auto accumulate = [&](Value lane, Value position) {
        Value old = function.load(lanes, type, lane);
        function.store(lanes, type, lane,
                       combine(old, element(line, position)));
      };
      Value length = scalars.sub(innerEnd, inner);
      Value whole =
          function.mul(scalars.div(length, count, /*isUnsigned=*/true), count);
      evaluator.loop(
          zero, whole, kLanes, LoopKind::Sequential, [&](Value offset) {
            Value start = function.add(inner, offset);
            evaluator.loop(zero, count, 1, LoopKind::Lanes, [&](Value lane) {
              accumulate(lane, function.add(start, lane));
            });
          });
      evaluator.loop(whole, length, 1, LoopKind::Parallel, [&](Value offset) {
        accumulate(scalars.sub(offset, whole), function.add(inner, offset));
      });
    });
    SmallVector<Value> values;
    for (int64_t lane = 0; lane < kLanes; ++lane)
      values.push_back(function.load(lanes, type, function.index(lane)));
    for (int64_t half = kLanes / 2; half > 0; half /= 2)
      for (int64_t lane = 0; lane < half; ++lane)
        values[lane] =
            op.emitCombine(scalars, values[lane], values[lane + half]);
    return values[0];
  }

  Value emitLeading() {
    Value zero = function.index(0),
          innerCount = function.index(shape.innerCount);
    return sequence(
        zero, function.index(shape.outerCount), 1, initial(),
        [&](Value outer, Value total) {
          return sequence(
              zero, innerCount, kBlock, total, [&](Value first, Value total) {
                Value last = function.min(
                    function.add(first, function.index(kBlock)), innerCount);
                Value block = sequence(first, last, 1, initial(),
                                       [&](Value inner, Value accumulator) {
                                         return combine(accumulator,
                                                        element(outer, inner));
                                       });
                return op.emitCombine(scalars, total, block);
              });
        });
  }

  RegionEvaluator &evaluator;
  KernelFunction &function;
  ReductionInterface op;
  ReductionShape shape;
  ScalarBuilder scalars;
  RankedTensorType operandType;
  Type resultType, type;
  SmallVector<Value> base;
  Value lanes;
};
} // namespace

Value codegen::emitReduction(RegionEvaluator &evaluator, ReductionInterface op,
                             ValueRange index) {
  return Reducer(evaluator, op, index).emit();
}
