//===- WeightReads.cpp - products that read a weight, and pairs for them -------===//

#include "lowtide/Dialect/NN/WeightReads.h"
#include "lowtide/Dialect/NN/NN.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

/// Of each dimension of a value: the weight's dimension that it is (a part of); -1: it has one element.
using Sources = SmallVector<int64_t>;

/// Where a reshape leaves the dimensions; nothing where it joins two of the weight's.
static std::optional<Sources> followReshape(ArrayRef<int64_t> from, const Sources &sources, ArrayRef<int64_t> to) {
  Sources result;
  size_t i = 0, j = 0;
  while (j < to.size()) {
    // The shortest runs of dimensions that hold as many elements on both sides.
    const size_t first = i, start = j;
    int64_t have = 1, want = to[j++];
    while (have != want) {
      if (have < want && i < from.size())
        have *= from[i++];
      else if (want < have && j < to.size())
        want *= to[j++];
      else
        return std::nullopt;
    }
    int64_t source = -1;
    for (size_t d = first; d < i; ++d) {
      if (from[d] == 1 || sources[d] == source)
        continue;
      if (source != -1)
        return std::nullopt;
      source = sources[d];
    }
    for (size_t d = start; d < j; ++d)
      result.push_back(to[d] == 1 ? -1 : source);
  }
  return result;
}

/// The dimensions after an op that moves elements; nothing where it does anything else.
static std::optional<Sources> followMove(OpOperand &use, const Sources &sources) {
  Operation *op = use.getOwner();
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    Sources result;
    for (int64_t d : transpose.getPermutation())
      result.push_back(sources[d]);
    return result;
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return followReshape(reshape.getX().getType().getShape(), sources, reshape.getY().getType().getShape());
  if (isa<SliceOp, ConcatOp, CastOp>(op))
    return sources;
  return std::nullopt;
}

/// The dimension of a product's operand that is summed over.
static int64_t getContracted(DotOp dot, unsigned operand) {
  return operand == 0 ? !dot.getTransposeA() : dot.getTransposeB();
}

WeightReads nn::findWeightReads(Value weight) {
  WeightReads reads;
  llvm::SmallPtrSet<Operation *, 8> seen;
  Sources start;
  for (int64_t d = 0; d < cast<RankedTensorType>(weight.getType()).getRank(); ++d)
    start.push_back(d);
  auto visit = [&](auto &self, Value value, const Sources &sources, SmallVector<OpOperand *> path) -> void {
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      SmallVector<OpOperand *> longer(path);
      longer.push_back(&use);
      const unsigned operand = use.getOperandNumber();
      if (std::optional<Sources> next = followMove(use, sources)) {
        self(self, op->getResult(0), *next, std::move(longer));
        continue;
      }
      WeightRead read;
      read.product = op;
      read.path = std::move(longer);
      bool isProduct = seen.insert(op).second;
      if (auto dot = dyn_cast<DotOp>(op)) {
        const int64_t contracted = getContracted(dot, operand);
        isProduct &= sources.size() == 2 && start.size() == 2 && dot.getA() != dot.getB();
        if (isProduct) {
          const int64_t in = sources[contracted], out = sources[1 - contracted];
          read.inputDim = in;
          isProduct = in >= 0 && out >= 0 && in != out;
        }
      } else if (isa<ConvOp>(op)) {
        read.kind = WeightKind::Filter;
        isProduct &= operand == 1 && start.size() >= 3 &&
                     llvm::all_of(path, [](OpOperand *each) { return isa<CastOp>(each->getOwner()); });
      } else if (auto gather = dyn_cast<GatherOp>(op)) {
        read.kind = WeightKind::Table;
        isProduct &= operand == 0 && gather.getAxis() == 0 && start.size() == 2 &&
                     llvm::all_of(path, [](OpOperand *each) { return isa<CastOp>(each->getOwner()); });
      } else {
        isProduct = false;
      }
      if (isProduct)
        reads.products.push_back(std::move(read));
      else
        reads.others.push_back(op);
    }
  };
  visit(visit, weight, start, {});
  return reads;
}

SmallVector<Value> nn::findMoved(Value operand) {
  SmallVector<Value> found, open = {operand};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<TransposeOp, ReshapeOp, SliceOp, ConcatOp, CastOp>(op))
      open.append(op->operand_begin(), op->operand_end());
    else if (!llvm::is_contained(found, value))
      found.push_back(value);
  }
  return found;
}

