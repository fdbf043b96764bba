//===- FuseAttention.cpp - attention from its parts ------------*- C++ -*-===//
//
// Recognises softmax(scale · q kᵀ + mask) v, batched over heads, and scores that conditions replace by a number that
// hides.
//
//===----------------------------------------------------------------------===//

#include "Product.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Patterns.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

namespace {
/// A choice of scores to hide or to see: an i1 value whose dimensions are `dims` of the scores'.
struct Condition {
  Value value;
  SmallVector<int64_t> dims;
  bool isHidden; ///< where it holds, scores are hidden
};

/// scale · q kᵀ, restricted by a mask to add and by choices of what is seen.
struct Scores {
  DotOp dot;
  double scale = 1.0;
  Value added; ///< of the scores' type; may be null
  SmallVector<Condition> conditions;
  std::optional<double> hidden; ///< the number of what a condition hides, one for all
  bool causal = false;          ///< a triangle restricts too

  bool isFinite() const { return hidden && !std::isinf(*hidden); }
};

/// What a value is before its matrices (last two dimensions) are repeated over others.
Value peelBatch(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast || broadcast.getDims().size() < 2)
    return value;
  int64_t rank = broadcast.getType().getRank();
  bool keepsMatrix = broadcast.getDims().take_back(2) == ArrayRef<int64_t>{rank - 2, rank - 1} &&
                     broadcast.getX().getType().getShape().take_back(2) == broadcast.getType().getShape().take_back(2);
  return keepsMatrix ? broadcast.getX() : value;
}

/// The same movements of x without the constant factors on the way; `scale` is multiplied by them.
Expr withoutScale(Expr x, double &scale) {
  double found = 1.0;
  Expr base = x.with(peelConstants(x, found));
  scale *= found;
  if (auto reshaped = base.get().getDefiningOp<ReshapeOp>()) {
    Expr inner = withoutScale(x.with(reshaped.getX()), scale);
    return inner.get() == reshaped.getX() ? base : reshape(inner, base.shape());
  }
  if (auto transposed = base.get().getDefiningOp<TransposeOp>()) {
    Expr inner = withoutScale(x.with(transposed.getX()), scale);
    return inner.get() == transposed.getX() ? base : transpose(inner, transposed.getPermutation());
  }
  return base;
}

Expr swapMatrix(Expr x) {
  SmallVector<int64_t> swapped = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
  std::swap(swapped[x.rank() - 1], swapped[x.rank() - 2]);
  return transpose(x, swapped);
}

/// The dimension whose index an iota counts, from the end: 1 for columns, 2 for rows; 0 if `value` is none.
int64_t countedFromEnd(Value value) {
  auto iota = value.getDefiningOp<IotaOp>();
  return iota ? iota.getType().getRank() - static_cast<int64_t>(iota.getDim()) : 0;
}

/// Whether a choice is "row t sees columns ≤ t": an i1 constant, or a comparison of positions; `isHidden`: it says what
/// row t does not see.
bool isCausal(Value visible, bool isHidden) {
  visible = peelBatch(visible);
  auto type = cast<RankedTensorType>(visible.getType());
  if (type.getRank() < 2)
    return false;
  if (auto compare = visible.getDefiningOp<CompareOp>()) {
    int64_t a = countedFromEnd(compare.getA()), b = countedFromEnd(compare.getB_());
    const auto columnFirst = isHidden ? ComparePredicate::gt : ComparePredicate::le;
    const auto rowFirst = isHidden ? ComparePredicate::lt : ComparePredicate::ge;
    return (compare.getPredicate() == columnFirst && a == 1 && b == 2) ||
           (compare.getPredicate() == rowFirst && a == 2 && b == 1);
  }
  DenseElementsAttr dense;
  if (!matchPattern(visible, m_Constant(&dense)))
    return false;
  int64_t rows = type.getDimSize(type.getRank() - 2), columns = type.getShape().back(), position = 0;
  for (bool holds : dense.getValues<bool>()) {
    if ((holds != isHidden) != (position % columns <= position / columns % rows))
      return false;
    ++position;
  }
  return true;
}

bool isCausal(const Condition &condition, int64_t rank) {
  return condition.dims.size() >= 2 && ArrayRef(condition.dims).take_back(2) == ArrayRef<int64_t>{rank - 2, rank - 1} &&
         isCausal(condition.value, condition.isHidden);
}

