//===- StackPieces.cpp - pieces that are computed alike, computed once ----===//
//
// A loop over samples or heads arrives unrolled: each round takes a slice, computes, and the results are put after one
// another. Computed once with one dimension more, they are as many ops as one round has, and samples are counted again.
//
// 1. From the operands of the concatenation backwards: ops of one kind with the same attributes, up to slices that
//    stand one after another in one tensor, constants, and values that all rounds share.
// 2. If it comes to an end everywhere, and nothing else reads what is between, each group becomes one op with the
// rounds
//    in front.
//
//===----------------------------------------------------------------------===//

#include "PrefixedShapes.h"
#include "lowtide/Dialect/NN/Expr.h"
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Patterns.h"
#include "lowtide/Interfaces/OpInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// Constants of all rounds together hold no more numbers than this.
static constexpr int64_t kMaxConstants = 4096;
/// Groups that one concatenation may consist of.
static constexpr size_t kMaxGroups = 256;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static SmallVector<int64_t> shifted(ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [](int64_t dim) { return dim + 1; });
}

namespace {
enum class Shape : uint8_t {
  Same,      ///< one value for all rounds
  Slices,    ///< one after another in one tensor
  Constants, ///< numbers of each round
  Op,        ///< one op for each round
};

/// What the rounds hold in one place.
struct Group {
  Shape shape;
  SmallVector<Value> pieces;
  SmallVector<unsigned> operands; ///< of `Op`: numbers of groups
  int64_t dim = 0;                ///< of `Slices`
};

/// The groups of one concatenation, operands first.
class Rounds {
public:
  explicit Rounds(ConcatOp concat) : concat(concat), count(concat.getXs().size()) {}

  /// Null, or why the pieces are not computed alike.
  const char *match();
  /// The concatenation's value.
  Value build(PatternRewriter &rewriter);

private:
  std::optional<unsigned> find(ArrayRef<Value> pieces);
  bool matchSlices(Group &group);
  bool mayStack(Operation *op, const Group &group);
  Value buildSlices(const Group &group);
  Value buildOp(const Group &group);
  /// The group's value with the rounds in front.
  Expr stacked(unsigned group);

  ConcatOp concat;
  int64_t count;
  std::vector<Group> groups;
  DenseMap<Value, unsigned> groupOf;
  OpBuilder *builder = nullptr;
  SmallVector<Value> built;
};
} // namespace

/// Whether an op with the rounds in front computes what one of the kind does for each of them.
bool Rounds::mayStack(Operation *op, const Group &group) {
  auto isSame = [&](unsigned operand) { return groups[group.operands[operand]].shape == Shape::Same; };
  if (op->hasTrait<OpTrait::Elementwise>() || isa<ReductionInterface>(op))
    return true;
  if (isa<GatherOp>(op)) // each round from its own, or all from one
    return isSame(1) || (isSame(0) && cast<GatherOp>(op).getAxis() == 0);
  if (auto dot = dyn_cast<DotOp>(op)) // rows of all rounds with one matrix, or each with its own
    return isSame(1) ? !isSame(0) && !dot.getTransposeA() && typeOf(dot.getA()).getRank() == 2 : !isSame(0);
  return isa<BroadcastOp, ReshapeOp, TransposeOp, ReverseOp, SliceOp, PadOp, ConcatOp, GatherElementsOp, SoftmaxOp,
             LogSoftmaxOp>(op);
}

bool Rounds::matchSlices(Group &group) {
  auto first = group.pieces.front().getDefiningOp<SliceOp>();
  if (!first || llvm::any_of(first.getStrides(), [](int64_t stride) { return stride != 1; }))
    return false;
  group.dim = -1;
  for (auto [i, piece] : llvm::enumerate(group.pieces)) {
    auto slice = piece.getDefiningOp<SliceOp>();
    if (!slice || slice.getX() != first.getX() || slice.getStrides() != first.getStrides())
      return false;
    for (int64_t dim = 0; dim < first.getType().getRank(); ++dim) {
      const int64_t step = slice.getStarts()[dim] - first.getStarts()[dim];
      if (i == 1 && step)
        group.dim = group.dim < 0 ? dim : first.getType().getRank();
      if (step != (dim == group.dim ? int64_t(i) * first.getType().getDimSize(dim) : 0))
        return false;
    }
  }
  return group.dim >= 0;
}

