//===- WeightReads.cpp - products that read a weight, and pairs for them -------===//

#include "lowtide/Dialect/NN/WeightReads.h"
#include "lowtide/Dialect/NN/NN.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SetVector.h"

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

/// Whether an op puts the slices of a value in another order, as exporters do with the gates of recurrent layers. All
/// of them in their own order are rows of a table: positions, for example.
static bool isReordering(GatherOp gather) {
  DenseIntElementsAttr indices;
  const int64_t size = gather.getX().getType().getDimSize(gather.getAxis());
  if (!matchPattern(gather.getIndices(), m_Constant(&indices)) || indices.getType().getRank() != 1 ||
      indices.getNumElements() != size)
    return false;
  SmallVector<int64_t> order;
  for (const APInt &index : indices.getValues<APInt>())
    order.push_back(index.getSExtValue() < 0 ? index.getSExtValue() + size : index.getSExtValue());
  return isPermutationVector(order) && !llvm::is_sorted(order);
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
  if (auto gather = dyn_cast<GatherOp>(op); gather && !(use.getOperandNumber() == 0 && isReordering(gather)))
    return std::nullopt;
  if (isa<SliceOp, ConcatOp, CastOp, GatherOp>(op))
    return sources;
  return std::nullopt;
}

/// The dimension of a product's operand that is summed over.
static int64_t getContracted(DotOp dot, unsigned operand) {
  return operand == 0 ? !dot.getTransposeA() : dot.getTransposeB();
}

/// The way that an op with `sources` at the end of `path` multiplies the weight, or looks rows of it up; nothing where
/// it does neither.
static std::optional<WeightRead> getRead(const WeightRead::Path &path, const Sources &sources, int64_t rank) {
  Operation *op = path.back()->getOwner();
  const unsigned operand = path.back()->getOperandNumber();
  auto isCast = [](OpOperand *each) { return isa<CastOp>(each->getOwner()); };
  const bool isWhole = llvm::all_of(ArrayRef(path).drop_back(), isCast);
  WeightRead read;
  read.product = op;
  read.paths = {path};
  if (auto dot = dyn_cast<DotOp>(op)) {
    if (sources.size() != 2 || rank != 2 || dot.getA() == dot.getB())
      return std::nullopt;
    const int64_t contracted = getContracted(dot, operand);
    const int64_t in = sources[contracted], out = sources[1 - contracted];
    read.inputDim = in;
    return in >= 0 && out >= 0 && in != out ? std::optional(read) : std::nullopt;
  }
  if (isa<ConvOp>(op) && operand == 1 && rank >= 3 && isWhole) {
    read.kind = WeightKind::Filter;
    return read;
  }
  auto gather = dyn_cast<GatherOp>(op);
  if (gather && operand == 0 && gather.getAxis() == 0 && rank == 2 && isWhole) {
    read.kind = WeightKind::Table;
    return read;
  }
  return std::nullopt;
}

WeightReads nn::findWeightReads(Value weight) {
  WeightReads reads;
  llvm::DenseMap<Operation *, size_t> places;
  const int64_t rank = cast<RankedTensorType>(weight.getType()).getRank();
  auto visit = [&](auto &self, Value value, const Sources &sources, const WeightRead::Path &path) -> void {
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      WeightRead::Path longer(path);
      longer.push_back(&use);
      if (std::optional<Sources> next = followMove(use, sources)) {
        self(self, op->getResult(0), *next, longer);
        continue;
      }
      std::optional<WeightRead> read = getRead(longer, sources, rank);
      if (!read) {
        reads.others.push_back(op);
        continue;
      }
      auto [place, isNew] = places.try_emplace(op, reads.products.size());
      if (isNew) {
        reads.products.push_back(std::move(*read));
        continue;
      }
      WeightRead &first = reads.products[place->second];
      if (&first.getOperand() == &use && first.inputDim == read->inputDim)
        first.paths.push_back(std::move(longer));
      else
        reads.others.push_back(op);
    }
  };
  Sources start;
  llvm::append_range(start, llvm::seq(rank));
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