/// Appends what has to hold together: "hidden by a or by b" is two conditions, each of fewer dimensions than both.
void appendConditions(Condition condition, SmallVectorImpl<Condition> &conditions) {
  Operation *op = condition.value.getDefiningOp();
  auto with = [&](Value value, bool isHidden) { return Condition{value, condition.dims, isHidden}; };
  if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) {
    Condition inner{broadcast.getX(), {}, condition.isHidden};
    for (int64_t dim : broadcast.getDims())
      inner.dims.push_back(condition.dims[dim]);
    return appendConditions(inner, conditions);
  }
  if (auto inverse = dyn_cast_or_null<NotOp>(op))
    return appendConditions(with(inverse->getOperand(0), !condition.isHidden), conditions);
  if (condition.isHidden ? isa_and_nonnull<OrOp>(op) : isa_and_nonnull<AndOp>(op)) {
    for (Value part : op->getOperands())
      appendConditions(with(part, condition.isHidden), conditions);
    return;
  }
  conditions.push_back(std::move(condition));
}

/// Whether adding `value` leaves row t the columns ≤ t: a float constant of zeros and what hides, or a choice of them.
bool isCausalAddend(Value value, llvm::function_ref<bool(double)> hides) {
  value = peelBatch(value);
  if (auto select = value.getDefiningOp<SelectOp>()) {
    std::optional<double> seen = getSplat(select.getA()), hidden = getSplat(select.getB_());
    return seen && *seen == 0.0 && hidden && hides(*hidden) && isCausal(select.getC(), /*isHidden=*/false);
  }
  auto type = cast<RankedTensorType>(value.getType());
  DenseElementsAttr dense;
  if (type.getRank() < 2 || !matchPattern(value, m_Constant(&dense)))
    return false;
  int64_t rows = type.getDimSize(type.getRank() - 2), columns = type.getShape().back(), position = 0;
  for (APFloat element : dense.getValues<APFloat>()) {
    bool seen = position % columns <= position / columns % rows;
    if (seen ? !element.isZero() : !hides(element.convertToDouble()))
      return false;
    ++position;
  }
  return true;
}

/// A mask of the scores' type as attention takes it: rank 4, dimensions that repeat are 1.
Expr compactMask(Expr mask) {
  SmallVector<int64_t> shape(mask.shape());
  if (auto broadcast = mask.get().getDefiningOp<BroadcastOp>()) {
    for (int64_t dim = 0; dim < mask.rank(); ++dim)
      if (!llvm::is_contained(broadcast.getDims(), dim))
        shape[dim] = 1;
    if (broadcast.getX().getType().getNumElements() ==
        RankedTensorType::get(shape, mask.elementType()).getNumElements())
      mask = reshape(mask.with(broadcast.getX()), shape);
  }
  return mask.rank() == 4 ? mask : reshape(mask, {mask.dim(0), 1, mask.dim(1), mask.dim(2)});
}

/// The numbers of the extents that each has in [B, H, T, S] or [B, T, S]; rank 4, as attention takes masks.
SmallVector<int64_t> withHeads(ArrayRef<int64_t> shape) {
  return shape.size() == 4 ? SmallVector<int64_t>(shape) : SmallVector<int64_t>{shape[0], 1, shape[1], shape[2]};
}

/// -inf where a condition hides a score, and 0 elsewhere, of as few elements as the conditions have together.
Expr maskOf(Expr like, ArrayRef<Condition> conditions, int64_t rank) {
  SmallVector<Expr> choices;
  SmallVector<int64_t> joint(4, 1);
  for (const Condition &condition : conditions) {
    Expr choice = like.with(condition.value);
    SmallVector<int64_t> shape(rank, 1);
    for (auto [dim, extent] : llvm::zip_equal(condition.dims, choice.shape()))
      shape[dim] = extent;
    choices.push_back(reshape(choice, withHeads(shape)));
    for (auto [extent, own] : llvm::zip_equal(joint, choices.back().shape()))
      extent = std::max(extent, own);
  }
  Expr mask = splat(like.getBuilder(), like.getLoc(), RankedTensorType::get(joint, like.elementType()), 0.0);
  Expr low = mask.like(-std::numeric_limits<double>::infinity());
  for (auto [choice, condition] : llvm::zip_equal(choices, conditions)) {
    Expr holds = broadcastTo(choice, joint);
    mask = condition.isHidden ? select(holds, low, mask) : select(holds, mask, low);
  }
  return mask;
}

struct FuseAttention : OpRewritePattern<DotOp> {
  using OpRewritePattern::OpRewritePattern;

  /// Numbers that leave nothing of a score next to a visible one, in f64 too.
  static bool hides(double number) { return number <= -1e9; }

