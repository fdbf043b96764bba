//===- RunningSumEmitter.cpp - sums along a line, in one pass ---*- C++ -*-===//
//
// A running sum and what elementwise ops make of it. As an element by itself it adds up all that comes before: the loop
// emitter would do that for each. Here lines are gone along once, with their sums so far: on a CPU by tasks that take a
// tile of neighbouring lines, on a GPU by a thread for each line.
//
//===----------------------------------------------------------------------===//

#include "GpuBatch.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

static constexpr int64_t kMinTile = 16, kMaxTile = 256, kTasks = 8, kTaskElements = 8192;
/// Of a GPU: threads of a block, few since lines are; elements that a thread reads before it writes.
static constexpr int64_t kThreads = 32, kAhead = 8;
/// Additions by elements on their own that a GPU's many threads make in about the time of some memory latencies, which
/// a thread that goes along a line waits for. Not measured.
static constexpr double kFewAdditions = 1 << 26;

static ArrayRef<int64_t> getShape(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getShape(); }

nn::CumSumOp codegen::getRunningSum(nn::KernelOp kernel) {
  nn::CumSumOp sum;
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (auto found = dyn_cast<nn::CumSumOp>(op)) {
      if (sum)
        return {};
      sum = found;
    } else if (isa<ReductionInterface>(op)) {
      return {};
    }
  if (!sum)
    return {};
  const SmallVector<int64_t> extents = dropUnitExtents(sum.getY());
  if (llvm::any_of(kernel.getYield().getOperands(), [&](Value result) { return dropUnitExtents(result) != extents; }))
    return {};
  // Each reader asks for the sum at its own position.
  SmallVector<Value> worklist{sum.getY()};
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      if (isa<nn::YieldOp>(user))
        continue;
      const bool isReshape = isa<nn::ReshapeOp>(user) && dropUnitExtents(user->getResult(0)) == extents;
      if (!isReshape && !user->hasTrait<OpTrait::Elementwise>())
        return {};
      llvm::append_range(worklist, user->getResults());
    }
  return sum;
}

namespace {
/// The dimensions before and after that of the sum; the latter in tiles.
struct Lines {
  ArrayRef<int64_t> outer, inner;
  int64_t length, columns, tile, tiles;

  explicit Lines(nn::CumSumOp sum)
      : outer(getShape(sum.getY()).take_front(sum.getDim())), inner(getShape(sum.getY()).drop_front(sum.getDim() + 1)),
        length(getShape(sum.getY())[sum.getDim()]), columns(ShapedType::getNumElements(inner)) {
    const int64_t share = llvm::divideCeil(count(), kTasks);
    tile = std::min(columns, std::clamp<int64_t>(llvm::alignTo(share, kMinTile), kMinTile, kMaxTile));
    tiles = llvm::divideCeil(columns, tile);
  }

  int64_t count() const { return ShapedType::getNumElements(outer) * columns; }

  /// Where a line is after `step` steps along it.
  Value getPosition(KernelContext &context, nn::CumSumOp sum, Value step) const {
    ScalarBuilder scalars(context.function.builder, context.function.loc);
    return sum.getReverse() ? scalars.sub(context.function.index(length - 1), step) : step;
  }
};
} // namespace

LaunchShape codegen::getRunningSumShape(nn::CumSumOp sum) {
  Lines lines(sum);
  return {ShapedType::getNumElements(lines.outer) * lines.tiles,
          std::max<int64_t>(1, kTaskElements / (lines.length * lines.tile)), 0};
}

namespace {
/// The elements at one place of a line: what it adds, and what becomes of the sum there.
class Place {
public:
  Place(KernelContext &context, nn::CumSumOp sum, ArrayRef<Value> before, Value at, ArrayRef<Value> after)
      : context(context), sum(sum), scalars(context.function.builder, context.function.loc), index(before) {
    index.push_back(at);
    llvm::append_range(index, after);
  }

  Value add(Value soFar) {
    Type type = nn::accumulatorType(sum.getY());
    Value next = scalars.add(soFar, scalars.cast(context.evaluator.element(sum.getX(), index), type));
    own = scalars.cast(sum.getExclusive() ? soFar : next, nn::scalarType(sum.getY()));
    return next;
  }

  void compute() {
    context.evaluator.bind(sum.getY(), [own = own](ValueRange) { return own; });
    // Results may have dimensions of extent 1 besides.
    SmallVector<Value> places;
    for (auto [i, extent] : llvm::zip_equal(index, getShape(sum.getY())))
      if (extent != 1)
        places.push_back(i);
    for (Value result : context.getYielded()) {
      SmallVector<Value> place;
      size_t used = 0;
      for (int64_t extent : getShape(result))
        place.push_back(extent == 1 ? context.function.index(0) : places[used++]);
      results.push_back(context.evaluator.element(result, place));
    }
  }

