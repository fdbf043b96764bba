//===- HeadRows.cpp - logits under other shapes ---------------------------===//

#include "HeadRows.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t nn::countBytes(RankedTensorType type) {
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

bool nn::isLargeHead(DotOp product) {
  constexpr int64_t smallLogitsBytes = 1 << 20;
  const int64_t logitsBytes = countBytes(product.getY().getType());
  return logitsBytes >= smallLogitsBytes && logitsBytes / 4 >= countBytes(product.getB().getType());
}

/// Ops between a product and its loss; more are no head.
static constexpr size_t kMostOps = 256;

bool nn::keepsRows(Operation *op, int64_t classes) {
  if (auto softmax = dyn_cast<SoftmaxOp>(op))
    return int64_t(softmax.getDim()) == classes;
  if (auto softmax = dyn_cast<LogSoftmaxOp>(op))
    return int64_t(softmax.getDim()) == classes;
  return op->hasTrait<OpTrait::Elementwise>();
}

bool nn::isHeadRows(Value value, bool always) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Value> worklist{value};
  while (!worklist.empty() && seen.size() < kMostOps) {
    Value at = worklist.pop_back_val();
    Operation *op = at.getDefiningOp();
    if (!op || typeOf(at).getRank() != 2 || typeOf(at).getShape() != typeOf(value).getShape() ||
        !seen.insert(op).second)
      continue;
    if (auto product = dyn_cast<DotOp>(op)) {
      const bool isRows = !product.getTransposeA() && product.getB().getType().getRank() == 2;
      if (isRows && product.getY().getType().getDimSize(1) > product.getA().getType().getDimSize(1) &&
          (always || isLargeHead(product)))
        return true;
    } else if (keepsRows(op, 1)) {
      llvm::append_range(worklist, op->getOperands());
    }
  }
  return false;
}

Expr nn::resizeSplat(Expr at, Value value, ArrayRef<int64_t> shape) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)))
    return Expr();
  return constant(at.getBuilder(), at.getLoc(), splat.resizeSplat(typeOf(value).clone(shape)));
}

bool nn::meetsHead(Value value, bool always) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      if (seen.size() == kMostOps)
        return false;
      if (!keepsRows(user, 1) || user->getNumResults() != 1 ||
          typeOf(user->getResult(0)).getShape() != typeOf(value).getShape() || !seen.insert(user).second)
        continue;
      if (isHeadRows(user->getResult(0), always))
        return true;
      worklist.push_back(user->getResult(0));
    }
  }
  return false;
}

bool nn::feedsLoss(Value value) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Value> worklist{value};
  bool isReduced = false;
  while (!worklist.empty()) {
    Value at = worklist.pop_back_val();
    for (Operation *user : at.getUsers()) {
      if (seen.size() == kMostOps)
        return false;
      if (!seen.insert(user).second || user->hasTrait<OpTrait::IsTerminator>())
        continue;
      auto picked = dyn_cast<GatherElementsOp>(user);
      const bool reduces =
          isa<SoftmaxCrossEntropyOp, ReductionInterface>(user) ||
          (picked && 2 * picked.getIndices().getType().getNumElements() <= typeOf(at).getNumElements());
      isReduced |= reduces || isa<LogSoftmaxOp, SoftmaxOp>(user);
      auto rows = dyn_cast<GatherOp>(user);
      if (user->hasTrait<OpTrait::Elementwise>() ||
          isa<ReshapeOp, TransposeOp, SliceOp, ConcatOp, LogSoftmaxOp, SoftmaxOp>(user) || (rows && rows.getX() == at))
        llvm::append_range(worklist, user->getResults());
      else if (!reduces && !picked)
        return false; // another layer
    }
  }
  return isReduced;
}

static bool isIdentity(const HeadMove &move) {
  return move.permutation.empty() ? move.from == move.to : llvm::is_sorted(move.permutation);
}

void HeadView::add(HeadMove move) {
  while (!isIdentity(move)) {
    if (moves.empty() || moves.back().permutation.empty() != move.permutation.empty())
      return moves.push_back(std::move(move));
    HeadMove before = moves.pop_back_val();
    for (int64_t &dim : move.permutation)
      dim = before.permutation[dim];
    move.from = before.from;
  }
}

std::optional<HeadView> HeadView::get(Value value, bool always) {
  HeadView view;
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ReshapeOp, TransposeOp>(op))
      break;
    view.ops.push_back(op);
    value = op->getOperand(0);
  }
  view.rows = value;
  if (!isHeadRows(value, always))
    return std::nullopt;
  for (Operation *op : llvm::reverse(view.ops)) {
    HeadMove move{llvm::to_vector(typeOf(op->getOperand(0)).getShape()),
                  llvm::to_vector(typeOf(op->getResult(0)).getShape()),
                  {}};
    if (auto moved = dyn_cast<TransposeOp>(op))
      move.permutation.assign(moved.getPermutation().begin(), moved.getPermutation().end());
    view.add(std::move(move));
  }
  return view;
}

static SmallVector<int64_t> invert(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [to, from] : llvm::enumerate(permutation))
    inverse[from] = int64_t(to);
  return inverse;
}

Expr HeadView::undo(Expr x) const {
  for (const HeadMove &move : llvm::reverse(moves))
    x = move.permutation.empty() ? reshape(x, move.from) : transpose(x, invert(move.permutation));
  return x;
}

Expr HeadView::redo(Expr x) const {
  for (const HeadMove &move : moves)
    x = move.permutation.empty() ? reshape(x, move.to) : transpose(x, move.permutation);
  return x;
}

static int64_t multiply(ArrayRef<int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
}

std::optional<int64_t> HeadView::findClassDim() const {
  int64_t classes = 1;
  for (const auto &[from, to, permutation] : moves) {
    if (!permutation.empty()) {
      SmallVector<int64_t> others;
      for (int64_t dim : permutation)
        if (dim != classes && from[dim] != 1)
          others.push_back(dim);
      if (!llvm::is_sorted(others))
        return std::nullopt;
      classes = llvm::find(permutation, classes) - permutation.begin();
      continue;
    }
    const int64_t before = multiply(ArrayRef(from).take_front(classes)), extent = from[classes];
    int64_t dim = 0;
    while (dim < int64_t(to.size()) && !(to[dim] == extent && multiply(ArrayRef(to).take_front(dim)) == before))
      ++dim;
    if (dim == int64_t(to.size()))
      return std::nullopt;
    classes = dim;
  }
  return classes;
}