  /// The value that `select` keeps where `number`, which hides, does not replace it; null: no such number does.
  static Value matchHiding(SelectOp select, double &number, bool &isHidden) {
    auto type = cast<FloatType>(getElementTypeOrSelf(select.getType()));
    const double lowest = -APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
    for (bool isFirst : {false, true}) {
      std::optional<double> splat = getSplat(isFirst ? select.getA() : select.getB_());
      if (!splat || !(hides(*splat) || *splat <= lowest))
        continue;
      number = *splat;
      isHidden = isFirst;
      return isFirst ? select.getB_() : select.getA();
    }
    return {};
  }

  /// The softmax whose result only this product reads, alone or under the guard select(is_nan(p), 0, p).
  static SoftmaxOp matchProbabilities(Value value, bool &isGuarded) {
    if (auto select = value.getDefiningOp<SelectOp>(); select && select->hasOneUse()) {
      auto isNaN = select.getC().getDefiningOp<IsNaNOp>();
      std::optional<double> otherwise = getSplat(select.getA());
      if (!isNaN || isNaN.getX() != select.getB_() || !otherwise || *otherwise != 0.0)
        return {};
      isGuarded = true;
      auto softmax = select.getB_().getDefiningOp<SoftmaxOp>();
      return softmax && softmax.getY().hasNUses(2) && isNaN->hasOneUse() ? softmax : SoftmaxOp();
    }
    auto softmax = value.getDefiningOp<SoftmaxOp>();
    return softmax && softmax->hasOneUse() ? softmax : SoftmaxOp();
  }

  /// [.., .., .., 1]: the rows in which `mask` hides every column. Under the guard they are 0, and so are their
  /// cotangents; with a finite number they see all columns alike. Attention itself would make NaN of them, and of the
  /// cotangents of all of v.
  static Expr findSightlessRows(Expr mask) {
    Expr sightless = equal(maximum(mask, 3), -std::numeric_limits<double>::infinity());
    return reshape(sightless, {mask.dim(0), mask.dim(1), mask.dim(2), 1});
  }

  static std::optional<Scores> matchScores(Value value) {
    Scores scores;
    const int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
    if (!takeConditions(value, scores))
      return std::nullopt;
    value = peelConstants(value, scores.scale);
    scores.dot = value.getDefiningOp<DotOp>();
    if (auto add = value.getDefiningOp<AddOp>(); add && scores.scale == 1.0)
      for (auto [product, mask] : {std::pair(add.getA(), add.getB_()), std::pair(add.getB_(), add.getA())}) {
        if (scores.dot)
          break;
        // What -inf hides stays hidden, whatever is added to it.
        Scores inner = scores;
        if (!takeConditions(product, inner) ||
            (inner.isFinite() && inner.conditions.size() != scores.conditions.size()))
          continue;
        double scale = 1.0;
        if (auto dot = peelConstants(product, scale).getDefiningOp<DotOp>()) {
          scores = std::move(inner);
          scores.dot = dot;
          scores.scale = scale;
          scores.added = mask;
          if (isCausalAddend(mask, hides)) {
            scores.causal = true;
            scores.added = {};
          }
        }
      }
    if (!scores.dot)
      return std::nullopt;
    auto isTriangle = [&](const Condition &condition) { return isCausal(condition, rank); };
    if (scores.isFinite() && !llvm::all_of(scores.conditions, isTriangle)) {
      // A row may see nothing. What is added, or an -inf of a triangle, would decide among its columns then.
      if (scores.added || scores.causal)
        return std::nullopt;
      return scores;
    }
    scores.causal |= llvm::any_of(scores.conditions, isTriangle);
    llvm::erase_if(scores.conditions, isTriangle);
    return scores;
  }

  /// Takes the conditions around `value` off it; false: they hide by different numbers.
  static bool takeConditions(Value &value, Scores &scores) {
    while (auto select = value.getDefiningOp<SelectOp>()) {
      double number = 0;
      bool isHidden = false;
      Value kept = matchHiding(select, number, isHidden);
      if (!kept)
        return true;
      if (scores.hidden.value_or(number) != number)
        return false;
      scores.hidden = number;
      Condition whole{select.getC(), llvm::to_vector(llvm::seq<int64_t>(0, select.getType().getRank())), isHidden};
      appendConditions(std::move(whole), scores.conditions);
      value = kept;
    }
    return true;
  }

