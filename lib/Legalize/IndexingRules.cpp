//===- IndexingRules.cpp - gather and scatter -----------------------------===//
//
// Rules for operators that read or write at positions given by a tensor.
//
//===----------------------------------------------------------------------===//
#include "lowtide/Dialect/NN/NN.h"
#include "lowtide/Dialect/NN/Scatter.h"
#include "lowtide/Legalize/Broadcast.h"
#include "lowtide/Legalize/Indices.h"
#include "lowtide/Legalize/LegalizeContext.h"
#include "lowtide/Legalize/Rules.h"
#include "lowtide/Recover/NodeNotes.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace lowtide;
using nn::Expr;

Expr lowtide::positions(Expr where, ArrayRef<int64_t> shape, int64_t dim) {
  OpBuilder &b = where.getBuilder();
  return nn::iota(b, where.getLoc(), RankedTensorType::get(shape, b.getI64Type()), dim);
}

/// Whether they were made of numbers without a sign, as positions in a table of what codes stand for.
static bool countFromZero(Expr indices) {
  Value value = indices.get();
  while (auto cast = value.getDefiningOp<nn::CastOp>()) {
    Type from = getElementTypeOrSelf(cast.getX().getType()), to = getElementTypeOrSelf(value.getType());
    if (!isa<IntegerType>(from) || to.getIntOrFloatBitWidth() < 16)
      return false;
    if (from.isUnsignedInteger(8))
      return true;
    value = cast.getX();
  }
  return false;
}

Expr lowtide::fromFront(Expr indices, int64_t extent) {
  if (countFromZero(indices))
    return indices;
  // What is repeated over other dimensions is repeated afterwards: patterns find the one index of many positions.
  if (auto repeated = indices.get().getDefiningOp<nn::BroadcastOp>())
    return nn::broadcast(fromFront(indices.with(repeated.getX()), extent), indices.shape(), repeated.getDims());
  indices = nn::cast(indices, indices.getBuilder().getI64Type());
  // Known indices that need no change stay as they are.
  return nn::select(nn::less(indices, 0.0), indices + double(extent), indices);
}

Expr lowtide::fromFront(NodeView &n, Expr indices, Expr x, int64_t dim) {
  if (n.context.selected.isCoordinate(indices))
    return nn::cast(indices, indices.getBuilder().getI64Type());
  Expr count = n.context.selected.countAlong(x, {dim});
  if (!count)
    return fromFront(indices, x.dim(dim));
  indices = nn::cast(indices, count.elementType());
  return nn::select(nn::less(indices, 0.0), indices + nn::broadcastTo(count, indices.shape()), indices);
}

Expr lowtide::sliceDim(Expr x, int64_t dim, int64_t start, int64_t size) {
  Shape starts(x.rank(), 0), sizes(x.shape());
  starts[dim] = start;
  sizes[dim] = size;
  return sizes == Shape(x.shape()) ? x : nn::slice(x, starts, sizes);
}

