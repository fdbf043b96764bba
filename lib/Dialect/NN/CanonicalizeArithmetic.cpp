//===- CanonicalizeArithmetic.cpp - algebra of elementwise ops -*- C++ -*-===//
//
// Neutral elements, double negation, casts there and back; computing before repeating.
//
//===----------------------------------------------------------------------===//

#include "CanonicalizePatterns.h"
#include "Product.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide::nn;

/// Whether all elements are the number `number`.
static bool isSplatOf(Value value, int64_t number) {
  DenseElementsAttr dense;
  if (!matchPattern(value, m_Constant(&dense)) || !dense.isSplat())
    return false;
  if (isa<FloatType>(dense.getElementType()))
    return dense.getSplatValue<APFloat>().isExactlyValue(static_cast<double>(number));
  return !dense.getElementType().isInteger(1) && dense.getSplatValue<APInt>() == static_cast<uint64_t>(number);
}

/// +0 or −0.
static bool isZero(Value value) {
  DenseElementsAttr dense;
  if (matchPattern(value, m_Constant(&dense)) && dense.isSplat() && isa<FloatType>(dense.getElementType()))
    return dense.getSplatValue<APFloat>().isZero();
  return isSplatOf(value, 0);
}

namespace {
struct SimplifyAdd : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    if (isZero(op.getA()) || isZero(op.getB_())) {
      rewriter.replaceOp(op, isZero(op.getA()) ? op.getB_() : op.getA());
      return success();
    }
    if (auto negated = op.getB_().getDefiningOp<NegOp>()) {
      rewriter.replaceOpWithNewOp<SubOp>(op, op.getA(), negated.getX());
      return success();
    }
    if (auto negated = op.getA().getDefiningOp<NegOp>()) {
      rewriter.replaceOpWithNewOp<SubOp>(op, op.getB_(), negated.getX());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "neither operand is zero or a negation");
  }
};

struct SimplifySub : OpRewritePattern<SubOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SubOp op, PatternRewriter &rewriter) const override {
    if (isZero(op.getB_())) {
      rewriter.replaceOp(op, op.getA());
      return success();
    }
    if (isZero(op.getA())) {
      rewriter.replaceOpWithNewOp<NegOp>(op, op.getB_());
      return success();
    }
    if (auto negated = op.getB_().getDefiningOp<NegOp>()) {
      rewriter.replaceOpWithNewOp<AddOp>(op, op.getA(), negated.getX());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "neither operand is zero, the second no negation");
  }
};

struct SimplifyMul : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    for (auto [factor, other] : {std::pair(op.getA(), op.getB_()), std::pair(op.getB_(), op.getA())}) {
      if (isSplatOf(factor, 1)) {
        rewriter.replaceOp(op, other);
        return success();
      }
      if (isa<FloatType>(op.getType().getElementType()) && isSplatOf(factor, -1)) {
        rewriter.replaceOpWithNewOp<NegOp>(op, other);
        return success();
      }
    }
    return rewriter.notifyMatchFailure(op, "no factor is 1 or -1");
  }
};

struct SimplifyDiv : OpRewritePattern<DivOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DivOp op, PatternRewriter &rewriter) const override {
    if (isSplatOf(op.getB_(), 1)) {
      rewriter.replaceOp(op, op.getA());
      return success();
    }
    if (!isa<FloatType>(op.getType().getElementType()) || !isSplatOf(op.getA(), 1))
      return rewriter.notifyMatchFailure(op, "neither the divisor nor the dividend is 1");
    rewriter.replaceOpWithNewOp<ReciprocalOp>(op, op.getB_());
    return success();
  }
};

struct SimplifyNeg : OpRewritePattern<NegOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(NegOp op, PatternRewriter &rewriter) const override {
    if (auto inner = op.getX().getDefiningOp<NegOp>()) {
      rewriter.replaceOp(op, inner.getX());
      return success();
    }
    auto difference = op.getX().getDefiningOp<SubOp>();
    if (!difference || !difference->hasOneUse())
      return rewriter.notifyMatchFailure(op, "the operand is neither a negation nor a difference of its own");
    rewriter.replaceOpWithNewOp<SubOp>(op, difference.getB_(), difference.getA());
    return success();
  }
};

/// A choice of two constants beside a third one → what was chosen by, or its negation: how exporters make a triangle of
/// ones a mask.
struct SimplifyCompare : OpRewritePattern<CompareOp> {
  using OpRewritePattern::OpRewritePattern;

  static bool holds(ComparePredicate predicate, double a, double b) {
    switch (predicate) {
    case ComparePredicate::eq:
      return a == b;
    case ComparePredicate::ne:
      return a != b;
    case ComparePredicate::lt:
      return a < b;
    case ComparePredicate::le:
      return a <= b;
    case ComparePredicate::gt:
      return a > b;
    case ComparePredicate::ge:
      return a >= b;
    }
    return false;
  }
  LogicalResult matchAndRewrite(CompareOp op, PatternRewriter &rewriter) const override {
    auto choice = op.getA().getDefiningOp<SelectOp>();
    if (!choice || !isa<FloatType>(getElementTypeOrSelf(op.getA())))
      return rewriter.notifyMatchFailure(op, "it compares no choice of numbers");
    std::optional<double> a = getSplat(choice.getA()), b = getSplat(choice.getB_()), with = getSplat(op.getB_());
    if (!a || !b || !with)
      return rewriter.notifyMatchFailure(op, "not all of the numbers are constant");
    const bool ofA = holds(op.getPredicate(), *a, *with), ofB = holds(op.getPredicate(), *b, *with);
    if (ofA == ofB)
      return rewriter.notifyMatchFailure(op, "it does not depend on the choice");
    if (ofA)
      rewriter.replaceOp(op, choice.getC());
    else
      rewriter.replaceOpWithNewOp<NotOp>(op, choice.getC());
    return success();
  }
};

