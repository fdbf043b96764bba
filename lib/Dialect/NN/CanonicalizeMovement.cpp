//===- CanonicalizeMovement.cpp - broadcast, reshape, transpose -*- C++ -*-===//
//
// Compositions become one op; unit dimensions are made by reshape alone; gathers at even steps are slices; one index
// for many positions picks rows.
//
//===----------------------------------------------------------------------===//

#include "CanonicalizePatterns.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/Positions.h"
#include "lowtide/Dialect/NN/Scatter.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide::nn;

/// The extents other than 1.
static SmallVector<int64_t> withoutUnits(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> rest;
  llvm::copy_if(shape, std::back_inserter(rest), [](int64_t extent) { return extent != 1; });
  return rest;
}

namespace {
/// broadcast(broadcast(x)) → broadcast(x).
struct MergeBroadcasts : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<BroadcastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "the operand is no broadcast");
    SmallVector<int64_t> dims;
    for (int64_t dim : inner.getDims())
      dims.push_back(op.getDims()[dim]);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getX(), dims);
    return success();
  }
};

/// The operand of a broadcast has no unit dimension: reshape takes it away. Then keepdims reductions and what spreads
/// them again meet without a reshape between.
struct DropUnitDimensions : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto type = op.getX().getType();
    SmallVector<int64_t> dims;
    for (auto [extent, dim] : llvm::zip(type.getShape(), op.getDims()))
      if (extent != 1)
        dims.push_back(dim);
    if (static_cast<int64_t>(dims.size()) == type.getRank())
      return rewriter.notifyMatchFailure(op, "the operand has no unit dimension");
    Expr squeezed = reshape(Expr(rewriter, op.getLoc(), op.getX()), withoutUnits(type.getShape()));
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), squeezed.get(), dims);
    return success();
  }
};

/// A broadcast that repeats nothing is a reshape.
struct BroadcastToReshape : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    if (op.getX().getType().getNumElements() != op.getType().getNumElements())
      return rewriter.notifyMatchFailure(op, "elements are repeated");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getX());
    return success();
  }
};

/// reshape(broadcast(x)) → broadcast(x), when the reshape only inserts or drops unit dimensions.
struct ReshapeOfBroadcast : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<BroadcastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "the operand is no broadcast");
    ArrayRef<int64_t> from = op.getX().getType().getShape(), to = op.getType().getShape();
    if (withoutUnits(from) != withoutUnits(to) || llvm::is_contained(inner.getX().getType().getShape(), 1))
      return rewriter.notifyMatchFailure(op, "more than unit dimensions change");
    // Dimension of `to` for each one of `from` that is no unit.
    SmallVector<int64_t> target(from.size(), -1);
    int64_t next = 0;
    for (auto [i, extent] : llvm::enumerate(from)) {
      if (extent == 1)
        continue;
      while (to[next] == 1)
        ++next;
      target[i] = next++;
    }
    SmallVector<int64_t> dims;
    for (int64_t dim : inner.getDims())
      dims.push_back(target[dim]);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getX(), dims);
    return success();
  }
};

/// transpose(transpose(x)) → transpose(x); transpose(broadcast(x)) → broadcast(transpose(x)).
struct MergeIntoTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    if (auto inner = op.getX().getDefiningOp<TransposeOp>()) {
      SmallVector<int64_t> permutation;
      for (int64_t dim : op.getPermutation())
        permutation.push_back(inner.getPermutation()[dim]);
      Expr x(rewriter, op.getLoc(), inner.getX());
      rewriter.replaceOp(op, transpose(x, permutation).get());
      return success();
    }
    auto inner = op.getX().getDefiningOp<BroadcastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "the operand is neither a transpose nor a broadcast");
    // (dimension after the transpose, dimension of x), in ascending order.
    SmallVector<std::pair<int64_t, int64_t>> moved;
    for (auto [i, dim] : llvm::enumerate(inner.getDims()))
      moved.emplace_back(llvm::find(op.getPermutation(), dim) - op.getPermutation().begin(), i);
    llvm::sort(moved);
    SmallVector<int64_t> dims, permutation;
    for (auto [dim, source] : moved) {
      dims.push_back(dim);
      permutation.push_back(source);
    }
    Expr x = transpose(Expr(rewriter, op.getLoc(), inner.getX()), permutation);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), x.get(), dims);
    return success();
  }
};

