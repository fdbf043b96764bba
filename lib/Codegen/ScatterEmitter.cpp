//===- ScatterEmitter.cpp - additions at computed places --------*- C++ -*-===//
//
// Fills the result with zeros, or with what it starts as, and adds the updates in row-major order, or lets them meet
// what is there as the op says. What the updates' position passes on to the result's is divided among tasks: a task
// owns a tile of the last dimension, for one index into the other passed ones. Written over what it starts as, a result
// is not filled. On a GPU a task is one thread and its tile one element: neighbours read and write neighbours.
//
//===----------------------------------------------------------------------===//

#include "Emitters.h"
#include "ScatterStart.h"
#include "lowtide/Interfaces/MeetingInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

static constexpr int64_t kMinTile = 16, kTasks = 8;
/// On a GPU a thread owns one element of that dimension; threads of a block.
static constexpr int64_t kThreads = 128;

ScatterInterface codegen::getScatter(nn::KernelOp kernel) {
  ScatterInterface scatter;
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (scatter || !isa<ScatterInterface>(op))
      return {};
    scatter = cast<ScatterInterface>(op);
  }
  return scatter && scatter->getNumResults() == 1 ? scatter : ScatterInterface();
}

ScatterInterface codegen::getFedScatter(nn::KernelOp kernel) {
  auto yield = cast<nn::YieldOp>(kernel.getBlock()->getTerminator());
  auto scatter = yield->getNumOperands() == 1 ? dyn_cast_or_null<ScatterInterface>(yield->getOperand(0).getDefiningOp())
                                              : ScatterInterface();
  if (!scatter || scatter->getNumResults() != 1 || !scatter->hasOneUse())
    return {};
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (&op != scatter && (isa<ScatterInterface, ReductionInterface>(op) || !isa<ElementInterface>(op)) &&
        !op.hasTrait<OpTrait::ConstantLike>())
      return {};
  return scatter;
}

namespace {
/// Dimensions by role.
struct ScatterShape {
  RankedTensorType updates, result;
  SmallVector<int64_t> passed; // of the result: the updates' dimension, or -1
  SmallVector<int64_t> outer;  // passed dimensions of the result but the tiled one
  int64_t tiled = -1;          // the result's last dimension, if it is passed
  int64_t tile = 1, tiles = 1;

  ScatterShape(ScatterInterface op, int64_t minTile)
      : updates(cast<RankedTensorType>(op->getOperand(op.getUpdatesOperand()).getType())),
        result(cast<RankedTensorType>(op->getResult(0).getType())), passed(op.getPassedDims()) {
    int64_t rank = result.getRank();
    for (int64_t d = 0; d < rank; ++d)
      if (passed[d] >= 0 && d + 1 < rank)
        outer.push_back(d);
    if (rank && passed[rank - 1] >= 0) {
      tiled = rank - 1;
      int64_t extent = result.getDimSize(tiled);
      tile = minTile == 1 ? 1 : std::min<int64_t>(extent, std::max<int64_t>(minTile, llvm::divideCeil(extent, kTasks)));
      tiles = llvm::divideCeil(extent, tile);
    }
  }
  SmallVector<int64_t> outerExtents() const {
    return llvm::map_to_vector(outer, [&](int64_t d) { return result.getDimSize(d); });
  }
};
} // namespace