  void store() {
    Value position = context.function.linearize(index, getShape(sum.getY()));
    for (auto [i, result] : llvm::enumerate(results))
      context.function.store(context.getResultPointer(i),
                             cast<RankedTensorType>(context.getYielded()[i].getType()).getElementType(), position,
                             result);
  }

private:
  KernelContext &context;
  nn::CumSumOp sum;
  ScalarBuilder scalars;
  SmallVector<Value> index, results;
  Value own;
};
} // namespace

void codegen::emitRunningSum(KernelContext &context, nn::CumSumOp sum) {
  KernelFunction &function = context.function;
  RegionEvaluator &evaluator = context.evaluator;
  ScalarBuilder scalars(function.builder, function.loc);
  const Lines lines(sum);
  Type type = nn::accumulatorType(sum.getY());
  Value sums = function.local(type, lines.tile), zero = function.index(0);

  evaluator.loop(function.begin, function.end, 1, LoopKind::Sequential, [&](Value task) {
    SmallVector<Value> parts = function.delinearize(task, {ShapedType::getNumElements(lines.outer), lines.tiles});
    SmallVector<Value> before = function.delinearize(parts[0], lines.outer);
    Value first = function.mul(parts[1], function.index(lines.tile)), width = function.index(lines.tile);
    if (lines.columns % lines.tile != 0)
      width = function.min(width, scalars.sub(function.index(lines.columns), first));
    evaluator.loop(zero, width, 1, LoopKind::Parallel,
                   [&](Value lane) { function.store(sums, type, lane, scalars.constant(type, 0.0)); });
    evaluator.loop(zero, function.index(lines.length), 1, LoopKind::Sequential, [&](Value step) {
      Value at = lines.getPosition(context, sum, step);
      evaluator.loop(zero, width, 1, LoopKind::Parallel, [&](Value lane) {
        Place place(context, sum, before, at, function.delinearize(function.add(first, lane), lines.inner));
        function.store(sums, type, lane, place.add(function.load(sums, type, lane)));
        place.compute();
        place.store();
      });
    });
  });
}

bool codegen::isGpuRunningSumByLines(nn::CumSumOp sum) {
  const Lines lines(sum);
  return 0.5 * ShapedType::getNumElements(getShape(sum.getY())) * lines.length >= kFewAdditions;
}

Grid codegen::getGpuRunningSumGrid(nn::CumSumOp sum, unsigned processors) {
  const Lines lines(sum);
  return {std::min<int64_t>(llvm::divideCeil(lines.count(), kThreads), getMostBlocks(processors)), kThreads};
}

void codegen::emitGpuRunningSum(KernelContext &context, nn::CumSumOp sum) {
  KernelFunction &function = context.function;
  RegionEvaluator &evaluator = context.evaluator;
  ScalarBuilder scalars(function.builder, function.loc);
  const Lines lines(sum);
  Value none = scalars.constant(nn::accumulatorType(sum.getY()), 0.0);
  hoistScalars(context);
  function.forEachTask(lines.count(), LoopKind::Parallel, [&](Value line) {
    RegionEvaluator::Scope scope(evaluator);
    SmallVector<Value> parts = function.delinearize(line, {ShapedType::getNumElements(lines.outer), lines.columns});
    SmallVector<Value> before = function.delinearize(parts[0], lines.outer),
                       after = function.delinearize(parts[1], lines.inner);
    auto advance = [&](int64_t begin, int64_t end, int64_t ahead, Value soFar) {
      return evaluator
          .loop(function.index(begin), function.index(end), ahead, LoopKind::Sequential, soFar,
                [&](Value step, ValueRange running) {
                  Value sumSoFar = running.front();
                  SmallVector<Place> places;
                  for (int64_t i = 0; i < ahead; ++i) {
                    Value at = lines.getPosition(context, sum, function.add(step, function.index(i)));
                    sumSoFar = places.emplace_back(context, sum, before, at, after).add(sumSoFar);
                  }
                  for (Place &place : places)
                    place.compute();
                  for (Place &place : places)
                    place.store();
                  return SmallVector<Value>{sumSoFar};
                })
          .front();
    };
    const int64_t whole = lines.length / kAhead * kAhead;
    Value soFar = whole ? advance(0, whole, kAhead, none) : none;
    if (whole < lines.length)
      advance(whole, lines.length, 1, soFar);
  });
}
