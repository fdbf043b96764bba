//===- ExprTensor.cpp - expressions that change shapes ----------*- C++ -*-===//
//
// Movement, reductions, indexing and contractions as functions on expressions.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/RecordSupport.h"

using namespace mlir;
using namespace lowtide::nn;

template <typename Op, typename... Args> static Expr build(Expr at, Args &&...args) {
  auto op = Op::create(at.getBuilder(), at.getLoc(), std::forward<Args>(args)...);
  return at.with(op->getResult(0));
}

static RankedTensorType withShape(Expr x, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, x.elementType());
}

Expr lowtide::nn::broadcast(Expr x, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  if (x.shape() == shape)
    return x;
  return build<BroadcastOp>(x, withShape(x, shape), x.get(), dims);
}

Expr lowtide::nn::broadcastTo(Expr x, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> dims;
  for (int64_t i = 0, e = x.rank(); i < e; ++i)
    dims.push_back(static_cast<int64_t>(shape.size()) - e + i);
  return broadcast(x, shape, dims);
}

Expr lowtide::nn::reshape(Expr x, ArrayRef<int64_t> shape) {
  if (x.shape() == shape)
    return x;
  return build<ReshapeOp>(x, withShape(x, shape), x.get());
}

Expr lowtide::nn::detach(Expr x) { return build<StopGradientOp>(x, x.type(), x.get()); }

Expr lowtide::nn::transpose(Expr x, ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape;
  bool identity = true;
  for (auto [i, p] : llvm::enumerate(permutation)) {
    shape.push_back(x.dim(p));
    identity &= static_cast<int64_t>(i) == p;
  }
  if (identity)
    return x;
  return build<TransposeOp>(x, withShape(x, shape), x.get(), permutation);
}

Expr lowtide::nn::slice(Expr x, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  SmallVector<int64_t> ones(x.rank(), 1);
  if (strides.empty())
    strides = ones;
  if (x.shape() == sizes && strides == ArrayRef<int64_t>(ones))
    return x;
  return build<SliceOp>(x, withShape(x, sizes), x.get(), starts, strides);
}

Expr lowtide::nn::pad(Expr x, ArrayRef<int64_t> low, ArrayRef<int64_t> high, ArrayRef<int64_t> interior, double value) {
  SmallVector<int64_t> zeros(x.rank(), 0), shape;
  if (interior.empty())
    interior = zeros;
  for (int64_t i = 0; i < x.rank(); ++i)
    shape.push_back(low[i] + x.dim(i) + std::max<int64_t>(x.dim(i) - 1, 0) * interior[i] + high[i]);
  if (x.shape() == ArrayRef<int64_t>(shape))
    return x;
  return build<PadOp>(x, withShape(x, shape), x.get(), low, high, interior, llvm::APFloat(value));
}

Expr lowtide::nn::reverse(Expr x, ArrayRef<int64_t> dims) {
  return dims.empty() ? x : build<ReverseOp>(x, x.type(), x.get(), dims);
}

Expr lowtide::nn::concat(ArrayRef<Expr> xs, int64_t dim) {
  if (xs.size() == 1)
    return xs[0];
  SmallVector<int64_t> shape(xs[0].shape());
  SmallVector<Value> values{xs[0].get()};
  for (Expr x : xs.drop_front()) {
    shape[dim] += x.dim(dim);
    values.push_back(x.get());
  }
  return build<ConcatOp>(xs[0], withShape(xs[0], shape), values, dim);
}

Expr lowtide::nn::iota(OpBuilder &builder, Location loc, RankedTensorType type, int64_t dim) {
  return Expr(builder, loc, IotaOp::create(builder, loc, type, dim).getY());
}

static SmallVector<int64_t> reducedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (auto [i, extent] : llvm::enumerate(shape))
    if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
      kept.push_back(extent);
  return kept;
}

template <typename Op> static Expr reduce(Expr x, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return x;
  return build<Op>(x, withShape(x, reducedShape(x.shape(), dims)), x.get(), dims);
}
Expr lowtide::nn::sum(Expr x, ArrayRef<int64_t> dims) { return reduce<ReduceSumOp>(x, dims); }
Expr lowtide::nn::maximum(Expr x, ArrayRef<int64_t> dims) { return reduce<ReduceMaxOp>(x, dims); }

Expr lowtide::nn::product(Expr x, ArrayRef<int64_t> dims) { return reduce<ReduceProdOp>(x, dims); }
Expr lowtide::nn::minimum(Expr x, ArrayRef<int64_t> dims) { return reduce<ReduceMinOp>(x, dims); }
Expr lowtide::nn::any(Expr x, ArrayRef<int64_t> dims) { return reduce<ReduceAnyOp>(x, dims); }
Expr lowtide::nn::all(Expr x, ArrayRef<int64_t> dims) { return reduce<ReduceAllOp>(x, dims); }

Expr lowtide::nn::mean(Expr x, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= x.dim(dim);
  // Sums of many 16-bit floats need not be any.
  Expr total = sum(cast(x, accumulatorType(x)), dims);
  return cast(total * (1.0 / static_cast<double>(count)), x.elementType());
}

