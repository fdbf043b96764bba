//===- GpuLoopEmitter.cpp - elements of the results, thread by thread -*- C++ -*-===//
//
// Takes any body. A thread computes as many neighbouring elements of all results of one shape as 16 bytes of the
// narrowest array hold, then goes on to the next such vector of the grid. It reads everything before it writes.
//
//===----------------------------------------------------------------------===//

#include "GpuBatch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

static constexpr int64_t kThreads = 256, kVectorBytes = 16, kMaxLanes = 8;

static RankedTensorType getType(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

/// Elements in 16 bytes of the narrowest of the arrays of `count` elements.
static int64_t countLanes(nn::KernelOp kernel, int64_t count) {
  uint64_t bytes = 8;
  for (Value array : llvm::concat<const Value>(kernel.getOperands(), kernel.getResults()))
    if (getType(array).getNumElements() == count)
      bytes = std::min(bytes, elementBytes(getType(array).getElementType()));
  return std::min<int64_t>(kVectorBytes / bytes, kMaxLanes);
}

int64_t codegen::getFlatLanes(nn::KernelOp kernel) {
  return countLanes(kernel, getType(kernel.getResult(0)).getNumElements());
}

namespace {
/// A loop nest, cut into vectors.
struct VectorNest {
  LoopNest nest;
  bool flat;
  int64_t count = 1; // elements of a result
  int64_t inner = 1; // neighbours that a vector may hold: a divisor of `count`, or all
  unsigned numInner = 0;
  int64_t lanes = 1;

  VectorNest(nn::KernelOp kernel, LoopNest given, bool flat, bool narrow) : nest(std::move(given)), flat(flat) {
    count = nest.rows * nest.inner;
    inner = count;
    if (!flat) {
      numInner = countGluedDims(kernel, nest.shape);
      inner = 1;
      for (int64_t extent : ArrayRef(nest.shape).take_back(numInner))
        inner *= extent;
    }
    if (narrow)
      return;
    lanes = countLanes(kernel, count);
    // What is left over after whole vectors is computed one by one, which only a flat kernel can.
    while (lanes > 1 && (flat ? count < lanes : inner % lanes != 0))
      lanes /= 2;
  }
};
} // namespace

static SmallVector<VectorNest> getVectorNests(nn::KernelOp kernel, bool narrow) {
  SmallVector<VectorNest> nests;
  bool flat = isFlat(kernel);
  for (LoopNest &nest : getLoopNests(kernel))
    nests.emplace_back(kernel, std::move(nest), flat, narrow);
  return nests;
}

Grid codegen::getGpuLoopGrid(nn::KernelOp kernel, bool narrow, unsigned processors) {
  int64_t vectors = 1;
  for (const VectorNest &nest : getVectorNests(kernel, narrow))
    vectors = std::max(vectors, nest.count / nest.lanes);
  int64_t threads = std::min<int64_t>(kThreads, llvm::alignTo(vectors, 32));
  return {std::min<int64_t>(llvm::divideCeil(vectors, threads), getMostBlocks(processors)), threads};
}

void codegen::hoistScalars(KernelContext &context) {
  auto isOne = [](Value value) { return getType(value).getNumElements() == 1; };
  for (Operation &op : context.kernel.getBlock()->without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>() || !llvm::all_of(op.getOperands(), isOne) ||
        !llvm::all_of(op.getResults(), isOne))
      continue;
    for (Value result : op.getResults())
      context.evaluator.element(result, SmallVector<Value>(getType(result).getRank(), context.function.index(0)));
  }
}

void codegen::emitFlatVector(KernelContext &context, Value first, int64_t lanes) {
  KernelFunction &function = context.function;
  ValueRange yielded = context.getYielded();
  SmallVector<Value> positions;
  SmallVector<SmallVector<Value>> scalars;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    positions.push_back(function.add(first, function.index(lane)));
    SmallVector<Value> &values = scalars.emplace_back();
    for (Value result : yielded)
      values.push_back(context.evaluator.element(result, positions.back()));
  }
  for (auto [i, result] : llvm::enumerate(yielded))
    for (int64_t lane = 0; lane < lanes; ++lane)
      function.store(context.getResultPointer(i), getType(result).getElementType(), positions[lane], scalars[lane][i]);
}

/// Elements [first, first + lanes), which `first / lanes` = `vector` names.
static void emitVector(KernelContext &context, const VectorNest &vectors, Value vector, int64_t lanes, int64_t offset) {
  KernelFunction &function = context.function;
  RegionEvaluator &evaluator = context.evaluator;
  ValueRange yielded = context.getYielded();
  ArrayRef<int64_t> shape(vectors.nest.shape);
  Value first = function.add(function.mul(vector, function.index(lanes)), function.index(offset));
  if (vectors.flat)
    return emitFlatVector(context, first, lanes);
  SmallVector<Value> rowIndex;
  Value innerFirst = first;
  if (vectors.inner != vectors.count) {
    SmallVector<Value> parts = function.delinearize(vector, {vectors.count / vectors.inner, vectors.inner / lanes});
    rowIndex = function.delinearize(parts[0], shape.drop_back(vectors.numInner));
    innerFirst = function.mul(parts[1], function.index(lanes));
  } else {
    rowIndex.assign(shape.size() - vectors.numInner, function.index(0));
  }
  SmallVector<Value> positions;
  SmallVector<SmallVector<Value>> scalars;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value position = function.add(first, function.index(lane));
    SmallVector<Value> index(rowIndex);
    Value inner = function.add(innerFirst, function.index(lane));
    llvm::append_range(index, function.delinearize(inner, shape.take_back(vectors.numInner)));
    function.remember(position, index, shape);
    positions.push_back(position);
    SmallVector<Value> &values = scalars.emplace_back();
    for (unsigned result : vectors.nest.results)
      values.push_back(evaluator.element(yielded[result], index));
  }
  for (auto [i, result] : llvm::enumerate(vectors.nest.results))
    for (int64_t lane = 0; lane < lanes; ++lane)
      function.store(context.getResultPointer(result), getType(yielded[result]).getElementType(), positions[lane],
                     scalars[lane][i]);
}

void codegen::emitGpuLoop(KernelContext &context, bool narrow) {
  KernelFunction &function = context.function;
  context.evaluator.flat = isFlat(context.kernel);
  hoistScalars(context);
  for (const VectorNest &nest : getVectorNests(context.kernel, narrow)) {
    auto forEach = [&](int64_t count, int64_t lanes, int64_t offset) {
      if (count)
        function.forEachTask(count, LoopKind::Parallel, [&](Value vector) {
          RegionEvaluator::Scope scope(context.evaluator);
          emitVector(context, nest, vector, lanes, offset);
        });
    };
    forEach(nest.count / nest.lanes, nest.lanes, 0);
    forEach(nest.count % nest.lanes, 1, nest.count / nest.lanes * nest.lanes);
  }
}
