//===- LoopEmitter.cpp - loops over the elements of the results -*- C++ -*-===//
//
// Takes any body. Results of equal shape share a loop nest: the leading
// dimensions are the iteration space, the last one is the vectorized loop.
// Nests of different shapes follow one another in the iteration space.
//
//===----------------------------------------------------------------------===//

#include "Emitters.h"
#include "lowtide/Dialect/NN/Positions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

/// Elements that one task should have, so that handing out tasks costs nothing
/// beside the work.
static constexpr int64_t kTaskElements = 8192;
/// Dimensions that travel together are one loop, unless fewer rows than this are left; a loop has so many elements
/// then.
static constexpr int64_t kMinRows = 16, kRowElements = 256;

static RankedTensorType getType(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

bool codegen::isFlat(nn::KernelOp kernel) {
  int64_t count = 1;
  for (Value result : kernel.getYield().getOperands())
    count = std::max(count, getType(result).getNumElements());
  if (count == 1)
    return false;
  auto fits = [&](Value tensor) { return llvm::is_contained({int64_t(1), count}, getType(tensor).getNumElements()); };
  if (!llvm::all_of(kernel.getBlock()->getArguments(), fits) ||
      llvm::any_of(kernel.getYield().getOperands(),
                   [&](Value result) { return getType(result).getNumElements() != count; }))
    return false;
  return llvm::all_of(kernel.getBlock()->without_terminator(), [&](Operation &op) {
    if (!llvm::all_of(op.getResults(), fits))
      return false;
    DenseElementsAttr constant;
    if (matchPattern(&op, m_Constant(&constant)))
      return constant.isSplat();
    return op.hasTrait<OpTrait::Elementwise>() || isa<nn::ReshapeOp>(op) ||
           (isa<nn::BroadcastOp>(op) && getType(op.getOperand(0)).getNumElements() == 1);
  });
}

using KnownGlue = DenseMap<std::tuple<Value, int64_t, int64_t>, bool>;

static bool isGlued(Value tensor, int64_t d, int64_t e, bool endsAtReductions, KnownGlue &known) {
  Operation *op = tensor.getDefiningOp();
  if (!op || op->hasTrait<OpTrait::ConstantLike>() || (endsAtReductions && isa<ReductionInterface>(op)))
    return true;
  auto [found, isNew] = known.try_emplace({tensor, d, e}, false);
  if (!isNew)
    return found->second;
  auto isPassed = [&](OpOperand &operand) {
    auto outer = nn::getPassedDim(op, operand.getOperandNumber(), d);
    auto inner = nn::getPassedDim(op, operand.getOperandNumber(), e);
    if (!outer || !inner || (*outer < 0) != (*inner < 0))
      return false;
    if (*outer < 0)
      return true;
    if (*outer >= *inner)
      return false;
    ArrayRef<int64_t> shape = getType(operand.get()).getShape();
    return llvm::all_of(shape.slice(*outer + 1, *inner - *outer - 1), [](int64_t extent) { return extent == 1; }) &&
           isGlued(operand.get(), *outer, *inner, endsAtReductions, known);
  };
  const bool glued = op->getNumOperands() > 0 && llvm::all_of(op->getOpOperands(), isPassed);
  known[{tensor, d, e}] = glued;
  return glued;
}

bool codegen::isGlued(Value tensor, int64_t d, int64_t e, bool endsAtReductions) {
  KnownGlue known;
  return ::isGlued(tensor, d, e, endsAtReductions, known);
}

unsigned codegen::countGluedDims(nn::KernelOp kernel, ArrayRef<int64_t> shape) {
  const int64_t rank = shape.size();
  KnownGlue known;
  int64_t count = rank == 0 ? 0 : 1;
  for (; count < rank; ++count) {
    const int64_t d = rank - count - 1;
    int64_t e = d + 1;
    while (e < rank && shape[e] == 1)
      ++e;
    if (shape[d] == 1 || e == rank)
      continue;
    if (!llvm::all_of(kernel.getYield().getOperands(), [&](Value result) {
          return getType(result).getShape() != shape || ::isGlued(result, d, e, /*endsAtReductions=*/false, known);
        }))
      break;
  }
  return count;
}

SmallVector<LoopNest> codegen::getLoopNests(nn::KernelOp kernel) {
  llvm::MapVector<ArrayAttr, LoopNest> nests;
  Builder builder(kernel.getContext());
  bool flat = isFlat(kernel);
  for (auto [i, result] : llvm::enumerate(kernel.getYield().getOperands())) {
    SmallVector<int64_t> shape(getType(result).getShape());
    if (flat)
      shape = {getType(result).getNumElements()};
    LoopNest &nest = nests[builder.getI64ArrayAttr(shape)];
    nest.results.push_back(i);
    nest.shape = shape;
    nest.numInner = flat ? 0 : countGluedDims(kernel, shape);
    // All dimensions in one loop: its positions are the iteration space.
    if (nest.numInner == shape.size())
      nest.numInner = 0;
    // Few rows are few tasks.
    while (nest.numInner > 1 && ShapedType::getNumElements(ArrayRef(shape).drop_back(nest.numInner)) < kMinRows &&
           ShapedType::getNumElements(ArrayRef(shape).take_back(nest.numInner - 1)) >= kRowElements)
      --nest.numInner;
    nest.inner = ShapedType::getNumElements(ArrayRef(shape).take_back(nest.numInner));
    nest.rows = ShapedType::getNumElements(ArrayRef(shape).drop_back(nest.numInner));
  }
  return llvm::map_to_vector(nests.takeVector(), [](auto pair) { return pair.second; });
}

LaunchShape codegen::getLoopShape(nn::KernelOp kernel) {
  LaunchShape launch{0, 1, 0};
  int64_t inner = 1;
  for (const LoopNest &nest : getLoopNests(kernel)) {
    launch.extent += nest.rows;
    inner = std::max(inner, nest.inner);
  }
  launch.grain = std::max<int64_t>(1, kTaskElements / inner);
  return launch;
}

void codegen::emitLoop(KernelContext &context) {
  KernelFunction &function = context.function;
  RegionEvaluator &evaluator = context.evaluator;
  ValueRange yielded = context.getYielded();
  evaluator.flat = isFlat(context.kernel);

  auto storeAll = [&](const LoopNest &nest, ValueRange index, Value position) {
    SmallVector<Value> scalars;
    for (unsigned result : nest.results)
      scalars.push_back(evaluator.element(yielded[result], index));
    for (auto [result, scalar] : llvm::zip_equal(nest.results, scalars))
      function.store(context.getResultPointer(result), getType(yielded[result]).getElementType(), position, scalar);
  };

  int64_t first = 0;
  SmallVector<LoopNest> nests = getLoopNests(context.kernel);
  for (const LoopNest &nest : nests) {
    Value lower = function.begin, upper = function.end;
    if (nests.size() > 1) {
      // The part of [begin, end) that lies in this nest's rows.
      OpBuilder &b = function.builder;
      auto clamp = [&](Value x) {
        Value above = arith::MaxSIOp::create(b, function.loc, x, function.index(first));
        return function.min(above, function.index(first + nest.rows));
      };
      auto relative = [&](Value x) -> Value {
        return arith::SubIOp::create(b, function.loc, clamp(x), function.index(first));
      };
      lower = relative(lower);
      upper = relative(upper);
    }
    first += nest.rows;
    ArrayRef<int64_t> shape(nest.shape);
    evaluator.loop(lower, upper, 1, LoopKind::Parallel, [&](Value row) {
      SmallVector<Value> index =
          evaluator.flat ? SmallVector<Value>{row} : function.delinearize(row, shape.drop_back(nest.numInner));
      if (nest.numInner == 0)
        return storeAll(nest, index, row);
      Value start = function.mul(row, function.index(nest.inner));
      evaluator.loop(function.index(0), function.index(nest.inner), 1, LoopKind::Parallel, [&](Value i) {
        SmallVector<Value> full(index);
        llvm::append_range(full, function.delinearize(i, shape.take_back(nest.numInner)));
        storeAll(nest, full, function.add(start, i));
      });
    });
  }
}
