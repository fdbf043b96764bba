//===- StagedEmitter.cpp - kernels around reductions ------------*- C++ -*-===//
//
// Emitters "row" and "column": values over one shape, reductions over one set of its dimensions, elementwise ops
// before, between and after. All kept dimensions are independent: a task is one row (the last dimension is reduced) or
// a tile of neighbouring columns (it is kept). In a task:
//
//   1. for each level of reductions (a reduction of another's result is a level higher): one traversal of the reduced
//      dimensions that computes all reductions of the level;
//   2. one traversal that writes the results that have the full shape: the first, where they need no reduction and none
//      needs another one;
//   3. the results that have the kept shape.
//
// What is expensive and needed in several traversals is kept in a buffer.
//
//===----------------------------------------------------------------------===//

#include "StagedBody.h"
#include "StagedPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

namespace {
class StagedEmitter : public StagedBody {
public:
  StagedEmitter(KernelContext &context, const StagedDomain &domain)
      : StagedBody(context, domain), plan(context.kernel, domain) {}

  LogicalResult emit();

private:
  Value bufferPosition(Value outer, Value inner);
  SmallVector<Value> visit(unsigned traversal, ArrayRef<ReductionInterface> ops, Value outer, Value inner);
  void bindBuffers(unsigned traversal);
  void emitTask(Value task);
  void columnLoop(function_ref<void()> body);

  StagedPlan plan;
  DenseMap<Value, Value> bufferPointers;
  /// Of a tile: its kept element before the columns, its first column, its width, the current lane.
  Value outerKept, firstColumn, width, lane;
};
} // namespace

Value StagedEmitter::bufferPosition(Value outer, Value inner) {
  Value position = function.add(function.mul(outer, function.index(shape.innerCount)), inner);
  return shape.trailing ? position : function.add(function.mul(position, function.index(domain.tile)), lane);
}

/// One element of a traversal: fills buffers, returns the elements to reduce.
SmallVector<Value> StagedEmitter::visit(unsigned traversal, ArrayRef<ReductionInterface> ops, Value outer,
                                        Value inner) {
  for (auto &[value, buffer] : plan.buffers)
    if (buffer.traversal == traversal)
      function.store(bufferPointers[value], cast<RankedTensorType>(value.getType()).getElementType(),
                     bufferPosition(outer, inner), evaluator.element(value, fullIndex(value, outer, inner)));
  SmallVector<Value> elements = getElements(ops, outer, inner);
  if (traversal == plan.writer)
    storeResults(/*full=*/true, outer, inner);
  return elements;
}

void StagedEmitter::bindBuffers(unsigned traversal) {
  for (auto &[key, buffer] : plan.buffers) {
    if (buffer.traversal != traversal)
      continue;
    Value value = key, pointer = bufferPointers[key];
    evaluator.bind(value, [this, value, pointer](ValueRange index) {
      // The position is found again from the index: outer and inner reduced dimensions.
      SmallVector<Value> parts;
      auto type = cast<RankedTensorType>(value.getType());
      for (auto [i, extent] : llvm::zip_equal(index, type.getShape()))
        if (extent != 1)
          parts.push_back(i);
      SmallVector<Value> own, outer, inner;
      for (int64_t d : domain.kept)
        own.push_back(parts[d]);
      if (!evaluator.isSameIndex(own, kept))
        failed = true;
      auto linear = [&](ArrayRef<int64_t> dims) {
        return function.linearize(llvm::map_to_vector(dims, [&](int64_t d) { return parts[d]; }),
                                  llvm::map_to_vector(dims, [&](int64_t d) { return domain.extents[d]; }));
      };
      return function.load(pointer, type.getElementType(), bufferPosition(linear(shape.outer), linear(shape.inner)));
    });
  }
}

/// Runs `body` for each column of the tile, or once.
void StagedEmitter::columnLoop(function_ref<void()> body) {
  if (shape.trailing)
    return body();
  evaluator.loop(function.index(0), width, 1, LoopKind::Parallel, [&](Value column) {
    lane = column;
    setColumn(outerKept, firstColumn, column);
    body();
  });
}

void StagedEmitter::emitTask(Value task) {
  if (shape.trailing) {
    setKept(task, nullptr);
  } else {
    int64_t tiles = llvm::divideCeil(domain.columns, domain.tile);
    auto parts = function.delinearize(task, {int64_t(1) << 40, tiles});
    outerKept = parts[0];
    firstColumn = function.mul(parts[1], function.index(domain.tile));
    ScalarBuilder scalars(function.builder, function.loc);
    width = domain.columns % domain.tile == 0
                ? function.index(domain.tile)
                : function.min(function.index(domain.tile), scalars.sub(function.index(domain.columns), firstColumn));
  }
  for (auto [t, ops] : llvm::enumerate(plan.traversals)) {
    ReductionSet set(evaluator, ops, shape.outerCount, shape.innerCount);
    SmallVector<Value> values;
    if (shape.trailing)
      values = set.emitTrailing([&](Value outer, Value inner) { return visit(t, ops, outer, inner); });
    else
      values = set.emitLeadingTile(width, domain.tile, [&](Value outer, Value inner, Value column) {
        lane = column;
        setColumn(outerKept, firstColumn, column);
        return visit(t, ops, outer, inner);
      });
    for (auto [i, op] : llvm::enumerate(ops)) {
      if (shape.trailing)
        bindReduction(op, [value = values[i]] { return value; });
      else
        bindReduction(op, [this, set, array = values[i], i = i]() mutable { return set.loadTile(i, array, lane); });
    }
    bindBuffers(t);
  }
  if (hasResults(/*full=*/true) && plan.writer == plan.traversals.size()) {
    Value zero = function.index(0);
    LoopKind innermost = shape.trailing ? LoopKind::Parallel : LoopKind::Sequential;
    evaluator.loop(zero, function.index(shape.outerCount), 1, LoopKind::Sequential, [&](Value outer) {
      evaluator.loop(zero, function.index(shape.innerCount), 1, innermost,
                     [&](Value inner) { columnLoop([&] { storeResults(/*full=*/true, outer, inner); }); });
    });
  }
  if (hasResults(/*full=*/false))
    columnLoop([&] { storeResults(/*full=*/false, nullptr, nullptr); });
}

LogicalResult StagedEmitter::emit() {
  evaluator.looksUpPieces = shape.trailing;
  for (auto &[value, buffer] : plan.buffers) {
    Value &pointer = bufferPointers[value];
    if (plan.scratchBytes)
      pointer = LLVM::GEPOp::create(function.builder, function.loc, function.getScratch().getType(),
                                    function.builder.getI8Type(), function.getScratch(),
                                    ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(buffer.offset)});
    else
      pointer = function.local(cast<RankedTensorType>(value.getType()).getElementType(), buffer.elements);
  }
  evaluator.loop(function.begin, function.end, 1, LoopKind::Sequential, [&](Value task) { emitTask(task); });
  return success(!failed);
}

LogicalResult codegen::emitStaged(KernelContext &context, const StagedDomain &domain) {
  return StagedEmitter(context, domain).emit();
}