std::optional<unsigned> Rounds::find(ArrayRef<Value> pieces) {
  if (auto known = groupOf.find(pieces.front());
      known != groupOf.end() && ArrayRef<Value>(groups[known->second].pieces) == pieces)
    return known->second;
  Group group{Shape::Same, llvm::to_vector(pieces), {}};
  Operation *first = pieces.front().getDefiningOp();
  if (!llvm::all_equal(pieces)) {
    if (!first || first->getNumResults() != 1 || first->getNumRegions() || groups.size() >= kMaxGroups)
      return std::nullopt;
    bool sameAttributes = true;
    for (Value piece : pieces) {
      Operation *op = piece.getDefiningOp();
      if (!op || op->getName() != first->getName() || op->getBlock() != first->getBlock() ||
          piece.getType() != pieces.front().getType() || op->getNumOperands() != first->getNumOperands() ||
          op->getOperandTypes() != first->getOperandTypes())
        return std::nullopt;
      sameAttributes &= op->getPropertiesAsAttribute() == first->getPropertiesAsAttribute();
    }
    if (isa<ConstantOp>(first)) {
      group.shape = Shape::Constants;
      if (count * typeOf(pieces.front()).getNumElements() > kMaxConstants || !llvm::all_of(pieces, [](Value piece) {
            return isa<DenseElementsAttr>(piece.getDefiningOp<ConstantOp>().getValue());
          }))
        return std::nullopt;
    } else if (matchSlices(group)) {
      group.shape = Shape::Slices;
    } else {
      if (!sameAttributes)
        return std::nullopt;
      group.shape = Shape::Op;
      for (unsigned i = 0; i < first->getNumOperands(); ++i) {
        std::optional<unsigned> operand =
            find(llvm::map_to_vector(pieces, [&](Value piece) { return piece.getDefiningOp()->getOperand(i); }));
        if (!operand)
          return std::nullopt;
        group.operands.push_back(*operand);
      }
      if (!mayStack(first, group))
        return std::nullopt;
    }
  }
  groups.push_back(std::move(group));
  return groupOf[pieces.front()] = groups.size() - 1;
}

const char *Rounds::match() {
  if (count < 2)
    return "one piece";
  if (!find(llvm::to_vector(concat.getXs())))
    return "the pieces are not computed alike";
  DenseSet<Operation *> own{concat};
  bool computes = false;
  for (const Group &group : groups)
    if (group.shape == Shape::Op)
      for (Value piece : group.pieces) {
        own.insert(piece.getDefiningOp());
        auto facts = dyn_cast<FactsInterface>(piece.getDefiningOp());
        computes |= facts && facts.getFacts().family != OpFamily::Movement;
      }
  if (!computes)
    return "nothing is computed";
  for (const Group &group : groups)
    if (group.shape == Shape::Op)
      for (Value piece : group.pieces)
        if (!llvm::all_of(piece.getUsers(), [&](Operation *user) { return own.contains(user); }))
          return "a piece is read elsewhere";
  return nullptr;
}

Expr Rounds::stacked(unsigned group) {
  Expr value(*builder, concat.getLoc(), built[group]);
  if (groups[group].shape != Shape::Same)
    return value;
  return broadcast(value, prefixed(count, value.shape()), shifted(llvm::to_vector(llvm::seq<int64_t>(value.rank()))));
}

Value Rounds::buildSlices(const Group &group) {
  auto first = group.pieces.front().getDefiningOp<SliceOp>();
  SmallVector<int64_t> sizes(first.getType().getShape()), split = sizes;
  sizes[group.dim] *= count;
  split.insert(split.begin() + group.dim, count);
  Expr all = reshape(slice(Expr(*builder, concat.getLoc(), first.getX()), first.getStarts(), sizes), split);
  SmallVector<int64_t> permutation{group.dim};
  for (int64_t dim = 0; dim < all.rank(); ++dim)
    if (dim != group.dim)
      permutation.push_back(dim);
  return group.dim ? transpose(all, permutation) : all;
}

