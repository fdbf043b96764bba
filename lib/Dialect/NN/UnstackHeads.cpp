//===- UnstackHeads.cpp - two heads that a program stacks -----------------===//
//
// The mixture of two distributions is written as a log-sum-exp over a stack of their logarithms. One after the other
// they are rows of a head each, and nothing as large as the stack is needed.
//
//===----------------------------------------------------------------------===//

#include "HeadRows.h"
#include "lowtide/Dialect/NN/Patterns.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

/// Two tensors, each with one element in dimension `dim`, of which a head makes one.
struct Stack {
  /// Nothing where `value` is no such stack.
  static std::optional<Stack> get(Value value, bool always) {
    auto concat = value.getDefiningOp<ConcatOp>();
    // Of more than two, extrema would share their cotangents otherwise.
    if (!concat || concat.getXs().size() != 2)
      return std::nullopt;
    const auto dim = int64_t(concat.getDim());
    auto isOne = [&](Value x) { return typeOf(x).getDimSize(dim) == 1; };
    auto isHead = [&](Value x) { return HeadView::get(x, always).has_value(); };
    if (!llvm::all_of(concat.getXs(), isOne) || !llvm::any_of(concat.getXs(), isHead))
      return std::nullopt;
    return Stack{dim, {concat.getXs()[0], concat.getXs()[1]}};
  }

  int64_t dim;
  std::array<Value, 2> pieces;
};

/// f(stack(a, b), …) → stack(f(a, …), f(b, …)), for f element by element.
struct UnstackElements : OpTraitRewritePattern<OpTrait::Elementwise> {
  UnstackElements(MLIRContext *context, bool always) : OpTraitRewritePattern(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    std::optional<Stack> stack;
    for (Value operand : op->getOperands())
      if (!stack)
        stack = Stack::get(operand, always);
    if (!stack || op->getNumResults() != 1 || !feedsLoss(op->getResult(0)))
      return rewriter.notifyMatchFailure(op, "no elements of two heads");
    if (!llvm::all_of(op->getOperands(), [&](Value x) { return isAlike(x, *stack) || isSame(x, stack->dim); }))
      return rewriter.notifyMatchFailure(op, "an operand is no stack, and not the same for both");
    std::array<SmallVector<Value>, 2> operands;
    for (Value operand : op->getOperands())
      for (auto [list, value] : llvm::zip(operands, part(operand, *stack, rewriter, op->getLoc())))
        list.push_back(value);
    SmallVector<Expr> results;
    for (ArrayRef<Value> of : operands) {
      Operation *copy = rewriter.clone(*op);
      copy->setOperands(of);
      copy->getResult(0).setType(typeOf(of.front()).clone(typeOf(op->getResult(0)).getElementType()));
      results.push_back(Expr(rewriter, op->getLoc(), copy->getResult(0)));
    }
    rewriter.replaceOp(op, concat(results, stack->dim).get());
    return success();
  }

private:
  bool isAlike(Value value, const Stack &stack) const {
    std::optional<Stack> own = Stack::get(value, always);
    return own && own->dim == stack.dim;
  }

  /// Whether both halves along dimension `dim` are the same.
  static bool isSame(Value value, int64_t dim) {
    auto spread = value.getDefiningOp<BroadcastOp>();
    SplatElementsAttr splat;
    return matchPattern(value, m_Constant(&splat)) || (spread && !llvm::is_contained(spread.getDims(), dim));
  }

  std::array<Value, 2> part(Value value, const Stack &stack, PatternRewriter &rewriter, Location loc) const {
    if (isAlike(value, stack))
      return Stack::get(value, always)->pieces;
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape[stack.dim] = 1;
    Expr both = resizeSplat(Expr(rewriter, loc, value), value, shape);
    if (auto spread = value.getDefiningOp<BroadcastOp>())
      both = broadcast(Expr(rewriter, loc, spread.getX()), shape, spread.getDims());
    return {both.get(), both.get()};
  }
};

/// A reduction over a stack is an op of both.
template <typename Reduction, typename Binary> struct UnstackReduction : OpRewritePattern<Reduction> {
  UnstackReduction(MLIRContext *context, bool always) : OpRewritePattern<Reduction>(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(Reduction op, PatternRewriter &rewriter) const override {
    std::optional<Stack> stack = Stack::get(op.getX(), always);
    if (!stack || op.getDims() != ArrayRef<int64_t>{stack->dim})
      return rewriter.notifyMatchFailure(op, "not over a stack of two heads");
    ArrayRef<int64_t> shape = op.getY().getType().getShape();
    auto get = [&](Value piece) { return reshape(Expr(rewriter, op.getLoc(), piece), shape).get(); };
    rewriter.replaceOpWithNewOp<Binary>(op, op.getY().getType(), get(stack->pieces[0]), get(stack->pieces[1]));
    return success();
  }
};

} // namespace

void nn::addHeadUnstacking(RewritePatternSet &patterns, bool always) {
  patterns.add<UnstackElements, UnstackReduction<ReduceSumOp, AddOp>, UnstackReduction<ReduceMaxOp, MaxOp>,
               UnstackReduction<ReduceMinOp, MinOp>>(patterns.getContext(), always);
}
