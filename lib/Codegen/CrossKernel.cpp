//===- CrossKernel.cpp - rows of a matrix and sums over its columns -------===//
//
// 1. What leads to a result through a reduction over leading dimensions belongs to the columns, everything else to the
//    rows; both may compute the same cheap values.
// 2. Where the columns need a result of the rows they read it from memory.
// 3. Both must see one matrix, whatever the dimensions are called.
//
//===----------------------------------------------------------------------===//

#include "CrossKernel.h"
#include "StagedPlan.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

static bool reducesLeading(Operation &op) {
  auto reduction = dyn_cast<ReductionInterface>(op);
  if (!reduction)
    return false;
  // The last dimension that is no unit stays.
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getOperand(0).getType()).getShape();
  for (int64_t d = shape.size(); d-- > 0;)
    if (shape[d] != 1)
      return !llvm::is_contained(reduction.getReducedDims(), d);
  return false;
}

/// The part of `kernel` that makes `results`, as a kernel op in `block`. `known` results of the whole are read.
static nn::KernelOp buildPart(nn::KernelOp kernel, nn::Emitter emitter, ArrayRef<unsigned> results,
                              const llvm::DenseMap<Value, unsigned> &known, Block &block,
                              SmallVectorImpl<unsigned> &operands, SmallVectorImpl<unsigned> &handedOn) {
  llvm::DenseSet<Operation *> needed;
  llvm::SetVector<Value> arguments, handed;
  SmallVector<Value> worklist;
  for (unsigned number : results)
    worklist.push_back(kernel.getYield().getOperand(number));
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (isa<BlockArgument>(value))
      arguments.insert(value);
    else if (known.contains(value))
      handed.insert(value);
    else if (needed.insert(value.getDefiningOp()).second)
      llvm::append_range(worklist, value.getDefiningOp()->getOperands());
  }
  SmallVector<Value> inner, captures;
  for (BlockArgument argument : kernel.getBlock()->getArguments())
    if (arguments.contains(argument)) {
      operands.push_back(argument.getArgNumber());
      inner.push_back(argument);
    }
  for (Value value : handed) {
    handedOn.push_back(known.lookup(value));
    inner.push_back(value);
  }
  for (Value value : inner)
    captures.push_back(block.addArgument(value.getType(), value.getLoc()));
  auto types = llvm::map_to_vector(results, [&](unsigned number) { return kernel.getResult(number).getType(); });
  OpBuilder builder(kernel.getContext());
  builder.setInsertionPointToEnd(&block);
  auto part = nn::KernelOp::create(builder, kernel.getLoc(), emitter, captures, TypeRange(types));
  builder.setInsertionPointToEnd(part.getBlock());
  IRMapping mapping;
  mapping.map(ValueRange(inner), part.getBlock()->getArguments());
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (needed.contains(&op))
      builder.clone(op, mapping);
  nn::YieldOp::create(builder, kernel.getLoc(), llvm::map_to_vector(results, [&](unsigned number) {
                        return mapping.lookup(kernel.getYield().getOperand(number));
                      }));
  return part;
}

/// The domain of rows that reduce nothing: their last dimensions make up `numColumns` elements.
static FailureOr<StagedDomain> getPlainRows(nn::KernelOp rows, int64_t numColumns) {
  StagedDomain domain;
  domain.extents = dropUnitExtents(rows.getResult(0));
  for (Value result : rows.getResults())
    if (dropUnitExtents(result) != domain.extents)
      return failure();
  int64_t count = 1, first = domain.extents.size();
  while (first > 0 && count < numColumns)
    count *= domain.extents[--first];
  if (count != numColumns || first == 0)
    return failure();
  for (auto [d, extent] : llvm::enumerate(domain.extents)) {
    if (static_cast<int64_t>(d) >= first) {
      domain.reduced.push_back(d);
    } else {
      domain.kept.push_back(d);
      domain.keptExtents.push_back(extent);
    }
  }
  return domain;
}

static int64_t product(ArrayRef<int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

int64_t CrossKernel::countSums(int64_t threads) const {
  // An nn::KernelOp reads its body through an op that is not const.
  nn::KernelOp part = columns;
  int64_t numSums =
      llvm::count_if(part.getBlock()->without_terminator(), [](Operation &op) { return isa<ReductionInterface>(op); });
  return numSums * static_cast<int64_t>(llvm::divideCeil(numColumns, threads));
}

FailureOr<CrossKernel> CrossKernel::get(nn::KernelOp kernel) {
  CrossKernel cross;
  llvm::DenseSet<Value> behindSums;
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (reducesLeading(op) ||
        llvm::any_of(op.getOperands(), [&](Value operand) { return behindSums.contains(operand); }))
      behindSums.insert(op.result_begin(), op.result_end());
  llvm::DenseMap<Value, unsigned> known;
  for (auto [i, value] : llvm::enumerate(kernel.getYield().getOperands())) {
    if (!value.getDefiningOp())
      return failure();
    if (behindSums.contains(value)) {
      cross.columnResults.push_back(i);
    } else {
      cross.rowResults.push_back(i);
      known[value] = i;
    }
  }
  if (cross.rowResults.empty() || cross.columnResults.empty())
    return failure();
  cross.block = std::make_unique<Block>();
  SmallVector<unsigned> none;
  cross.columns = buildPart(kernel, nn::Emitter::column, cross.columnResults, known, *cross.block, cross.columnOperands,
                            cross.handedOn);
  FailureOr<StagedDomain> columns = StagedDomain::get(cross.columns);
  if (failed(columns))
    return failure();
  ReductionShape sums = columns->getShape();
  cross.numRows = sums.innerCount;
  cross.numColumns = columns->columns;
  if (sums.trailing || sums.outerCount != 1 || product(columns->keptExtents) != cross.numColumns ||
      StagedPlan(cross.columns, *columns).traversals.size() != 1)
    return failure();
  for (Value result : cross.columns.getResults())
    if (dropUnitExtents(result) != columns->keptExtents)
      return failure();
  cross.columnDomain = *columns;

  const bool reduces = llvm::any_of(kernel.getBlock()->without_terminator(), [&](Operation &op) {
    return isa<ReductionInterface>(op) && !behindSums.contains(op.getResult(0));
  });
  cross.rows = buildPart(kernel, reduces ? nn::Emitter::row : nn::Emitter::loop, cross.rowResults,
                         llvm::DenseMap<Value, unsigned>(), *cross.block, cross.rowOperands, none);
  FailureOr<StagedDomain> rows = reduces ? StagedDomain::get(cross.rows) : getPlainRows(cross.rows, cross.numColumns);
  if (failed(rows))
    return failure();
  ReductionShape row = rows->getShape();
  if (!row.trailing || row.outerCount != 1 || row.innerCount != cross.numColumns ||
      product(rows->keptExtents) != cross.numRows)
    return failure();
  cross.rowDomain = *rows;
  return cross;
}
