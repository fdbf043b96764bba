//===- RunningSumEmitter.cpp - sums along a line, in one pass ---*- C++ -*-===//
//
// A running sum and what elementwise ops make of it. As an element by itself it adds up all that comes before: the loop
// emitter would do that for each. Here a task is a tile of neighbouring lines; it goes along them once and keeps their
// sums so far. CPU only.
//
//===----------------------------------------------------------------------===//

#include "Emitters.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

static constexpr int64_t kMinTile = 16, kMaxTile = 256, kTasks = 8, kTaskElements = 8192;

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
    const int64_t share = llvm::divideCeil(ShapedType::getNumElements(outer) * columns, kTasks);
    tile = std::min(columns, std::clamp<int64_t>(llvm::alignTo(share, kMinTile), kMinTile, kMaxTile));
    tiles = llvm::divideCeil(columns, tile);
  }
};
} // namespace

LaunchShape codegen::getRunningSumShape(nn::CumSumOp sum) {
  Lines lines(sum);
  return {ShapedType::getNumElements(lines.outer) * lines.tiles,
          std::max<int64_t>(1, kTaskElements / (lines.length * lines.tile)), 0};
}

void codegen::emitRunningSum(KernelContext &context, nn::CumSumOp sum) {
  KernelFunction &function = context.function;
  RegionEvaluator &evaluator = context.evaluator;
  ScalarBuilder scalars(function.builder, function.loc);
  const Lines lines(sum);
  Type type = nn::accumulatorType(sum.getY()), scalar = nn::scalarType(sum.getY());
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
      Value at = sum.getReverse() ? scalars.sub(function.index(lines.length - 1), step) : step;
      evaluator.loop(zero, width, 1, LoopKind::Parallel, [&](Value lane) {
        SmallVector<Value> index(before);
        index.push_back(at);
        llvm::append_range(index, function.delinearize(function.add(first, lane), lines.inner));
        Value soFar = function.load(sums, type, lane);
        Value next = scalars.add(soFar, scalars.cast(evaluator.element(sum.getX(), index), type));
        function.store(sums, type, lane, next);
        Value own = scalars.cast(sum.getExclusive() ? soFar : next, scalar);
        evaluator.bind(sum.getY(), [own](ValueRange) { return own; });
        // Results may have dimensions of extent 1 besides.
        SmallVector<Value> places;
        for (auto [i, extent] : llvm::zip_equal(index, getShape(sum.getY())))
          if (extent != 1)
            places.push_back(i);
        SmallVector<Value> results;
        Value position = function.linearize(index, getShape(sum.getY()));
        for (Value result : context.getYielded()) {
          SmallVector<Value> place;
          size_t used = 0;
          for (int64_t extent : getShape(result))
            place.push_back(extent == 1 ? zero : places[used++]);
          results.push_back(evaluator.element(result, place));
        }
        for (auto [i, result] : llvm::enumerate(results))
          function.store(context.getResultPointer(i),
                         cast<RankedTensorType>(context.getYielded()[i].getType()).getElementType(), position, result);
      });
    });
  });
}