struct SimplifySelect : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op, PatternRewriter &rewriter) const override {
    if (auto negated = op.getC().getDefiningOp<NotOp>()) {
      rewriter.replaceOpWithNewOp<SelectOp>(op, negated.getX(), op.getB_(), op.getA());
      return success();
    }
    if (op.getA() == op.getB_()) {
      rewriter.replaceOp(op, op.getA());
      return success();
    }
    DenseElementsAttr condition;
    if (!matchPattern(op.getC(), m_Constant(&condition)) || !condition.isSplat())
      return rewriter.notifyMatchFailure(op, "the choice is not constant and the alternatives differ");
    rewriter.replaceOp(op, condition.getSplatValue<bool>() ? op.getA() : op.getB_());
    return success();
  }
};

/// A cast to the same type, and one back from a float type that holds every value of the first.
struct SimplifyCast : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op, PatternRewriter &rewriter) const override {
    if (op.getX().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getX());
      return success();
    }
    auto inner = op.getX().getDefiningOp<CastOp>();
    if (!inner || inner.getX().getType() != op.getType())
      return rewriter.notifyMatchFailure(op, "not a cast there and back");
    auto narrow = dyn_cast<FloatType>(op.getType().getElementType());
    auto wide = dyn_cast<FloatType>(inner.getType().getElementType());
    if (!narrow || !wide || narrow.getWidth() >= wide.getWidth())
      return rewriter.notifyMatchFailure(op, "the type between may round");
    rewriter.replaceOp(op, inner.getX());
    return success();
  }
};

/// Whether two movements from the same shape to the same shape take elements to the same places.
bool movesAlike(BroadcastOp a, BroadcastOp b) { return a.getDims() == b.getDims(); }
bool movesAlike(ReshapeOp, ReshapeOp) { return true; }

BroadcastOp moveLike(BroadcastOp model, PatternRewriter &rewriter, Location loc, RankedTensorType type, Value x) {
  return BroadcastOp::create(rewriter, loc, type, x, model.getDims());
}
ReshapeOp moveLike(ReshapeOp, PatternRewriter &rewriter, Location loc, RankedTensorType type, Value x) {
  return ReshapeOp::create(rewriter, loc, type, x);
}

/// op(move(x), move(y), splat) → move(op(x, y, splat)): the same bits. After a broadcast they come from fewer
/// operations; reshapes move down until they meet and vanish. All operands must move alike.
template <typename Move> struct ComputeBeforeMoving : RewritePattern {
  ComputeBeforeMoving(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1 || op->getNumOperands() == 0)
      return failure();
    Move model;
    for (Value operand : op->getOperands()) {
      DenseElementsAttr dense;
      if (matchPattern(operand, m_Constant(&dense)) && dense.isSplat())
        continue;
      auto move = operand.getDefiningOp<Move>();
      if (!move)
        return rewriter.notifyMatchFailure(op, "an operand is neither moved nor a splat");
      if (model && (model.getX().getType().getShape() != move.getX().getType().getShape() || !movesAlike(model, move)))
        return rewriter.notifyMatchFailure(op, "the operands are moved differently");
      model = move;
    }
    if (!model)
      return rewriter.notifyMatchFailure(op, "no operand is moved");

    ArrayRef<int64_t> shape = model.getX().getType().getShape();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      DenseElementsAttr dense;
      if (matchPattern(operand, m_Constant(&dense)))
        operands.push_back(
            ConstantOp::create(rewriter, operand.getLoc(), dense.resizeSplat(dense.getType().clone(shape))));
      else
        operands.push_back(operand.getDefiningOp<Move>().getX());
    }
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Operation *before = rewriter.create(op->getLoc(), op->getName().getIdentifier(), operands,
                                        RankedTensorType::get(shape, type.getElementType()), op->getAttrs());
    rewriter.replaceOp(op, moveLike(model, rewriter, op->getLoc(), type, before->getResult(0)));
    return success();
  }
};

/// nn.reciprocal(√x) → nn.rsqrt, which is defined as that.
struct SimplifyReciprocal : OpRewritePattern<ReciprocalOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReciprocalOp op, PatternRewriter &rewriter) const override {
    auto root = op.getX().getDefiningOp<SqrtOp>();
    if (!root)
      return rewriter.notifyMatchFailure(op, "the operand is no root");
    rewriter.replaceOpWithNewOp<RsqrtOp>(op, root.getX());
    return success();
  }
};

/// pow(x, c) by products, roots or a reciprocal where the exponent allows.
struct SimplifyPow : OpRewritePattern<PowOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PowOp op, PatternRewriter &rewriter) const override {
    std::optional<double> exponent = getSplat(op.getB_());
    if (!exponent || !llvm::is_contained({0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0}, *exponent))
      return rewriter.notifyMatchFailure(op, "the exponent is not one of the simple ones");
    rewriter.replaceOp(op, pow(Expr(rewriter, op.getLoc(), op.getA()), *exponent).get());
    return success();
  }
};

} // namespace

void lowtide::nn::addArithmeticPatterns(RewritePatternSet &patterns) {
  patterns.add<SimplifyAdd, SimplifySub, SimplifyMul, SimplifyDiv, SimplifyNeg, SimplifyCompare, SimplifySelect,
               SimplifyCast, SimplifyReciprocal, SimplifyPow, ComputeBeforeMoving<ReshapeOp>,
               ComputeBeforeMoving<BroadcastOp>>(patterns.getContext());
}
