//===- StagedBody.cpp - a staged kernel's values at a place -----*- C++ -*-===//
//
// Indices, bindings and stores, without a word about loops.
//
//===----------------------------------------------------------------------===//

#include "StagedBody.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;

bool StagedBody::hasResults(bool full) {
  return llvm::any_of(context.getYielded(), [&](Value result) { return isFull(result) == full; });
}

/// The index of a value, given one index per dimension of extent > 1.
SmallVector<Value> StagedBody::expand(Value tensor, ArrayRef<Value> parts) {
  SmallVector<Value> index;
  size_t next = 0;
  for (int64_t extent : cast<RankedTensorType>(tensor.getType()).getShape())
    index.push_back(extent == 1 ? function.index(0) : parts[next++]);
  return index;
}

SmallVector<Value> StagedBody::fullIndex(Value tensor, Value outer, Value inner) {
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

void StagedBody::setKept(Value outerKept, Value column) {
  size_t numColumns = 0;
  if (!shape.trailing)
    numColumns = llvm::count_if(domain.kept, [&](int64_t d) { return d > domain.reduced.back(); });
  setPlace(outerKept, numColumns, column);
}

void StagedBody::setPlace(Value outerKept, size_t numColumns, Value column) {
  ArrayRef<int64_t> extents(domain.keptExtents);
  kept = function.delinearize(outerKept, extents.drop_back(numColumns));
  if (column)
    llvm::append_range(kept, function.delinearize(column, extents.take_back(numColumns)));
}

void StagedBody::setColumn(Value outerKept, Value firstColumn, Value lane) {
  if (domain.run == domain.columns)
    return setKept(outerKept, function.add(firstColumn, lane));
  ScalarBuilder scalars(function.builder, function.loc);
  Value run = function.index(domain.run);
  setPlace(function.add(function.mul(outerKept, function.index(domain.columns / domain.run)),
                        scalars.div(firstColumn, run, /*isUnsigned=*/true)),
           domain.numRunDims, function.add(scalars.rem(firstColumn, run, /*isUnsigned=*/true), lane));
}

SmallVector<Value> StagedBody::getElements(ArrayRef<ReductionInterface> ops, Value outer, Value inner) {
  SmallVector<Value> elements;
  for (ReductionInterface op : ops)
    elements.push_back(evaluator.element(op->getOperand(0), fullIndex(op->getOperand(0), outer, inner)));
  return elements;
}

void StagedBody::bindReduction(ReductionInterface op, std::function<Value()> load) {
  Value result = op->getResult(0);
  evaluator.bind(result, [this, result, load](ValueRange index) {
    // Known for the current row only.
    if (!evaluator.isSameIndex(index, keptIndex(result)))
      failed = true;
    return load();
  });
}

Value StagedBody::getResultPointer(unsigned result) {
  // On a GPU results are the last pointers, after whatever the kernel reads.
  if (function.isGpu())
    return function.getPointer(function.getNumPointers() - context.kernel.getNumResults() + result);
  return context.getResultPointer(result);
}

void StagedBody::storeResults(bool full, Value outer, Value inner) {
  storeVector(full, 1, [&](int64_t) { return std::pair(outer, inner); });
}

void StagedBody::storeVector(bool full, int64_t lanes, function_ref<std::pair<Value, Value>(int64_t lane)> enter) {
  struct Store {
    unsigned result;
    Value position, scalar;
  };
  SmallVector<Store> stores;
  for (auto [i, result] : llvm::enumerate(context.getYielded())) {
    if (isFull(result) != full)
      continue;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      auto [outer, inner] = enter(lane);
      SmallVector<Value> index = full ? fullIndex(result, outer, inner) : keptIndex(result);
      Value position = function.linearize(index, cast<RankedTensorType>(result.getType()).getShape());
      stores.push_back({static_cast<unsigned>(i), position, evaluator.element(result, index)});
    }
  }
  for (const Store &store : stores)
    function.store(getResultPointer(store.result),
                   cast<RankedTensorType>(context.getYielded()[store.result].getType()).getElementType(),
                   store.position, store.scalar);
}