/// A chain that a transpose moves through has no more ops than this.
constexpr unsigned kMostMovedOps = 12;

/// Whether elementwise ops that nothing else reads make `value` of repeated elements, positions and splats alone: in
/// another order they are repetitions still, and no transpose is left.
bool isMadeOfRepeated(Value value, unsigned &numOps) {
  DenseElementsAttr dense;
  if (matchPattern(value, m_Constant(&dense)))
    return dense.isSplat();
  Operation *maker = value.getDefiningOp();
  if (!maker || isa<BroadcastOp, IotaOp>(maker))
    return maker;
  return maker->hasTrait<OpTrait::Elementwise>() && maker->getNumResults() == 1 && maker->getNumOperands() > 0 &&
         value.hasOneUse() && ++numOps <= kMostMovedOps &&
         llvm::all_of(maker->getOperands(), [&](Value operand) { return isMadeOfRepeated(operand, numOps); });
}

/// transpose(f(x, y)) → f(transpose(x), transpose(y)), of repeated elements alone: classes of labels, as channels.
struct TransposeOfRepeated : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    Operation *maker = op.getX().getDefiningOp();
    unsigned numOps = 0;
    if (!maker || !maker->hasTrait<OpTrait::Elementwise>() || !isMadeOfRepeated(op.getX(), numOps))
      return rewriter.notifyMatchFailure(op, "the operand is not made of repeated elements");
    SmallVector<Value> operands;
    for (Value operand : maker->getOperands())
      operands.push_back(transpose(Expr(rewriter, op.getLoc(), operand), op.getPermutation()));
    rewriter.replaceOp(op, rewriter.create(maker->getLoc(), maker->getName().getIdentifier(), operands, op.getType(),
                                           maker->getAttrs()));
    return success();
  }
};

/// A transpose that keeps the order of all dimensions but units is a reshape.
struct TransposeToReshape : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    SmallVector<int64_t> order;
    for (int64_t dim : op.getPermutation())
      if (op.getX().getType().getDimSize(dim) != 1)
        order.push_back(dim);
    if (!llvm::is_sorted(order))
      return rewriter.notifyMatchFailure(op, "elements change their order");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getX());
    return success();
  }
};

/// Positions along a dimension that a movement passes on are positions still: iota of its result.
template <typename Op> struct MovedIota : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto iota = op.getX().template getDefiningOp<IotaOp>();
    if (!iota)
      return rewriter.notifyMatchFailure(op, "the operand has no positions");
    for (int64_t d = 0, rank = op.getY().getType().getRank(); d < rank; ++d)
      if (getPassedDim(op, 0, d) == static_cast<int64_t>(iota.getDim())) {
        rewriter.replaceOpWithNewOp<IotaOp>(op, op.getY().getType(), d);
        return success();
      }
    return rewriter.notifyMatchFailure(op, "the dimension does not pass through");
  }
};

/// A gather whose indices are constants at even ascending steps reads a slice. Exporters index with ranges, masks of
/// all samples among them: a slice tells which sample it reads, a gather does not.
struct GatherToSlice : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    DenseIntElementsAttr indices;
    if (op.getUntrainedRow() || !matchPattern(op.getIndices(), m_Constant(&indices)) || indices.empty())
      return rewriter.notifyMatchFailure(op, "the indices are no constants");
    ArrayRef<int64_t> from = op.getX().getType().getShape();
    const int64_t axis = op.getAxis(), count = indices.getNumElements();
    auto values = indices.getValues<APInt>();
    const int64_t first = values[0].getSExtValue(), step = count > 1 ? values[1].getSExtValue() - first : 1;
    if (step < 1 || first < 0 || first + (count - 1) * step >= from[axis])
      return rewriter.notifyMatchFailure(op, "the indices do not ascend within the axis");
    for (auto [i, value] : llvm::enumerate(values))
      if (value.getSExtValue() != first + int64_t(i) * step)
        return rewriter.notifyMatchFailure(op, "the steps are not even");
    SmallVector<int64_t> starts(from.size(), 0), sizes(from), strides(from.size(), 1);
    starts[axis] = first;
    sizes[axis] = count;
    strides[axis] = step;
    Expr x(rewriter, op.getLoc(), op.getX());
    rewriter.replaceOp(op, reshape(slice(x, starts, sizes, strides), op.getType().getShape()).get());
    return success();
  }
};

