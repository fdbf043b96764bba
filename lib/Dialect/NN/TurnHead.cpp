//===- TurnHead.cpp - losses of one product by rows and by columns --------===//
//
// Similarities of pairs are compared by rows and, transposed, by columns: each picture with all texts, each text with
// all pictures. Neither loss is computed in chunks of rows where the other one needs all of them. As a product of its
// own, of the same two factors, the transpose has rows too.
//
//===----------------------------------------------------------------------===//

#include "HeadRows.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// The product is computed twice, and so are its gradients: that pays where it is large next to its factors.
static constexpr int64_t kLeastBytes = 16 << 20;

namespace {
/// What a head's product makes element by element, transposed, by the transposed product.
class Turning {
public:
  explicit Turning(bool always) : always(always) {}

  /// Whether `rows` is large, and so made: what softmax made along rows has them only in its own order.
  bool isFor(Value rows) {
    return (always || countBytes(cast<RankedTensorType>(rows.getType())) >= kLeastBytes) && isMade(rows);
  }
  Expr turn(Expr value);

private:
  bool isMade(Value rows);
  Expr make(Expr value);

  bool always;
  llvm::DenseMap<Value, bool> made;
  llvm::DenseMap<Value, Value> turned;
};
} // namespace

bool Turning::isMade(Value rows) {
  if (auto known = made.find(rows); known != made.end())
    return known->second;
  Operation *op = rows.getDefiningOp();
  bool is = op && isHeadRows(rows, always);
  // Both factors of a product have rows where the second one is transposed.
  if (auto product = dyn_cast_if_present<DotOp>(op))
    is &= product.getTransposeB();
  else
    is = is && op->hasTrait<OpTrait::Elementwise>() && llvm::all_of(op->getOperands(), [&](Value operand) {
           return !isHeadRows(operand, always) || isMade(operand);
         });
  return made[rows] = is;
}

Expr Turning::turn(Expr value) {
  if (Value known = turned.lookup(value))
    return value.with(known);
  Expr made = make(value);
  turned[value] = made;
  return made;
}

Expr Turning::make(Expr value) {
  Operation *op = value.get().getDefiningOp();
  const SmallVector<int64_t> shape{value.dim(1), value.dim(0)};
  if (Expr splat = resizeSplat(value, value, shape))
    return splat;
  if (!isMade(value))
    return transpose(value, {1, 0});
  if (auto product = dyn_cast<DotOp>(op))
    return value.with(DotOp::create(value.getBuilder(), op->getLoc(), value.type().clone(shape), product.getB(),
                                    product.getA(), /*transposeA=*/false, /*transposeB=*/true));
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(turn(value.with(operand)));
  Operation *copy = value.getBuilder().clone(*op);
  copy->setOperands(operands);
  copy->getResult(0).setType(value.type().clone(shape));
  return value.with(copy->getResult(0));
}

namespace {

/// transpose(f(dot(a, b), …)) → f(dot(b, a), …), for f element by element, on the way to a loss.
struct TurnHead : OpRewritePattern<TransposeOp> {
  TurnHead(MLIRContext *context, bool always) : OpRewritePattern(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    Turning turning(always);
    if (op.getPermutation() != ArrayRef<int64_t>{1, 0} || !turning.isFor(op.getX()) || !feedsLoss(op.getY()))
      return rewriter.notifyMatchFailure(op, "not the transpose of logits on the way to a loss");
    rewriter.replaceOp(op, turning.turn(Expr(rewriter, op.getLoc(), op.getX())).get());
    return success();
  }
};

/// softmax and log_softmax down the columns of a product: along the rows of its transpose.
template <typename Op> struct TurnAlong : OpRewritePattern<Op> {
  TurnAlong(MLIRContext *context, bool always) : OpRewritePattern<Op>(context), always(always) {}
  bool always;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Turning turning(always);
    if (op.getX().getType().getRank() != 2 || op.getDim() != 0 || !turning.isFor(op.getX()) || !feedsLoss(op.getY()))
      return rewriter.notifyMatchFailure(op, "not down the columns of logits on the way to a loss");
    Expr rows = turning.turn(Expr(rewriter, op.getLoc(), op.getX()));
    Operation *turned = rewriter.clone(*op);
    turned->setOperands(rows.get());
    turned->setAttr("dim", rewriter.getI64IntegerAttr(1));
    turned->getResult(0).setType(rows.type());
    rewriter.replaceOp(op, transpose(Expr(rewriter, op.getLoc(), turned->getResult(0)), {1, 0}).get());
    return success();
  }
};

/// The diagonal of a transpose is that of what is transposed.
struct DiagonalOfTransposed : OpRewritePattern<GatherElementsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherElementsOp op, PatternRewriter &rewriter) const override {
    auto transposed = op.getX().getDefiningOp<TransposeOp>();
    auto places = op.getIndices().getDefiningOp<IotaOp>();
    if (!transposed || !places || places.getDim() != 0 || op.getAxis() != 1 ||
        transposed.getPermutation() != ArrayRef<int64_t>{1, 0} || op.getY().getType().getDimSize(1) != 1 ||
        op.getY().getType().getDimSize(0) != transposed.getX().getType().getDimSize(0))
      return rewriter.notifyMatchFailure(op, "not the diagonal of a transpose");
    rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(transposed.getX()); });
    return success();
  }
};

} // namespace

void nn::addHeadTurning(RewritePatternSet &patterns, bool always) {
  patterns.add<TurnHead, TurnAlong<SoftmaxOp>, TurnAlong<LogSoftmaxOp>>(patterns.getContext(), always);
  patterns.add<DiagonalOfTransposed>(patterns.getContext());
}