PairShapes nn::getPairShapes(const WeightRead &read, RankedTensorType weight, int64_t rank) {
  ArrayRef<int64_t> shape = weight.getShape();
  PairShapes result;
  if (read.kind != WeightKind::Filter) {
    result.a = {rank, shape[read.inputDim]};
    result.b = {shape[1 - read.inputDim], rank};
    return result;
  }
  result.a.assign(shape.begin(), shape.end());
  result.a[0] = rank;
  result.b.assign(shape.size(), 1);
  result.b[0] = shape[0];
  result.b[1] = rank;
  return result;
}

int64_t nn::getLargestRank(const WeightRead &read, RankedTensorType weight) {
  const int64_t out = weight.getDimSize(read.kind == WeightKind::Filter ? 0 : 1 - read.inputDim);
  return std::min(out, weight.getNumElements() / std::max<int64_t>(out, 1));
}

/// Whether a matrix becomes a part of one that has more inputs: a product adds up what several of them give.
static bool isJoinedAlongInputs(const WeightRead &read) {
  Sources sources = {0, 1};
  for (OpOperand *use : ArrayRef(read.path).drop_back()) {
    if (auto concat = dyn_cast<ConcatOp>(use->getOwner()); concat && sources[concat.getDim()] == read.inputDim)
      return true;
    sources = *followMove(*use, sources);
  }
  return false;
}

std::string nn::refusePair(const WeightRead &read, bool hasMagnitudes) {
  if (hasMagnitudes && read.kind == WeightKind::Matrix && isJoinedAlongInputs(read))
    return "is added to other layers by one product, so that its outputs alone have no magnitude";
  if (auto conv = dyn_cast<ConvOp>(read.product); conv && conv.getGroups() != 1)
    return "is a convolution in " + std::to_string(conv.getGroups()) +
           " groups: PEFT's pair for one cannot be merged into its filter";
  return {};
}

namespace {
/// A weight's change as a product of two factors, moved as the weight is moved; or what its outputs alone have.
struct Factors {
  Expr left;                     ///< [output dims…, rank]
  Expr right = {};               ///< [rank, input dims…]; null: there is none
  double others = 0.0;           ///< what outputs of other weights have
  SmallVector<bool> isLeft = {}; ///< of the value's dimensions
};
} // namespace

static SmallVector<int64_t> shapeOfSide(ArrayRef<int64_t> shape, ArrayRef<bool> isLeft, bool left) {
  SmallVector<int64_t> result;
  for (auto [size, side] : llvm::zip_equal(shape, isLeft))
    if (side == left)
      result.push_back(size);
  return result;
}

/// Entries of a list about a value's dimensions that are about one factor's, with one for the rank, `ofRank`.
static SmallVector<int64_t> listOfSide(ArrayRef<int64_t> list, ArrayRef<bool> isLeft, bool left, int64_t ofRank) {
  SmallVector<int64_t> result = shapeOfSide(list, isLeft, left);
  result.insert(left ? result.end() : result.begin(), ofRank);
  return result;
}

/// Which factor each dimension after a move belongs to.
static SmallVector<bool> sidesOf(const Sources &sources, int64_t inputDim) {
  return llvm::map_to_vector(sources, [&](int64_t source) { return source != inputDim; });
}