/// The index of each position of dimension `axis`, where one stands for all positions of the other dimensions; else
/// null.
Value findSharedIndex(Value indices, int64_t axis) {
  auto repeated = indices.getDefiningOp<BroadcastOp>();
  if (!repeated || repeated.getDims() != ArrayRef<int64_t>(axis))
    return {};
  return repeated.getX().getType().getDimSize(0) == repeated.getType().getDimSize(axis) ? repeated.getX() : Value();
}

/// Elements whose index says nothing of the other dimensions are rows that are picked as a whole: the index is not
/// written out for each element. Exporters expand it, as PyTorch wants it.
struct ElementsToGather : OpRewritePattern<GatherElementsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherElementsOp op, PatternRewriter &rewriter) const override {
    const int64_t axis = op.getAxis();
    Value index = findSharedIndex(op.getIndices(), axis);
    if (!index)
      return rewriter.notifyMatchFailure(op, "elements have indices of their own");
    SmallVector<int64_t> sizes(op.getY().getType().getShape());
    sizes[axis] = op.getX().getType().getDimSize(axis);
    Expr x(rewriter, op.getLoc(), op.getX());
    Expr part = slice(x, SmallVector<int64_t>(sizes.size(), 0), sizes);
    rewriter.replaceOp(op, gather(part, x.with(index), axis).get());
    return success();
  }
};

struct ElementsToScatterAdd : OpRewritePattern<ScatterElementsAddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScatterElementsAddOp op, PatternRewriter &rewriter) const override {
    const int64_t axis = op.getAxis();
    Value index = findSharedIndex(op.getIndices(), axis);
    SmallVector<int64_t> shape(op.getUpdates().getType().getShape()), none(shape.size(), 0), high;
    if (!index)
      return rewriter.notifyMatchFailure(op, "elements have indices of their own");
    shape[axis] = op.getY().getType().getDimSize(axis);
    for (auto [whole, part] : llvm::zip_equal(op.getY().getType().getShape(), shape))
      high.push_back(whole - part);
    Expr updates(rewriter, op.getLoc(), op.getUpdates());
    Expr sum = scatterAdd(updates.with(index), updates, shape, axis);
    rewriter.replaceOp(op, (shape == op.getY().getType().getShape() ? sum : pad(sum, none, high)).get());
    return success();
  }
};

struct ElementsToScatter : OpRewritePattern<ScatterElementsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScatterElementsOp op, PatternRewriter &rewriter) const override {
    const int64_t axis = op.getAxis();
    Value index = findSharedIndex(op.getIndices(), axis);
    SmallVector<int64_t> shape(op.getUpdates().getType().getShape());
    shape[axis] = op.getY().getType().getDimSize(axis);
    if (!index || ArrayRef<int64_t>(shape) != op.getY().getType().getShape())
      return rewriter.notifyMatchFailure(op, "elements have indices of their own");
    rewriter.replaceOpWithNewOp<ScatterOp>(op, op.getType(), op.getKind(), op.getX(), index, op.getUpdates(), axis);
    return success();
  }
};
} // namespace

void lowtide::nn::addMovementPatterns(RewritePatternSet &patterns) {
  patterns.add<MergeBroadcasts, DropUnitDimensions, BroadcastToReshape, ReshapeOfBroadcast, MergeIntoTranspose,
               TransposeOfRepeated, TransposeToReshape, GatherToSlice, ElementsToGather, ElementsToScatterAdd,
               ElementsToScatter, MovedIota<ReshapeOp>, MovedIota<SliceOp>, MovedIota<TransposeOp>>(
      patterns.getContext());
}

void NNDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  addArithmeticPatterns(patterns);
  addMovementPatterns(patterns);
  addContractionPatterns(patterns);
}
