//===- StagedEmitter.cpp - kernels around reductions ------------*- C++ -*-===//
//
// Emitters "row" and "column": values over one shape, reductions over one set of its dimensions, elementwise ops
// before, between and behind. All kept dimensions are independent: a task is one row (the last dimension is reduced) or
// a tile of neighbouring columns (it is kept). In a task:
//
//   1. for each level of reductions (a reduction of another's result is a level higher): one traversal of the reduced
//      dimensions that computes all reductions of the level;
//   2. one traversal that writes the results that have the full shape;
//   3. the results that have the kept shape.
//
// What is dear and needed in several traversals is kept in a buffer.
//
//===----------------------------------------------------------------------===//

#include "Emitters.h"
#include "StagedPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

namespace {
class StagedEmitter {
public:
  StagedEmitter(KernelContext &context, const StagedDomain &domain)
      : context(context), function(context.function), evaluator(context.evaluator), domain(domain),
        shape(domain.getShape()), plan(context.kernel, domain) {}

  LogicalResult emit();

private:
  bool isFull(Value value) { return dropUnitExtents(value) == domain.extents; }
  SmallVector<Value> expand(Value tensor, ArrayRef<Value> parts);
  SmallVector<Value> fullIndex(Value tensor, Value outer, Value inner);
  SmallVector<Value> keptIndex(Value tensor) { return expand(tensor, kept); }
  void setKept(Value outerKept, Value column);
  Value bufferPosition(Value outer, Value inner);
  SmallVector<Value> visit(unsigned traversal, ArrayRef<ReductionInterface> ops, Value outer, Value inner);
  void bindReduction(ReductionInterface op, std::function<Value()> load);
  void bindBuffers(unsigned traversal);
  void emitTask(Value task);
  void storeResults(bool full, Value outer, Value inner);
  void columnLoop(function_ref<void()> body);

  KernelContext &context;
  KernelFunction &function;
  RegionEvaluator &evaluator;
  const StagedDomain &domain;
  ReductionShape shape;
  StagedPlan plan;
  DenseMap<Value, Value> bufferPointers;
  bool failed = false;

  /// Index of the current kept element, by kept dimension; of a tile: its first column, its width, the current lane.
  SmallVector<Value> kept;
  Value outerKept, firstColumn, width, lane;
};
} // namespace

/// The index of a value, given one index per dimension of extent > 1.
SmallVector<Value> StagedEmitter::expand(Value tensor, ArrayRef<Value> parts) {
  SmallVector<Value> index;
  size_t next = 0;
  for (int64_t extent : cast<RankedTensorType>(tensor.getType()).getShape())
    index.push_back(extent == 1 ? function.index(0) : parts[next++]);
  return index;
}

SmallVector<Value> StagedEmitter::fullIndex(Value tensor, Value outer, Value inner) {
  SmallVector<Value> parts(domain.extents.size());
  for (auto [d, i] : llvm::zip_equal(domain.kept, kept))
    parts[d] = i;
  auto place = [&](Value linear, ArrayRef<int64_t> dims) {
    auto at = function.delinearize(linear, llvm::map_to_vector(dims, [&](int64_t d) { return domain.extents[d]; }));
    for (auto [d, i] : llvm::zip_equal(dims, at))
      parts[d] = i;
  };
  place(outer, shape.outer);
  place(inner, shape.inner);
  return expand(tensor, parts);
}

void StagedEmitter::setKept(Value outerKept, Value column) {
  size_t numColumns = 0;
  if (!shape.trailing)
    numColumns = llvm::count_if(domain.kept, [&](int64_t d) { return d > domain.reduced.back(); });
  ArrayRef<int64_t> extents(domain.keptExtents);
  kept = function.delinearize(outerKept, extents.drop_back(numColumns));
  if (column)
    llvm::append_range(kept, function.delinearize(column, extents.take_back(numColumns)));
}

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
  SmallVector<Value> elements;
  for (ReductionInterface op : ops)
    elements.push_back(evaluator.element(op->getOperand(0), fullIndex(op->getOperand(0), outer, inner)));
  return elements;
}

void StagedEmitter::bindReduction(ReductionInterface op, std::function<Value()> load) {
  Value result = op->getResult(0);
  evaluator.bind(result, [this, result, load](ValueRange index) {
    // Known for the current row only.
    if (!evaluator.isSameIndex(index, keptIndex(result)))
      failed = true;
    return load();
  });
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

void StagedEmitter::storeResults(bool full, Value outer, Value inner) {
  SmallVector<std::tuple<unsigned, Value, Value>> stores;
  for (auto [i, result] : llvm::enumerate(context.getYielded())) {
    if (isFull(result) != full)
      continue;
    SmallVector<Value> index = full ? fullIndex(result, outer, inner) : keptIndex(result);
    Value position = function.linearize(index, cast<RankedTensorType>(result.getType()).getShape());
    stores.emplace_back(i, position, evaluator.element(result, index));
  }
  for (auto [i, position, scalar] : stores)
    function.store(context.getResultPointer(i),
                   cast<RankedTensorType>(context.getYielded()[i].getType()).getElementType(), position, scalar);
}

/// Runs `body` for each column of the tile, or once.
void StagedEmitter::columnLoop(function_ref<void()> body) {
  if (shape.trailing)
    return body();
  evaluator.loop(function.index(0), width, 1, LoopKind::Parallel, [&](Value column) {
    lane = column;
    setKept(outerKept, function.add(firstColumn, column));
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
        setKept(outerKept, function.add(firstColumn, column));
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
  if (llvm::any_of(context.getYielded(), [&](Value result) { return isFull(result); })) {
    Value zero = function.index(0);
    LoopKind innermost = shape.trailing ? LoopKind::Parallel : LoopKind::Sequential;
    evaluator.loop(zero, function.index(shape.outerCount), 1, LoopKind::Sequential, [&](Value outer) {
      evaluator.loop(zero, function.index(shape.innerCount), 1, innermost,
                     [&](Value inner) { columnLoop([&] { storeResults(/*full=*/true, outer, inner); }); });
    });
  }
  if (llvm::any_of(context.getYielded(), [&](Value result) { return !isFull(result); }))
    columnLoop([&] { storeResults(/*full=*/false, nullptr, nullptr); });
}

LogicalResult StagedEmitter::emit() {
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