static void move(OpOperand &use, SmallVector<bool> sides, Factors &f) {
  Operation *op = use.getOwner();
  const int64_t rank = f.left.dim(-1);
  SmallVector<bool, 2> factors = {true};
  if (f.right)
    factors.push_back(false);
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    for (bool left : factors) {
      // Where each of the value's dimensions stands in the factor.
      SmallVector<int64_t> place;
      int64_t next = left ? 0 : 1;
      for (bool side : f.isLeft)
        place.push_back(side == left ? next++ : -1);
      SmallVector<int64_t> permutation;
      for (int64_t d : transpose.getPermutation())
        if (f.isLeft[d] == left)
          permutation.push_back(place[d]);
      permutation.insert(left ? permutation.end() : permutation.begin(), left ? next : 0);
      (left ? f.left : f.right) = nn::transpose(left ? f.left : f.right, permutation);
    }
  } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    ArrayRef<int64_t> shape = reshape.getY().getType().getShape();
    f.left = nn::reshape(f.left, listOfSide(shape, sides, true, rank));
    if (f.right)
      f.right = nn::reshape(f.right, listOfSide(shape, sides, false, rank));
  } else if (auto slice = dyn_cast<SliceOp>(op)) {
    ArrayRef<int64_t> shape = slice.getY().getType().getShape();
    for (bool left : factors) {
      Expr &side = left ? f.left : f.right;
      side = nn::slice(side, listOfSide(slice.getStarts(), f.isLeft, left, 0), listOfSide(shape, f.isLeft, left, rank),
                       listOfSide(slice.getStrides(), f.isLeft, left, 1));
    }
  } else if (auto concat = dyn_cast<ConcatOp>(op)) {
    const int64_t dim = concat.getDim();
    SmallVector<int64_t> low(f.isLeft.size(), 0), high(f.isLeft.size(), 0);
    for (auto [i, x] : llvm::enumerate(concat.getXs()))
      if (i != use.getOperandNumber())
        (i < use.getOperandNumber() ? low : high)[dim] += cast<RankedTensorType>(x.getType()).getDimSize(dim);
    // Only the joined dimension's factor has other entries; they are those of other weights.
    Expr &side = f.isLeft[dim] ? f.left : f.right;
    side = nn::pad(side, listOfSide(low, f.isLeft, f.isLeft[dim], 0), listOfSide(high, f.isLeft, f.isLeft[dim], 0), {},
                   f.others);
  }
  // A cast: the factors stay in their own type.
  f.isLeft = std::move(sides);
}

/// Factors where the product reads the matrix.
static Factors follow(const WeightRead &read, Factors f) {
  Sources sources = {0, 1};
  f.isLeft = sidesOf(sources, read.inputDim);
  for (OpOperand *use : ArrayRef(read.path).drop_back()) {
    sources = *followMove(*use, sources);
    move(*use, sidesOf(sources, read.inputDim), f);
  }
  return f;
}

/// Input and pair of a read of a matrix; the result has the product's shape.
static Expr multiply(const WeightRead &read, Expr input, Expr a, Expr b, double scale) {
  const Factors f = follow(read, {b, a});
  auto dot = cast<DotOp>(read.product);
  // Scaled where there are the fewest elements.
  if (read.path.back()->getOperandNumber() == 1)
    return nn::dot(nn::dot(input, f.right, dot.getTransposeA(), /*transposeB=*/true) * scale, f.left,
                   /*transposeA=*/false, /*transposeB=*/true);
  return nn::dot(f.left, nn::dot(f.right, input, /*transposeA=*/false, dot.getTransposeB()) * scale);
}

static Expr convolve(ConvOp conv, Expr input, Expr a, Expr b, double scale) {
  Window window;
  window.strides.assign(conv.getStrides().begin(), conv.getStrides().end());
  window.padsBegin.assign(conv.getPadsBegin().begin(), conv.getPadsBegin().end());
  window.padsEnd.assign(conv.getPadsEnd().begin(), conv.getPadsEnd().end());
  window.dilations.assign(conv.getDilations().begin(), conv.getDilations().end());
  return nn::conv(nn::conv(input, a, window) * scale, b, Window::unit(conv.getStrides().size()));
}

static Expr lookUp(GatherOp gather, Expr a, Expr b, double scale) {
  std::optional<uint64_t> row = gather.getUntrainedRow();
  Expr indices = a.with(gather.getIndices());
  Expr columns = nn::gather(a, indices, 1, row ? std::optional<int64_t>(*row) : std::nullopt);
  SmallVector<int64_t> shape(indices.shape());
  const int64_t rank = a.dim(0);
  Expr flat = nn::reshape(columns, {rank, columns.type().getNumElements() / rank});
  shape.push_back(b.dim(0));
  return nn::reshape(nn::dot(flat * scale, b, /*transposeA=*/true, /*transposeB=*/true), shape);
}

SmallVector<int64_t> nn::getMagnitudeShape(const WeightRead &read, RankedTensorType weight) {
  if (read.kind != WeightKind::Filter)
    return {weight.getDimSize(1 - read.inputDim)};
  SmallVector<int64_t> shape(weight.getRank(), 1);
  shape[1] = weight.getDimSize(0);
  return shape;
}