namespace {

LogicalResult needIndices(NodeView &n, unsigned i) {
  return isa<IntegerType>(n.in(i).elementType()) ? success() : n.reject("indices must be integers");
}

LogicalResult gather(NodeView &n) {
  if (failed(n.need(2)) || failed(needIndices(n, 1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", 0), x.rank());
  if (failed(axis))
    return failure();
  // One known index is a slice: a view, and cheap to differentiate.
  if (std::optional<Shape> known = n.constantInts(1);
      known && known->size() == 1 && !n.context.selected.countAlong(x, {*axis})) {
    int64_t at = known->front() < 0 ? known->front() + x.dim(*axis) : known->front();
    if (at < 0 || at >= x.dim(*axis))
      return n.reject("index " + Twine(known->front()) + " is outside of dimension " + Twine(*axis) + " of size " +
                      Twine(x.dim(*axis)));
    Shape shape(x.shape().take_front(*axis));
    shape.append(n.in(1).shape().begin(), n.in(1).shape().end());
    shape.append(x.shape().begin() + *axis + 1, x.shape().end());
    n.set(0, nn::reshape(sliceDim(x, *axis, at, 1), shape));
    return success();
  }
  // The importer's note: padding of an embedding.
  std::optional<int64_t> untrainedRow;
  if (n.hasAttr(paddingRowAttrName))
    untrainedRow = n.attr(paddingRowAttrName, 0);
  n.set(0, nn::gather(x, fromFront(n, n.in(1), x, *axis), *axis, untrainedRow));
  return success();
}

LogicalResult gatherElements(NodeView &n) {
  if (failed(n.need(2)) || failed(needIndices(n, 1)))
    return failure();
  Expr x = n.in(0);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", 0), x.rank());
  if (failed(axis))
    return failure();
  if (n.in(1).rank() != x.rank())
    return n.reject("indices of rank " + Twine(n.in(1).rank()) + " for an operand of rank " + Twine(x.rank()));
  Expr indices = fromFront(n, n.in(1), x, *axis);
  // nn reads elements of the same place: the operand is cut to the extents of the indices elsewhere.
  Shape sizes(indices.shape());
  sizes[*axis] = x.dim(*axis);
  for (int64_t d = 0; d < x.rank(); ++d)
    if (sizes[d] > x.dim(d))
      return n.reject("indices exceed the operand in dimension " + Twine(d));
  if (sizes != Shape(x.shape()))
    x = nn::slice(x, Shape(x.rank(), 0), sizes);
  n.set(0, nn::gatherElements(x, indices, *axis));
  return success();
}

/// The last dimension of `indices` as one linear index into dimensions of x.
struct LinearIndex {
  /// [n / elements], each of so many elements that lie one after the other.
  Expr index;
  int64_t elements = 1;
};

/// Into the dimensions of x from `first` on.
LinearIndex linearIndex(NodeView &n, Expr indices, Expr x, int64_t first) {
  int64_t depth = indices.dim(-1);
  Shape outer(indices.shape().drop_back());
  if (auto selected = n.context.selected.elementsAt(indices, x.shape().slice(first, depth)))
    return {indices.with(selected->selection->positions), selected->inner};
  Expr linear = nn::splat(indices.getBuilder(), indices.getLoc(),
                          RankedTensorType::get(outer, indices.getBuilder().getI64Type()), 0.0);
  for (int64_t i = 0; i < depth; ++i) {
    Expr digit = nn::reshape(sliceDim(indices, indices.rank() - 1, i, 1), outer);
    linear = linear * double(x.dim(first + i)) + fromFront(n, digit, x, first + i);
  }
  return {nn::reshape(linear, {countOf(outer)})};
}

LogicalResult gatherND(NodeView &n) {
  if (failed(n.need(2)) || failed(needIndices(n, 1)))
    return failure();
  Expr x = n.in(0), indices = n.in(1);
  int64_t batchDims = n.attr("batch_dims", 0);
  if (indices.rank() < 1 || batchDims < 0 || batchDims >= std::min(x.rank(), indices.rank()) ||
      indices.dim(-1) > x.rank() - batchDims ||
      x.shape().take_front(batchDims) != indices.shape().take_front(batchDims))
    return n.reject("indices do not fit the operand");
  int64_t depth = indices.dim(-1), batch = countOf(x.shape().take_front(batchDims));
  ArrayRef<int64_t> rest = x.shape().drop_front(batchDims + depth);
  auto [linear, elements] = linearIndex(n, indices, x, batchDims);
  int64_t inner = countOf(x.shape().slice(batchDims, depth)) / elements;
  Shape result(indices.shape().drop_back());
  if (batchDims) { // every batch looks into its own part
    Expr flat = nn::reshape(linear, {batch, linear.dim(0) / std::max<int64_t>(1, batch)});
    linear = nn::reshape(flat + positions(flat, flat.shape(), 0) * double(inner), linear.shape());
  }
  Expr table = nn::reshape(x, {batch * inner, elements * countOf(rest)});
  Expr y = nn::gather(table, linear, 0);
  result.append(rest.begin(), rest.end());
  n.set(0, nn::reshape(y, result));
  return success();
}

/// How updates that meet at one place become one value.
std::optional<nn::ScatterKind> findMeeting(StringRef reduction) {
  return llvm::StringSwitch<std::optional<nn::ScatterKind>>(reduction)
      .Case("mul", nn::ScatterKind::mul)
      .Case("max", nn::ScatterKind::max)
      .Case("min", nn::ScatterKind::min)
      .Default(std::nullopt);
}

/// `x` in another shape, if it is a constant of which all elements are one.
std::optional<Expr> reshapeUniform(NodeView &n, Expr x, ArrayRef<int64_t> shape) {
  Value source = x;
  while (source.getDefiningOp<nn::BroadcastOp>() || source.getDefiningOp<nn::ReshapeOp>())
    source = source.getDefiningOp()->getOperand(0);
  DenseElementsAttr values = LegalizeContext::constantOf(source);
  if (!values || !values.isSplat())
    return std::nullopt;
  return n.dense(values.resizeSplat(x.type().clone(shape)));
}

/// Whether the node writes onto zeros that are only added to something: so PyTorch's old exporter adds at places, of
/// which some may be the same (`index_put(accumulate=True)`), and names no reduction.
bool addsToZeros(NodeView &n, Expr data) {
  DenseElementsAttr zeros = LegalizeContext::constantOf(data);
  Value result = n.op->getResult(0);
  if (!zeros || !zeros.isSplat() || floatsOf(zeros).front() != 0 || result.use_empty())
    return false;
  return llvm::all_of(result.getUsers(), [](Operation *user) {
    auto node = dyn_cast<onnx::NodeOp>(user);
    return node && node.getOpType() == "Add";
  });
}

/// Writes `updates` over `data`, given a function that adds updates at each place, and one that lets them meet `data`.
LogicalResult combine(NodeView &n, Expr data, Expr updates, llvm::function_ref<Expr(Expr)> scatter,
                      llvm::function_ref<Expr(nn::ScatterKind)> meet = {}) {
  // What holds nothing is written nowhere: `x[:0] = …`, samples of a kind of which there are none.
  if (updates.type().getNumElements() == 0) {
    n.set(0, data);
    return success();
  }
  std::string reduction = n.attrString("reduction", "none");
  if (reduction == "none" && n.op.getOpType() == "ScatterND" && !isBool(data) && addsToZeros(n, data))
    reduction = "add";
  if (reduction == "add") {
    n.set(0, data + scatter(updates));
    return success();
  }
  if (auto kind = findMeeting(reduction); kind && meet && !isBool(data)) {
    n.set(0, meet(*kind));
    return success();
  }
  if (reduction != "none")
    return n.refuse("reduction '" + reduction + "' of " + (isBool(data) ? "booleans" : "this operator") +
                    "; there are none, add, mul, max and min");
  // A number that is computed has the cotangent of a place once for each of its updates there.
  std::optional<Expr> uniform = reshapeUniform(n, updates, data.shape());
  if (meet && !isBool(data) && !uniform) {
    // ONNX leaves open which of the updates of one place is kept; PyTorch's scatter and onnxruntime keep the last.
    n.set(0, meet(nn::ScatterKind::set));
    return success();
  }
  Type counter = n.builder.getI32Type();
  Expr ones = n.splat(counter, updates.shape(), 1.0);
  Expr hit = nn::greater(scatter(ones), 0.0);
  if (uniform)
    n.set(0, nn::select(hit, *uniform, data));
  else if (isBool(data))
    n.set(0, nn::select(hit, nn::notEqual(scatter(nn::cast(updates, counter)), 0.0), data));
  else
    n.set(0, nn::select(hit, scatter(updates), data));
  return success();
}

LogicalResult scatterElements(NodeView &n) {
  if (failed(n.need(3)) || failed(needIndices(n, 1)))
    return failure();
  Expr data = n.in(0), updates = n.in(2);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", 0), data.rank());
  if (failed(axis))
    return failure();
  if (n.in(1).rank() != updates.rank() || updates.rank() != data.rank() ||
      updates.elementType() != data.elementType() ||
      llvm::any_of(llvm::zip(n.in(1).shape(), updates.shape()), [&](auto dims) {
        auto [numIndices, numUpdates] = dims;
        return numIndices > numUpdates || (numIndices < numUpdates && !n.isOfPyTorch());
      }))
    return n.reject("data, indices and updates do not fit together");
  // PyTorch reads as much of the updates as there are indices, and its exporter writes them whole.
  if (n.in(1).shape() != updates.shape())
    updates = nn::slice(updates, Shape(updates.rank(), 0), n.in(1).shape());
  Expr indices = fromFront(n, n.in(1), data, *axis);
  // nn adds at the same place: where the updates are smaller elsewhere, the sum is padded.
  Shape shape(updates.shape()), high(data.rank(), 0), low(data.rank(), 0);
  shape[*axis] = data.dim(*axis);
  for (int64_t d = 0; d < data.rank(); ++d) {
    high[d] = data.dim(d) - shape[d];
    if (high[d] < 0)
      return n.reject("updates exceed the data in dimension " + Twine(d));
  }
  return combine(
      n, data, updates,
      [&](Expr values) {
        Expr sum = nn::scatterElementsAdd(indices, values, shape, *axis);
        return shape == Shape(data.shape()) ? sum : nn::pad(sum, low, high);
      },
      [&](nn::ScatterKind kind) {
        if (shape == Shape(data.shape()))
          return nn::scatterElements(kind, data, indices, updates, *axis);
        // The part that the updates reach, and around it the data.
        Expr part = nn::scatterElements(kind, nn::slice(data, low, shape), indices, updates, *axis);
        Expr reached = nn::notEqual(nn::pad(n.splat(n.builder.getI32Type(), shape, 1.0), low, high), 0.0);
        return nn::select(reached, nn::pad(part, low, high), data);
      });
}

LogicalResult scatterND(NodeView &n) {
  if (failed(n.need(3)) || failed(needIndices(n, 1)))
    return failure();
  Expr data = n.in(0), indices = n.in(1), updates = n.in(2);
  if (indices.rank() && updates.rank() && updates.dim(0) < indices.dim(0))
    if (Expr cut = n.context.selected.narrowed(indices, 0, updates.dim(0)))
      indices = cut;
  if (indices.rank() < 1 || indices.dim(-1) > data.rank() || updates.elementType() != data.elementType())
    return n.reject("data, indices and updates do not fit together");
  int64_t depth = indices.dim(-1);
  ArrayRef<int64_t> rest = data.shape().drop_front(depth);
  Shape expected(indices.shape().drop_back());
  expected.append(rest.begin(), rest.end());
  if (ArrayRef<int64_t>(expected) != updates.shape())
    return n.reject("the updates' shape does not fit the indices");
  auto [linear, elements] = linearIndex(n, indices, data, 0);
  const int64_t width = elements * countOf(rest);
  const Shape from{linear.dim(0), width}, to{countOf(data.shape().take_front(depth)) / elements, width};
  return combine(
      n, data, updates,
      [&, linear = linear](Expr values) {
        return nn::reshape(nn::scatterAdd(linear, nn::reshape(values, from), to, 0), data.shape());
      },
      [&, linear = linear](nn::ScatterKind kind) {
        Expr flat = nn::reshape(updates, from), table = nn::reshape(data, to);
        return nn::reshape(nn::scatter(kind, table, linear, flat, 0), data.shape());
      });
}

/// Writes rows into a cache, each sample's from its own position on.
LogicalResult tensorScatter(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr cache = n.in(0), update = n.in(1);
  FailureOr<int64_t> axis = n.axis(n.attr("axis", -2), cache.rank());
  if (failed(axis))
    return failure();
  Shape expected(cache.shape());
  if (update.rank() == cache.rank())
    expected[*axis] = update.dim(*axis);
  if (ArrayRef<int64_t>(expected) != update.shape() || *axis < 1 || update.elementType() != cache.elementType())
    return n.reject("cache and update do not fit together");
  Expr at = positions(update, update.shape(), *axis);
  if (n.has(2))
    at = at + nn::broadcast(nn::cast(n.in(2), n.builder.getI64Type()), update.shape(), {0});
  if (n.attrString("mode", "linear") == "circular")
    at = nn::mod(at, at.like(double(cache.dim(*axis))));
  return combine(n, cache, update,
                 [&](Expr values) { return nn::scatterElementsAdd(at, values, cache.shape(), *axis); });
}

LogicalResult oneHot(NodeView &n) {
  if (failed(n.need(3)))
    return failure();
  Expr indices = n.in(0), values = n.in(2);
  std::optional<SmallVector<double>> depth = n.constantFloats(1);
  if (!depth || depth->size() != 1)
    return n.refuse("the depth is computed from data; it must be known when compiling");
  if (values.type().getNumElements() != 2)
    return n.reject("two values are expected");
  int64_t count = int64_t(depth->front());
  FailureOr<int64_t> axis = n.axis(n.attr("axis", -1), indices.rank() + 1);
  if (failed(axis) || count < 0)
    return failure();
  Shape shape(indices.shape());
  shape.insert(shape.begin() + *axis, count);
  Expr at = fromFront(indices, count);
  Expr hit = nn::equal(nn::broadcastTo(unsqueeze(at, *axis), shape), positions(at, shape, *axis));
  auto value = [&](int64_t i) {
    return nn::broadcastTo(nn::reshape(sliceDim(nn::reshape(values, {2}), 0, i, 1), {}), shape);
  };
  n.set(0, nn::select(hit, value(1), value(0)));
  return success();
}

/// Reverses the first `lengths[b]` elements along the time axis.
LogicalResult reverseSequence(NodeView &n) {
  if (failed(n.need(2)))
    return failure();
  Expr x = n.in(0);
  int64_t batch = n.attr("batch_axis", 1), time = n.attr("time_axis", 0);
  if (x.rank() < 2 || std::min(batch, time) != 0 || std::max(batch, time) != 1)
    return n.reject("'batch_axis' and 'time_axis' must be 0 and 1");
  Expr at = positions(x, x.shape(), time);
  Expr length = nn::broadcast(nn::cast(n.in(1), n.builder.getI64Type()), x.shape(), {batch});
  Expr turned = nn::select(nn::less(at, length), length - 1.0 - at, at);
  n.set(0, nn::gatherElements(x, turned, time));
  return success();
}

} // namespace

void lowtide::addIndexingRules(RuleTable &t) {
  t.add("Gather", gather);
  t.add("GatherElements", gatherElements);
  t.add("GatherND", gatherND);
  t.add("ScatterElements", scatterElements, SelectedMeet::Yes);
  t.add("Scatter", scatterElements, SelectedMeet::Yes);
  t.add("ScatterND", scatterND, SelectedMeet::Yes);
  t.add("TensorScatter", tensorScatter);
  t.add("OneHot", oneHot);
  t.add("ReverseSequence", reverseSequence);
}