SmallVector<Value> nn::findComputedWeights(Operation *root) {
  llvm::SetVector<Value> weights;
  auto addWithoutCasts = [&](Value value) {
    while (auto cast = value.getDefiningOp<CastOp>())
      value = cast.getX();
    weights.insert(value);
  };
  root->walk([&](Operation *op) {
    if (auto conv = dyn_cast<ConvOp>(op))
      addWithoutCasts(conv->getOperand(1));
    else if (auto gather = dyn_cast<GatherOp>(op))
      addWithoutCasts(gather.getX());
    if (!isa<DotOp>(op))
      return;
    for (Value operand : op->getOperands())
      for (Value moved : findMoved(operand))
        if (!isa<BlockArgument>(moved)) {
          // Blocks, and codes of which a byte holds two, may have a dimension of their own until they are joined.
          const bool isMatrix = cast<RankedTensorType>(moved.getType()).getRank() == 2;
          weights.insert(isMatrix && !findWeightReads(moved).products.empty() ? moved : operand);
        }
  });
  weights.remove_if([](Value weight) { return isa<BlockArgument>(weight); });
  return weights.takeVector();
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
  return llvm::any_of(read.paths, [&](const WeightRead::Path &path) {
    Sources sources = {0, 1};
    for (OpOperand *use : ArrayRef(path).drop_back()) {
      if (auto concat = dyn_cast<ConcatOp>(use->getOwner()); concat && sources[concat.getDim()] == read.inputDim)
        return true;
      sources = *followMove(*use, sources);
    }
    return false;
  });
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
  } else if (auto gather = dyn_cast<GatherOp>(op)) {
    const int64_t axis = gather.getAxis();
    const bool left = f.isLeft[axis];
    Expr &side = left ? f.left : f.right;
    if (side)
      side = nn::gather(side, side.with(gather.getIndices()),
                        llvm::count(ArrayRef(f.isLeft).take_front(axis), left) + (left ? 0 : 1));
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

/// Factors where the product reads what came one way.
static Factors follow(const WeightRead &read, const WeightRead::Path &path, Factors f) {
  Sources sources = {0, 1};
  f.isLeft = sidesOf(sources, read.inputDim);
  for (OpOperand *use : ArrayRef(path).drop_back()) {
    sources = *followMove(*use, sources);
    move(*use, sidesOf(sources, read.inputDim), f);
  }
  return f;
}

/// Input and pair of a read of a matrix; the result has the product's shape.
static Expr multiply(const WeightRead &read, Expr input, Expr a, Expr b, double scale) {
  auto dot = cast<DotOp>(read.product);
  Expr total;
  for (const WeightRead::Path &path : read.paths) {
    const Factors f = follow(read, path, {b, a});
    // Scaled where there are the fewest elements.
    Expr part = read.getOperand().getOperandNumber() == 1
                    ? nn::dot(nn::dot(input, f.right, dot.getTransposeA(), /*transposeB=*/true) * scale, f.left,
                              /*transposeA=*/false, /*transposeB=*/true)
                    : nn::dot(f.left, nn::dot(f.right, input, /*transposeA=*/false, dot.getTransposeB()) * scale);
    total = total ? total + part : part;
  }
  return total;
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
    dim = read.getOperand().getOperandNumber();
    Expr column = nn::reshape(ratio, {ratio.dim(0), 1}), outputs;
    // Each way leaves ones for the outputs of the others.
    for (const WeightRead::Path &path : read.paths) {
      Expr part = follow(read, path, {column, {}, /*others=*/1.0}).left;
      outputs = outputs ? outputs * part : part;
    }
    ratio = nn::reshape(outputs, {shape[dim]});
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
    Expr whole = nn::cast(wrap(read.getInput()), type), input = drop(whole);
    if (ratio && input.get() != whole.get()) {
      Operation *again = builder.clone(*product);
      again->setOperand(1 - read.getOperand().getOperandNumber(),
                        nn::cast(input, getElementTypeOrSelf(read.getInput())));
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