Value nn::computeRatio(OpBuilder &builder, const WeightRead &read, Value weight, const LowRankPair &pair,
                       Value magnitude, Value norm) {
  auto wrap = [&](Value value) { return Expr(builder, weight.getLoc(), value); };
  Expr w = wrap(weight), a = wrap(pair.a), b = wrap(pair.b), whole = wrap(norm);
  const int64_t outputs = whole.dim(0), rank = a.dim(0);
  if (read.kind == WeightKind::Filter) {
    const int64_t inputs = w.type().getNumElements() / outputs;
    w = nn::reshape(w, {outputs, inputs}), a = nn::reshape(a, {rank, inputs}), b = nn::reshape(b, {outputs, rank});
  }
  const bool isInFirst = read.kind != WeightKind::Filter && read.inputDim == 0;
  // A weight in 16 bits is read as it is.
  Expr crossed = nn::cast(nn::dot(w, nn::cast(a, w.elementType()), isInFirst, /*transposeB=*/true), a.elementType());
  Expr own = nn::dot(b, nn::dot(a, a, /*transposeA=*/false, /*transposeB=*/true));
  Expr square = whole * whole + nn::sum((crossed * 2.0 + own * pair.scale) * b, {1}) * pair.scale;
  return nn::reshape(wrap(magnitude), {outputs}) / nn::detach(nn::sqrt(square));
}

/// A number for each output, as the product's result has them.
static Expr spread(const WeightRead &read, Expr ratio, ArrayRef<int64_t> shape) {
  int64_t dim = static_cast<int64_t>(shape.size()) - 1;
  if (read.kind == WeightKind::Filter) {
    dim = 1;
  } else if (read.kind == WeightKind::Matrix) {
    dim = read.path.back()->getOperandNumber();
    Expr column = nn::reshape(ratio, {ratio.dim(0), 1});
    ratio = nn::reshape(follow(read, {column, {}, /*others=*/1.0}).left, {shape[dim]});
  }
  return nn::broadcast(ratio, shape, {dim});
}

void nn::addPair(OpBuilder &builder, const WeightRead &read, const LowRankPair &pair,
                 llvm::function_ref<Expr(Expr)> drop) {
  Operation *product = read.product;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(product);
  auto wrap = [&](Value value) { return Expr(builder, product->getLoc(), value); };
  Expr a = wrap(pair.a), b = wrap(pair.b), result = wrap(product->getResult(0)), ratio, added, ofDropped;
  // PEFT keeps pairs in f32 where weights have 16 bits, and computes in their type.
  Type type = a.elementType();
  if (pair.ratio)
    ratio = spread(read, wrap(pair.ratio), result.shape());
  if (read.kind == WeightKind::Table) {
    added = lookUp(cast<GatherOp>(product), a, b, pair.scale);
  } else {
    const unsigned other = 1 - read.path.back()->getOperandNumber();
    Expr whole = nn::cast(wrap(product->getOperand(other)), type), input = drop(whole);
    if (ratio && input.get() != whole.get()) {
      Operation *again = builder.clone(*product);
      again->setOperand(other, nn::cast(input, getElementTypeOrSelf(product->getOperand(other))));
      ofDropped = nn::cast(wrap(again->getResult(0)), type);
    }
    added = read.kind == WeightKind::Filter ? convolve(cast<ConvOp>(product), input, a, b, pair.scale)
                                            : multiply(read, input, a, b, pair.scale);
  }
  if (ofDropped)
    added = (ratio - 1.0) * ofDropped + ratio * added;
  Expr wide = nn::cast(result, type), sum = wide + added, total = ratio && !ofDropped ? ratio * sum : sum;
  Operation *reader = (wide.get() == result.get() ? sum : wide).get().getDefiningOp();
  product->getResult(0).replaceUsesWithIf(nn::cast(total, result.elementType()),
                                          [&](OpOperand &use) { return use.getOwner() != reader; });
}

int64_t nn::getNextDraw(Block &block) {
  int64_t next = 0;
  block.walk([&](RandomUniformOp draw) { next = std::max(next, int64_t(draw.getOpId()) + 1); });
  return next;
}