  LogicalResult matchAndRewrite(DotOp op, PatternRewriter &rewriter) const override {
    int64_t rank = op.getType().getRank();
    bool isGuarded = false;
    SoftmaxOp softmax = matchProbabilities(op.getA(), isGuarded);
    if (!softmax || op.getTransposeA() || (rank != 3 && rank != 4))
      return rewriter.notifyMatchFailure(op, "no batched product with probabilities of its own");
    if (static_cast<int64_t>(softmax.getDim()) != rank - 1)
      return rewriter.notifyMatchFailure(op, "the softmax is not along the rows");
    std::optional<Scores> scores = matchScores(softmax.getX());
    if (!scores)
      return rewriter.notifyMatchFailure(op, "the probabilities are not those of a product");
    const bool masksAll = scores->isFinite() && !scores->conditions.empty();
    if (isGuarded && (masksAll || (scores->causal && (!scores->conditions.empty() || scores->added))))
      return rewriter.notifyMatchFailure(op, "which rows see nothing depends on more than the mask");

    // Batch and heads; a third dimension before the matrix counts as the batch of one head.
    Expr v(rewriter, op.getLoc(), op.getB());
    auto split = [&](Expr x) { return rank == 4 ? x : reshape(x, {x.dim(0), 1, x.dim(1), x.dim(2)}); };
    if (op.getTransposeB())
      v = swapMatrix(v);
    double scale = scores->scale;
    Expr q = withoutScale(v.with(scores->dot.getA()), scale), k = withoutScale(v.with(scores->dot.getB()), scale);
    if (scores->dot.getTransposeA())
      q = swapMatrix(q);
    if (!scores->dot.getTransposeB())
      k = swapMatrix(k);
    Expr mask;
    if (scores->added)
      mask = compactMask(v.with(scores->added));
    if (!scores->conditions.empty()) {
      Expr hidden = maskOf(v, scores->conditions, rank);
      if (mask) { // Both restrict; the sum needs one shape.
        SmallVector<int64_t> shape;
        for (int64_t dim = 0; dim < 4; ++dim)
          shape.push_back(std::max(mask.dim(dim), hidden.dim(dim)));
        hidden = broadcastTo(hidden, shape) + broadcastTo(mask, shape);
      }
      mask = hidden;
    }
    q = split(q);
    Expr sightless;
    if ((isGuarded && mask) || masksAll) {
      sightless = findSightlessRows(mask);
      mask = select(broadcastTo(sightless, mask.shape()), mask.like(0.0), mask);
    }
    // Equal scores that no query decides: the mean of v, and nothing for q and k.
    if (masksAll)
      q = select(broadcastTo(sightless, q.shape()), q.like(0.0), q);
    Expr o = attention(q, split(k), split(v), mask, scale, scores->causal)[0];
    if (isGuarded && sightless)
      o = select(broadcastTo(sightless, o.shape()), o.like(0.0), o);
    rewriter.replaceOp(op, reshape(o, op.getType().getShape()).get());
    return success();
  }
};
/// Key heads repeated for the heads that share them → attention with shared key heads, which copies nothing.
struct ShareKeyHeads : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  /// [B, K, S, D], if `heads` is that repeated to [B, K, G, S, D] and reshaped to [B, K · G, S, D].
  static Value matchRepeated(Value heads) {
    auto reshape = heads.getDefiningOp<ReshapeOp>();
    auto broadcast = reshape ? reshape.getX().getDefiningOp<BroadcastOp>() : BroadcastOp();
    if (!broadcast || broadcast.getType().getRank() != 5 || broadcast.getDims() != ArrayRef<int64_t>{0, 1, 3, 4})
      return {};
    ArrayRef<int64_t> repeated = broadcast.getType().getShape(), from = broadcast.getX().getType().getShape();
    ArrayRef<int64_t> to = reshape.getType().getShape();
    bool isWhole = from[0] == repeated[0] && from[1] == repeated[1] && from[2] == repeated[3] && from[3] == repeated[4];
    bool mergesHeads = to[0] == repeated[0] && to[2] == repeated[3] && to[3] == repeated[4];
    return isWhole && mergesHeads ? broadcast.getX() : Value();
  }

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    Value k = matchRepeated(op.getK()), v = matchRepeated(op.getV());
    if (!k || !v ||
        cast<RankedTensorType>(k.getType()).getDimSize(1) != cast<RankedTensorType>(v.getType()).getDimSize(1))
      return rewriter.notifyMatchFailure(op, "the key heads are not repeated ones");
    rewriter.modifyOpInPlace(op, [&] {
      op.getKMutable().assign(k);
      op.getVMutable().assign(v);
    });
    return success();
  }
};
} // namespace

void nn::addAttentionFusion(RewritePatternSet &patterns) {
  patterns.add<FuseAttention, ShareKeyHeads>(patterns.getContext());
}