Value Rounds::buildOp(const Group &group) {
  Operation *first = group.pieces.front().getDefiningOp();
  RankedTensorType type = typeOf(first->getResult(0));
  SmallVector<int64_t> shape = prefixed(count, type.getShape());
  auto operand = [&](unsigned i) { return stacked(group.operands[i]); };
  auto isSame = [&](unsigned i) { return groups[group.operands[i]].shape == Shape::Same; };
  auto raw = [&](unsigned i) { return Expr(*builder, first->getLoc(), built[group.operands[i]]); };
  return TypeSwitch<Operation *, Value>(first)
      .Case([&](BroadcastOp op) { return broadcast(operand(0), shape, prefixed(0, op.getDims(), 1)); })
      .Case([&](ReshapeOp) { return reshape(operand(0), shape); })
      .Case([&](TransposeOp op) { return transpose(operand(0), prefixed(0, op.getPermutation(), 1)); })
      .Case([&](ReverseOp op) { return reverse(operand(0), shifted(op.getDims())); })
      .Case([&](SliceOp op) {
        return slice(operand(0), prefixed(0, op.getStarts()), shape, prefixed(1, op.getStrides()));
      })
      .Case([&](PadOp op) {
        return pad(operand(0), prefixed(0, op.getLow()), prefixed(0, op.getHigh()), prefixed(0, op.getInterior()),
                   op.getValue().convertToDouble());
      })
      .Case([&](ConcatOp op) {
        SmallVector<Expr> parts;
        for (unsigned i = 0; i < op->getNumOperands(); ++i)
          parts.push_back(operand(i));
        return nn::concat(parts, op.getDim() + 1);
      })
      .Case([&](GatherOp op) {
        std::optional<int64_t> untrained;
        if (op.getUntrainedRow())
          untrained = int64_t(*op.getUntrainedRow());
        return isSame(1) ? gather(operand(0), raw(1), op.getAxis() + 1, untrained)
                         : gather(raw(0), operand(1), 0, untrained);
      })
      .Case([&](GatherElementsOp op) { return gatherElements(operand(0), operand(1), op.getAxis() + 1); })
      .Case([&](SoftmaxOp op) { return softmax(operand(0), op.getDim() + 1); })
      .Case([&](LogSoftmaxOp op) { return logSoftmax(operand(0), op.getDim() + 1); })
      .Case([&](DotOp op) {
        // Its result may be wider than its operands.
        auto product = [&](Expr a, Expr b, ArrayRef<int64_t> dims) {
          return a.with(DotOp::create(a.getBuilder(), op.getLoc(), op.getType().clone(dims), a, b, op.getTransposeA(),
                                      op.getTransposeB()));
        };
        if (!isSame(1))
          return product(operand(0), operand(1), shape);
        Expr rows = operand(0);
        rows = reshape(rows, {count * rows.dim(1), rows.dim(2)});
        return reshape(product(rows, raw(1), {rows.dim(0), shape.back()}), shape);
      })
      .Default([&](Operation *op) {
        // Elementwise, or a reduction.
        OperationState state(op->getLoc(), op->getName());
        for (unsigned i = 0; i < op->getNumOperands(); ++i)
          state.addOperands(operand(i).get());
        state.addTypes(type.clone(shape));
        state.addAttributes(op->getAttrs());
        if (auto reduction = dyn_cast<ReductionInterface>(op))
          state.attributes.set("dims", builder->getDenseI64ArrayAttr(shifted(reduction.getReducedDims())));
        return builder->create(state)->getResult(0);
      });
}

Value Rounds::build(PatternRewriter &rewriter) {
  builder = &rewriter;
  for (const Group &group : groups) {
    switch (group.shape) {
    case Shape::Same:
      built.push_back(group.pieces.front());
      break;
    case Shape::Slices:
      built.push_back(buildSlices(group));
      break;
    case Shape::Constants: {
      SmallVector<Attribute> numbers;
      for (Value piece : group.pieces)
        llvm::append_range(
            numbers, cast<DenseElementsAttr>(piece.getDefiningOp<ConstantOp>().getValue()).getValues<Attribute>());
      RankedTensorType type = typeOf(group.pieces.front());
      built.push_back(constant(rewriter, concat.getLoc(),
                               DenseElementsAttr::get(type.clone(prefixed(count, type.getShape())), numbers)));
      break;
    }
    case Shape::Op:
      built.push_back(buildOp(group));
      break;
    }
  }
  Expr all = stacked(groups.size() - 1);
  const int64_t dim = concat.getDim();
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(all.rank()));
  std::rotate(permutation.begin(), permutation.begin() + 1, permutation.begin() + dim + 1);
  return reshape(dim ? transpose(all, permutation) : all, concat.getType().getShape());
}

namespace {
/// concat(f(slice 0 of x), f(slice 1 of x), …) → f(x).
struct StackPieces : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    Rounds rounds(op);
    if (const char *reason = rounds.match())
      return rewriter.notifyMatchFailure(op, reason);
    rewriter.replaceOp(op, rounds.build(rewriter));
    return success();
  }
};
} // namespace

void nn::addPieceStacking(RewritePatternSet &patterns) { patterns.add<StackPieces>(patterns.getContext()); }