static int64_t product(ArrayRef<int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

static int64_t countTasks(const ScatterShape &shape) { return product(shape.outerExtents()) * shape.tiles; }

LaunchShape codegen::getScatterShape(ScatterInterface op) { return {countTasks(ScatterShape(op, kMinTile)), 1, 0}; }

Grid codegen::getGpuScatterGrid(ScatterInterface op, unsigned processors) {
  int64_t tasks = countTasks(ScatterShape(op, 1)), threads = std::min<int64_t>(kThreads, llvm::alignTo(tasks, 32));
  return {std::min<int64_t>(llvm::divideCeil(tasks, threads), getMostBlocks(processors)), threads};
}

Value codegen::emitStart(RegionEvaluator &evaluator, ScalarBuilder &b, ScatterInterface op, ValueRange index) {
  if (auto meeting = dyn_cast<MeetingInterface>(*op))
    return evaluator.element(op->getOperand(meeting.getInitialOperand()), index);
  return b.constant(scalarType(getElementTypeOrSelf(op->getResult(0))), 0.0);
}

Value codegen::meetThere(ScalarBuilder &b, ScatterInterface op, Value there, Value update) {
  auto meeting = dyn_cast<MeetingInterface>(*op);
  return meeting ? meeting.emitCombine(b, there, update) : b.add(there, update);
}

/// Emits `body` where the result has other bytes than the operand that it starts as.
static void whereApart(KernelContext &context, ScatterInterface op, function_ref<void()> body) {
  auto meeting = dyn_cast<MeetingInterface>(*op);
  auto start = meeting ? dyn_cast<BlockArgument>(op->getOperand(meeting.getInitialOperand())) : BlockArgument();
  if (!start)
    return body();
  KernelFunction &function = context.function;
  Value isApart = LLVM::ICmpOp::create(function.builder, function.loc, LLVM::ICmpPredicate::ne,
                                       function.getPointer(start.getArgNumber()), context.getResultPointer(0));
  scf::IfOp::create(function.builder, function.loc, isApart, [&](OpBuilder &builder, Location loc) {
    RegionEvaluator::Scope scope(context.evaluator);
    body();
    scf::YieldOp::create(builder, loc);
  });
}

void codegen::emitScatter(KernelContext &context, ScatterInterface op) {
  KernelFunction &function = context.function;
  RegionEvaluator &evaluator = context.evaluator;
  ScatterShape shape(op, function.isGpu() ? 1 : kMinTile);
  ScalarBuilder scalars(function.builder, function.loc);
  Type elementType = shape.result.getElementType();
  Value zero = function.index(0), pointer = context.getResultPointer(0);

  /// Dimensions of `tensor` that no task fixes, and how many positions they have.
  auto getFree = [](RankedTensorType tensor, function_ref<bool(int64_t)> isFixed) {
    SmallVector<int64_t> dims;
    for (int64_t d = 0; d < tensor.getRank(); ++d)
      if (!isFixed(d))
        dims.push_back(d);
    return dims;
  };
  SmallVector<int64_t> freeResult = getFree(shape.result, [&](int64_t d) { return shape.passed[d] >= 0; });
  SmallVector<int64_t> freeUpdates =
      getFree(shape.updates, [&](int64_t d) { return llvm::is_contained(shape.passed, d); });

  function.forEachTask(countTasks(shape), LoopKind::Sequential, [&](Value task) {
    RegionEvaluator::Scope scope(evaluator);
    SmallVector<int64_t> taskExtents = shape.outerExtents();
    taskExtents.push_back(shape.tiles);
    SmallVector<Value> taskIndex = function.delinearize(task, taskExtents);
    Value first = function.mul(taskIndex.back(), function.index(shape.tile)), width = function.index(shape.tile);
    if (shape.tiled >= 0 && shape.tile > 1)
      width = function.min(width, scalars.sub(function.index(shape.result.getDimSize(shape.tiled)), first));

    auto place = [&](SmallVector<Value> &index, RankedTensorType tensor, ArrayRef<int64_t> free, Value linear,
                     Value column, bool isUpdates) {
      index.assign(tensor.getRank(), zero);
      auto extents = llvm::map_to_vector(free, [&](int64_t d) { return tensor.getDimSize(d); });
      for (auto [d, i] : llvm::zip_equal(free, function.delinearize(linear, extents)))
        index[d] = i;
      for (auto [d, i] : llvm::zip(shape.outer, taskIndex))
        index[isUpdates ? shape.passed[d] : d] = i;
      if (shape.tiled >= 0)
        index[isUpdates ? shape.passed[shape.tiled] : shape.tiled] = column;
    };
    auto forEach = [&](RankedTensorType tensor, ArrayRef<int64_t> free, function_ref<void(Value, Value)> body) {
      int64_t count = product(llvm::map_to_vector(free, [&](int64_t d) { return tensor.getDimSize(d); }));
      evaluator.loop(zero, function.index(count), 1, LoopKind::Sequential, [&](Value linear) {
        evaluator.loop(zero, width, 1, LoopKind::Parallel,
                       [&](Value lane) { body(linear, function.add(first, lane)); });
      });
    };
    whereApart(context, op, [&] {
      forEach(shape.result, freeResult, [&](Value linear, Value column) {
        SmallVector<Value> index;
        place(index, shape.result, freeResult, linear, column, /*isUpdates=*/false);
        function.store(pointer, elementType, function.linearize(index, shape.result.getShape()),
                       emitStart(evaluator, scalars, op, index));
      });
    });
    forEach(shape.updates, freeUpdates, [&](Value linear, Value column) {
      SmallVector<Value> index, target;
      place(index, shape.updates, freeUpdates, linear, column, /*isUpdates=*/true);
      Value lands;
      evaluator.withOperands(op, [&](ElementBuilder &builder) { lands = op.emitTarget(builder, index, target); });
      scf::IfOp::create(function.builder, function.loc, lands, [&](OpBuilder &builder, Location loc) {
        RegionEvaluator::Scope scope(evaluator);
        Value position = function.linearize(target, shape.result.getShape());
        Value added = evaluator.element(op->getOperand(op.getUpdatesOperand()), index);
        function.store(pointer, elementType, position,
                       meetThere(scalars, op, function.load(pointer, elementType, position), added));
        scf::YieldOp::create(builder, loc);
      });
    });
  });
}