Expr lowtide::nn::unreduce(Expr reduced, RankedTensorType from, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (!llvm::is_contained(dims, i))
      kept.push_back(i);
  return broadcast(reduced, from.getShape(), kept);
}

Expr lowtide::nn::dot(Expr a, Expr b, bool transposeA, bool transposeB) {
  SmallVector<int64_t> shape(a.shape());
  int64_t rank = a.rank();
  shape[rank - 2] = a.dim(transposeA ? -1 : -2);
  shape[rank - 1] = b.dim(transposeB ? -2 : -1);
  return build<DotOp>(a, withShape(a, shape), a.get(), b.get(), transposeA, transposeB);
}

template <typename Op> static Expr argExtremum(Expr x, int64_t dim, Type indexType, bool selectLast) {
  return build<Op>(x, RankedTensorType::get(reducedShape(x.shape(), dim), indexType), x.get(), dim, selectLast);
}
Expr lowtide::nn::argmax(Expr x, int64_t dim, Type indexType, bool selectLast) {
  return argExtremum<ArgMaxOp>(x, dim, indexType, selectLast);
}
Expr lowtide::nn::argmin(Expr x, int64_t dim, Type indexType, bool selectLast) {
  return argExtremum<ArgMinOp>(x, dim, indexType, selectLast);
}
Expr lowtide::nn::cumsum(Expr x, int64_t dim, bool exclusive, bool reverse) {
  return build<CumSumOp>(x, x.type(), x.get(), dim, exclusive, reverse);
}

Expr lowtide::nn::gather(Expr x, Expr indices, int64_t axis, std::optional<int64_t> untrainedRow) {
  SmallVector<int64_t> shape(x.shape().take_front(axis));
  llvm::append_range(shape, indices.shape());
  llvm::append_range(shape, x.shape().drop_front(axis + 1));
  return build<GatherOp>(x, withShape(x, shape), x.get(), indices.get(), axis,
                         untrainedRow ? x.getBuilder().getI64IntegerAttr(*untrainedRow) : IntegerAttr());
}

Expr lowtide::nn::gatherElements(Expr x, Expr indices, int64_t axis) {
  return build<GatherElementsOp>(x, withShape(x, indices.shape()), x.get(), indices.get(), axis);
}

std::pair<Expr, Expr> lowtide::nn::selectRows(Expr condition, int64_t elements) {
  auto rows = RankedTensorType::get({condition.dim(0) * elements}, condition.getBuilder().getI64Type());
  auto op = SelectRowsOp::create(condition.getBuilder(), condition.getLoc(), rows, condition.type(), condition.get());
  return {condition.with(op.getRows()), condition.with(op.getValid())};
}

Expr lowtide::nn::scatterAdd(Expr indices, Expr updates, ArrayRef<int64_t> shape, int64_t axis) {
  return build<ScatterAddOp>(updates, withShape(updates, shape), indices.get(), updates.get(), axis);
}

Expr lowtide::nn::scatterElementsAdd(Expr indices, Expr updates, ArrayRef<int64_t> shape, int64_t axis) {
  return build<ScatterElementsAddOp>(updates, withShape(updates, shape), indices.get(), updates.get(), axis);
}

/// Row-major number of the position that the last dimension of `indices` names in the box `shape[batchDims, …)`,
/// counted from the start of the whole box when there are batch dimensions.
static Expr linearIndices(Expr indices, ArrayRef<int64_t> shape, int64_t batchDims) {
  int64_t depth = indices.dim(-1), rank = indices.rank();
  SmallVector<int64_t> outer(indices.shape().drop_back());
  auto outerType = RankedTensorType::get(outer, indices.elementType());
  Expr linear;
  auto append = [&](Expr next, int64_t extent) {
    linear = linear ? linear * static_cast<double>(extent) + next : next;
  };
  for (int64_t i = 0; i < batchDims; ++i)
    append(iota(indices.getBuilder(), indices.getLoc(), outerType, i), shape[i]);
  for (int64_t i = 0; i < depth; ++i) {
    SmallVector<int64_t> starts(rank, 0), sizes(indices.shape());
    starts.back() = i;
    sizes.back() = 1;
    append(reshape(slice(indices, starts, sizes), outer), shape[batchDims + i]);
  }
  return linear ? linear : splat(indices.getBuilder(), indices.getLoc(), outerType, 0.0);
}

/// `shape` with its first `count` dimensions made one.
static SmallVector<int64_t> mergeLeading(ArrayRef<int64_t> shape, int64_t count) {
  int64_t merged = 1;
  for (int64_t extent : shape.take_front(count))
    merged *= extent;
  SmallVector<int64_t> result{merged};
  llvm::append_range(result, shape.drop_front(count));
  return result;
}

Expr lowtide::nn::gatherND(Expr x, Expr indices, int64_t batchDims) {
  Expr linear = linearIndices(indices, x.shape(), batchDims);
  return gather(reshape(x, mergeLeading(x.shape(), batchDims + indices.dim(-1))), linear, 0);
}

Expr lowtide::nn::scatterNDAdd(Expr indices, Expr updates, ArrayRef<int64_t> shape) {
  Expr linear = linearIndices(indices, shape, 0);
  return reshape(scatterAdd(linear, updates, mergeLeading(shape, indices.dim(-1)), 0), shape);
}
